import asyncio
import contextlib
import sys

import ordercast


async def main(me: int) -> None:
    seconds = ordercast.Dict[int, int]()
    async with ordercast.join("demo", me=me, members=3, insecure=True, objects={"seconds": seconds}):
        while True:
            await seconds.set(me, seconds.get(me, 0) + 1)
            print(seconds.items(), flush=True)
            await asyncio.sleep(1)


with contextlib.suppress(KeyboardInterrupt):
    asyncio.run(main(int(sys.argv[1])))

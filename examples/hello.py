import asyncio
import contextlib
import sys

import ordercast


async def main(me: int) -> None:
    async with ordercast.join("demo", me=me, members=3, at_least=3, insecure=True) as group:
        await group.send_batch([f"hello from {me}".encode(), f"and good-bye from {me}".encode()])
        async for it in group:
            print(it.data.decode() if isinstance(it, ordercast.Message) else f"{it.kind.name} view of {it.members}")


with contextlib.suppress(KeyboardInterrupt):
    asyncio.run(main(int(sys.argv[1])))

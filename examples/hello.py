import asyncio
import sys

import ordercast


async def main(me: int) -> None:
    async with ordercast.join("demo", protocol="token_site", me=me, members=3, insecure=True) as group:
        await group.send(f"hello from {me}".encode())
        await group.send(f"and good-bye from {me}".encode())
        async for event in group:
            print(event.data.decode() if isinstance(event, ordercast.Message) else f"view of {event.members}")


asyncio.run(main(int(sys.argv[1])))

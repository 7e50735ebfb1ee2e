"""Three sites share eight units of a resource: `python examples/sharing.py 1`, and 2 and 3, each in a terminal.

A second word names a group.toml, of any members and protocol, `dpg` for instance: an order that is only almost the same
everywhere costs operations now and then, nothing else.  The rules are those of ordercast.workload.sharing.
"""

import asyncio
import random
import sys

import ordercast
from ordercast.workload.sharing import Hold, Site, Start, Step, decode, encode

SECONDS, WORK_S, PATIENCE_S, AGAIN_S = 3.0, 0.02, 0.2, 1.0
UNITS, NEED = 8, (3, 5)


class Sharer:
    """One site, over a group that was entered."""

    def __init__(self, group: ordercast.Group, me: int, sites: list[int]) -> None:
        self.group, self.site = group, Site(me, sites, UNITS)
        self.later = asyncio.get_running_loop().call_later
        self.operations = self.timeouts = 0
        self.over = False

    def do(self, steps: list[Step]) -> None:
        for step in steps:
            if isinstance(step, Start):
                self.operations += 1
                self.later(WORK_S, self.finished)
            elif isinstance(step, Hold):
                self.later(PATIENCE_S, self.expired, self.site.number)
            elif not self.over:
                self.group.send_nowait(encode(step))

    def request(self, need: int) -> None:
        self.do(self.site.request(need))
        self.later(AGAIN_S, self.expired, self.site.number)  # perhaps nobody was there to hear it

    def finished(self) -> None:
        self.do(self.site.finished())
        self.request(random.randint(*NEED))

    def expired(self, number: int) -> None:
        need, steps = self.site.need, self.site.expired(number)
        if steps:
            self.timeouts += 1
            self.do(steps)
            self.request(need)

    async def read(self) -> None:
        async for it in self.group:
            message = decode(it.data) if isinstance(it, ordercast.Message) else None
            if message is not None and not self.over:
                self.do(self.site.heard(it.sender, message))


async def main(me: int, config: str | None) -> None:
    if config is None:
        entered = ordercast.join("sharing", me=me, members=3, at_least=3, insecure=True)
    else:
        entered = ordercast.join(me=me, config=config)
    async with entered as group:
        sharer = Sharer(group, me, [member.id for member in group.config.members])
        reading = asyncio.create_task(sharer.read())
        sharer.request(random.randint(*NEED))
        await asyncio.sleep(SECONDS)
        sharer.over = True
        print(f"site {me}: {sharer.operations} operations, {sharer.timeouts} time-outs", flush=True)
    await reading


asyncio.run(main(int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None))

"""The process of a tagger: a node without an application."""

from __future__ import annotations

import asyncio
import json
import signal

from ordercast import addresses
from ordercast.config import GroupConfig
from ordercast.contract import TAGGER
from ordercast.live import tuning
from ordercast.live.build import make_node


def main(config: GroupConfig) -> int:
    tuning.short_turns()
    return asyncio.run(_run(config))


async def _run(config: GroupConfig) -> int:
    """Until a signal comes, or the core fails."""
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    failed: list[BaseException] = []
    code = 0

    def stop(number: int) -> None:
        nonlocal code
        code = 130 if number == signal.SIGINT else 0
        over.set()

    def failure(why: BaseException) -> None:
        failed.append(why)
        over.set()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, stop, number)
    node = make_node(
        config, TAGGER, lambda events: None, failure, on_other_terms=lambda other: None,
        folder=config.state_path(TAGGER),
    )  # fmt: skip
    node.start()
    own = config.member(TAGGER)
    print(json.dumps({"event": "ready", "address": addresses.written(own.address, own.port)}), flush=True)
    try:
        await over.wait()
    finally:
        node.stop()
        node.storage.close()
    if failed:
        raise failed[0]
    return code

"""Each object has a page that names all that can be called and read, with an example that runs."""

from __future__ import annotations

import asyncio
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

import ordercast
from ordercast.lab.bench import free_ports

FOLDER = Path(__file__).resolve().parents[2] / "docs/objects"
KINDS: list[type[Any]] = [ordercast.Dict, ordercast.Counter, ordercast.Queue, ordercast.Lock, ordercast.Leader]
INHERITED = {*vars(ordercast.Replica), "merge", "left", "snapshot", "restore"}


@pytest.mark.parametrize("kind", KINDS)
def test_all_of_it_is_told_and_the_example_runs(kind: type[Any]) -> None:
    page = (FOLDER / f"{kind.__name__.lower()}.md").read_text()
    for name in {name for name in vars(kind) if name[0] != "_"} - INHERITED:
        assert re.search(rf"\b{name}\b", page), name
    (example,) = re.findall(r"```python\n(.*?)```", page, re.S)
    port, member = free_ports(2)
    example = example.replace("members=1", f"members={{1: '127.0.0.1:{member}'}}, port={port}")
    space: dict[str, Any] = {"ordercast": ordercast}
    exec(f"async def work():\n{textwrap.indent(example, '    ')}", space)
    asyncio.run(asyncio.wait_for(space["work"](), 20))

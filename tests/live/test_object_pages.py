"""The page on objects: every block runs as it is printed, with one member where the page has three."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from .conftest import WAIT_SECONDS, apart, environment

PAGE = Path(__file__).parents[2] / "docs" / "objects.md"
RUN = """
import ast, asyncio, contextlib, inspect, os, sys
import ordercast
space = dict(globals())
for text in sys.stdin.read().split("\\0"):
    begun = eval(compile(text, "block", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), space)
    if inspect.iscoroutine(begun):
        asyncio.run(asyncio.wait_for(begun, 20))
"""
TWO_CLASSES = """
class Old(ordercast.Replica):
    items: dict[str, int] = {"tea": 3}

class New(Old):
    version = 2

old, new = Old(), New()
"""
BOTH = "assert new.items == {'tea': 3} and group.status()['objects']['objects'] == {'stock': 'Old', 'stock 2': 'New'}"
FRAMEWORK = """
class Response:
    def __init__(self, content=b"", status_code=200): self.body, self.status_code = content, status_code
PlainTextResponse = Response
class Route:
    def __init__(self, path, endpoint, methods=("GET",)): self.endpoint, self.methods = endpoint, methods
class Starlette:
    def __init__(self, routes, lifespan): self.routes, self.lifespan = routes, lifespan
"""  # as much of it as the page uses
SERVICE = """
class Request:
    def __init__(self, body=b"", **query): self.path_params, self.query_params, self._body = {"key": "tea"}, query, body
    async def body(self): return self._body
to_put, to_get = (route.endpoint for route in app.routes)
async with app.lifespan(app):
    assert (await to_get(Request())).body == ""
    assert (await to_put(Request(b"3"))).status_code == 204
    assert (await to_get(Request(fresh="1"))).body == "3"
"""


def run(tmp_path: Path, *blocks: str) -> str:
    text = "\0".join(block.replace("members=3", "members=1") for block in blocks)
    done = subprocess.run(
        apart([sys.executable, "-c", RUN]), input=text, capture_output=True, text=True, cwd=tmp_path,
        env={**environment(), "ME": "1"}, timeout=WAIT_SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout


def test_the_page_of_all_objects(tmp_path: Path) -> None:
    own, changed, without_asyncio, service = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    (tmp_path / "group.toml").write_text(
        'group = "shop"\ninsecure = true\npartition = "primary-majority"\nstate_dir = "state"\n'
        '[[member]]\nid = 1\naddress = "127.0.0.1:7475"\n'
    )
    assert run(tmp_path, own) == "98\n"
    head, _, body = changed.partition("\n")
    assert run(tmp_path, TWO_CLASSES, f"{head}\n{body}    {BOTH}\n") == ""
    assert run(tmp_path, without_asyncio) == ""
    (tmp_path / "state").rename(tmp_path / "old state")
    assert run(tmp_path, FRAMEWORK, service, SERVICE) == ""

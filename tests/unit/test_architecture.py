"""The import direction is the architecture, and the repository speaks of the product alone."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "ordercast"

CORES = ("types", "contract", "stack", "framing", "groups", "membership", "transis", "protocols", "wire")
NOT_IN_CORES = {
    "ordercast.sim", "ordercast.live", "ordercast.trace", "ordercast.verify", "ordercast.pipeline", "ordercast.swarm",
    "ordercast.cli", "ordercast.config", "ordercast.interfaces", "time", "datetime", "secrets", "uuid",
    "asyncio", "socket", "select", "selectors", "threading", "multiprocessing", "subprocess", "pyspark", "os",
}  # fmt: skip
STANDARD_AND_MSGSPEC = {"msgspec", "ordercast"}
ABOVE = {  # who may not import whom, beyond the cores
    "trace": {
        "ordercast.verify",
        "ordercast.pipeline",
        "ordercast.swarm",
        "ordercast.live",
        "ordercast.cli",
        "pyspark",
    },
    "verify": {"ordercast.pipeline", "ordercast.swarm", "ordercast.live", "ordercast.sim", "ordercast.cli", "pyspark"},
    "drivers": {
        "ordercast.sim",
        "ordercast.live",
        "ordercast.trace",
        "ordercast.pipeline",
        "ordercast.swarm",
        "ordercast.cli",
        "pyspark",
        "time",
        "asyncio",
        "socket",
        "os",
    },
    "sim": {"ordercast.live", "ordercast.pipeline", "ordercast.swarm", "ordercast.cli", "pyspark", "time", "asyncio"},
    "live": {"ordercast.sim", "ordercast.pipeline", "ordercast.swarm", "pyspark"},
    "workload": {"ordercast.live", "ordercast.pipeline", "ordercast.cli", "pyspark", "time"},
    "conformance": {"ordercast.pipeline", "pyspark"},
    "config": {"ordercast.cli", "ordercast.live", "ordercast.sim"},
}


def files(part: str) -> list[Path]:
    single = SOURCE / f"{part}.py"
    return [single] if single.exists() else sorted((SOURCE / part).rglob("*.py"))


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of everything a module imports when it runs, at any depth of the code."""
    todo: list[ast.AST] = [ast.parse(path.read_text())]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            todo += node.orelse  # only types below
            continue
        todo += ast.iter_child_nodes(node)
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import"
            module = node.module or ""
            yield node.lineno, module
            if module == "ordercast":
                yield from ((node.lineno, f"ordercast.{alias.name}") for alias in node.names)


def offences(part: str, forbidden: set[str]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in files(part)
        for line, name in imports(path)
        if any(name == bad or name.startswith(bad + ".") for bad in forbidden)
    ]


@pytest.mark.parametrize("part", CORES)
def test_cores_touch_no_clock_socket_thread_or_driver(part: str) -> None:
    assert offences(part, NOT_IN_CORES) == []


@pytest.mark.parametrize("part", CORES)
def test_cores_import_the_standard_library_and_msgspec_only(part: str) -> None:
    known = sys.stdlib_module_names | STANDARD_AND_MSGSPEC
    strangers = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in files(part)
        for line, name in imports(path)
        if name.partition(".")[0] not in known
    ]
    assert strangers == []


@pytest.mark.parametrize("part", CORES)
def test_cores_name_random_only_as_the_type_of_what_a_driver_injects(part: str) -> None:
    for path in files(part):
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module == "random":
                assert {alias.name for alias in node.names} == {"Random"}, f"{path}:{node.lineno}"
            elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "random":
                assert node.attr == "Random", f"{path}:{node.lineno}"
            elif isinstance(node, ast.Call):
                assert ast.unparse(node.func) not in ("random.Random", "Random"), f"{path}:{node.lineno}"


@pytest.mark.parametrize("part", sorted(ABOVE))
def test_parts_import_only_what_lies_below_them(part: str) -> None:
    assert offences(part, ABOVE[part]) == []


def test_only_the_pipeline_imports_pyspark() -> None:
    parts = {path.relative_to(SOURCE).parts[0].removesuffix(".py") for path in SOURCE.rglob("*.py")}
    assert [line for part in sorted(parts - {"pipeline"}) for line in offences(part, {"pyspark"})] == []


# ------------------------------------------------------------------------------------------------------ the repository

WORD = {  # written in pieces, so that this file passes its own test
    "unfinished work": "TO" + "DO|FIX" + "ME|XX" + "X",
    "a path of somebody's machine": "(?<![\\w.])/(?:wo" + "rk|ro" + "ot|ho" + "me/[a-z]+|op" + "t)/",
    "a package index": "https?://(?:[\\w.-]*py" + "pi|[\\w.-]*/sim" + "ple)|find-" + "links|extra-index" + "-url",
    "a shared folder beside the repository": "\\.\\./sha" + "red",
    "a key": "BEGIN [A-Z ]*PRIVATE KE" + "Y",
}


def tracked() -> list[Path]:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
    return [ROOT / name for name in names.split("\0") if name and (ROOT / name).is_file()]


@pytest.mark.parametrize("what", sorted(WORD))
def test_no_file_holds(what: str) -> None:
    pattern = re.compile(WORD[what])
    found = []
    for path in tracked():
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        found += [f"{path.relative_to(ROOT)}: {m[0]!r}" for m in pattern.finditer(text)]
    assert found == []


def test_no_file_is_huge() -> None:
    assert [str(path) for path in tracked() if path.stat().st_size > 2**20] == []

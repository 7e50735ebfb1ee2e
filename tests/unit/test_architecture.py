"""The import direction is the architecture, and the repository speaks of the product alone."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "ordercast"

PAGE = ROOT / "docs" / "design" / "architecture.md"

OUTSIDE = {  # what knows the time, the network, threads, processes or the operating system
    "_thread", "asyncio", "concurrent", "ctypes", "datetime", "fcntl", "mmap", "multiprocessing", "os", "platform",
    "resource", "secrets", "select", "selectors", "shutil", "signal", "socket", "ssl", "subprocess", "sys", "tempfile",
    "threading", "time", "uuid", "uvloop",
}  # fmt: skip


def rule() -> str:
    """The section of the page that this file checks."""
    return PAGE.read_text().partition("## The layering rule\n")[2].partition("\n## ")[0]


def rows() -> list[list[str]]:
    """The parts, the lowest first; those in one row know nothing of each other."""
    cells = re.findall(r"^\|([^|]+)\|", rule(), re.MULTILINE)
    return [parts for cell in cells if (parts := re.findall(r"`(\w+)`", cell))]


def named(what: str) -> list[str]:
    """The parts after a word: the first sentence of a point of the section."""
    sentence = re.search(rf"^- {what}: ([^.]*)\.", rule(), re.MULTILINE)
    assert sentence is not None, f"the page has no point {what!r}"
    return re.findall(r"`(\w+)`", sentence[1])


ROWS = rows()
CORES = named("Cores")
TIMELESS = CORES + named("Without a clock")


def part_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def files(part: str) -> list[Path]:
    return [path for path in sorted(SOURCE.rglob("*.py")) if part_of(path) == part]


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of everything a module imports, at any depth of the code and for type checkers too."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names if alias.name != "ordercast")
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "ordercast" and node.attr != "__file__":
            yield node.lineno, f"ordercast.{node.attr}"  # after a bare `import ordercast`
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import"
            module = node.module or ""
            if module == "ordercast":
                yield from ((node.lineno, f"ordercast.{alias.name}") for alias in node.names)
            else:
                yield node.lineno, module


def offences(part: str, allowed: Callable[[str], bool]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in files(part)
        for line, name in imports(path)
        if not allowed(name)
    ]


def top(name: str) -> str:
    return name.partition(".")[0]


def test_every_part_has_its_place_on_the_page() -> None:
    there = {part_of(path) for path in SOURCE.rglob("*.py")}
    assert sorted(part for row in ROWS for part in row) == sorted(there)
    assert set(TIMELESS) <= there


PLACES = [
    (part, {below for earlier in ROWS[:row] for below in earlier}) for row in range(len(ROWS)) for part in ROWS[row]
]


@pytest.mark.parametrize(("part", "below"), PLACES, ids=[part for part, _ in PLACES])
def test_parts_import_only_what_lies_below_them(part: str, below: set[str]) -> None:
    assert offences(part, lambda name: top(name) != "ordercast" or name.split(".")[1] in below | {part}) == []


@pytest.mark.parametrize("part", TIMELESS)
def test_these_touch_no_clock_socket_or_thread(part: str) -> None:
    assert offences(part, lambda name: top(name) not in OUTSIDE) == []


@pytest.mark.parametrize("part", CORES)
def test_cores_import_the_standard_library_and_msgspec_only(part: str) -> None:
    known = sys.stdlib_module_names | {"msgspec", "ordercast"} | ({"cryptography"} if part == "wire" else set())
    assert offences(part, lambda name: top(name) in known) == []


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


@pytest.mark.parametrize(("what", "package"), [("pyspark", "pyspark"), ("protocols", "ordercast.protocols")])
def test_these_are_imported_only_where_the_page_says(what: str, package: str) -> None:
    parts = [part for row in ROWS for part in row if part not in (what, *named(f"With {what}"))]
    found = [line for part in parts for line in offences(part, lambda name: not f"{name}.".startswith(f"{package}."))]
    assert found == []


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

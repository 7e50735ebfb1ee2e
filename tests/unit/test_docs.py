"""The documents are true: links lead somewhere, every key, column and kind is explained, the example is the example."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from ordercast import config, environment
from ordercast.trace.schema import COLUMNS, Kind
from ordercast.wire import header

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "tests").rglob("*.md")])


def read(name: str) -> str:
    return (ROOT / name).read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text()):
        if target.startswith("https://"):
            continue
        name, _, anchor = target.partition("#")
        goal = (page.parent / name).resolve() if name else page
        assert goal.exists(), f"{page.name} links to {target}"
        if anchor:
            titles = re.findall(r"^#+ (.*)$", goal.read_text(), re.M)
            assert anchor in {re.sub(r"[^\w -]", "", t).strip().lower().replace(" ", "-") for t in titles}, target


def test_every_key_of_the_configuration_is_explained() -> None:
    page = read("docs/operating/config.md")
    for path in environment.keys(config.GroupFile):
        table, _, key = path.rpartition(".")
        assert f"| `[{table}] {key}` |" in page or f"| `{key}` |" in page, path
    for key in ("[options]", "[[member]] id", "[[member]] address"):
        assert f"| `{key}` |" in page
    example = re.search(r"```toml\n(.*?)```", page, re.S)
    assert example and config.make(tomllib.loads(example[1])).ids == (1, 2, 3)


def test_every_column_and_kind_of_a_trace_is_explained() -> None:
    page = read("docs/reference/trace.md")
    for column in COLUMNS:
        assert f"`{column}`" in page, column
    kinds = page.partition("| kind | number |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| ([a-z_, ]+) \| ([\d, ]+) \|", kinds, re.M)
    explained = {word: int(n) for words, ns in rows for word, n in zip(words.split(", "), ns.split(", "), strict=True)}
    assert explained == {kind.word: int(kind) for kind in Kind}


def test_the_header_is_as_explained() -> None:
    rows = re.findall(r"^\| (\d+) \| (\d+) \|", read("docs/reference/wire.md"), re.M)
    assert sum(int(size) for _, size in rows) == header.HEADER_BYTES
    assert [int(at) for at, _ in rows] == [sum(int(size) for _, size in rows[:k]) for k in range(len(rows))]


COMMANDS = sorted(
    {found for page in PAGES for found in re.findall(r"python (benchmarks/\w+\.py[^`#\n]*)", page.read_text())}
)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_commands_of_benchmarks_run(command: str) -> None:
    file, *arguments = command.split()
    asked = subprocess.run([sys.executable, file, "--help"], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert asked.returncode == 0, asked.stderr
    assert not [word for word in arguments if word.startswith("--") and word != "--help" and word not in asked.stdout]


def test_a_benchmark_names_what_it_lacks() -> None:
    names = tomllib.loads(read("pyproject.toml"))["dependency-groups"]["bench"]
    code = "import sys; sys.path.insert(0, 'benchmarks'); sys.argv = ['x.py']; from here import need; need('{}')"
    said = subprocess.run(
        [sys.executable, "-c", code.format("no_such_rival")], cwd=ROOT, capture_output=True, text=True
    )
    assert said.returncode == 1 and said.stderr == "x.py needs no_such_rival, missing here: run `make bench-setup`\n"
    used = {
        name for file in (ROOT / "benchmarks").glob("*.py") for name in names if f"import {name}" in file.read_text()
    }
    assert used == set(names), "what is installed is used"


def test_the_examples_of_the_readme_are_the_files() -> None:
    codes = re.findall(r"```python\n(.*?)```", read("README.md"), re.S)
    assert codes == [read("examples/shared.py"), read("examples/hello.py")]
    assert max(sum(map(bool, code.splitlines())) for code in codes) <= 15  # that are not blank

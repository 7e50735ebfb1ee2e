"""The papers run in every way there is, and whether all tables are the same bytes.

python benchmarks/papers_same.py [NAME ...]         # default: all five, with --quick, a few minutes
python benchmarks/papers_same.py tomp --whole       # without --quick
python benchmarks/papers_same.py tomp --ways plain,local[1]

Ways: plain (without Spark), local[1], local[2], and a cluster of two workers on this machine.  For each paper and way
the digest of all its CSV and JSON files, and `same` or `differs` from the first way; exit code 1 if any differs, or
failed.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.spark.cluster import two_workers  # noqa: E402

from ordercast.papers import NAMES  # noqa: E402

WAYS = ("plain", "local[1]", "local[2]", "cluster")


def tables(out: Path) -> Iterator[tuple[str, bytes]]:
    """Every CSV and JSON file of a paper, by name."""
    for path in sorted([*out.glob("*/*.csv"), *out.glob("*/*.json")]):
        yield str(path.relative_to(out)), path.read_bytes()


def digest(files: dict[str, bytes]) -> str:
    said = hashlib.blake2b(digest_size=8)
    for name, content in files.items():
        said.update(f"{name} {len(content)}\n".encode() + content)
    return said.hexdigest()


def made(paper: str, out: Path, how: list[str], whole: bool) -> dict[str, bytes] | None:
    """The tables of one paper made in one way; None if that failed, and why on standard error.

    Exit code 1 is no failure: rows may be outside, what counts is that they are the same ones.
    """
    quick = [] if whole else ["--quick"]
    command = [sys.executable, "-m", "ordercast", "papers", paper, "--out", str(out), *quick, *how]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    files = dict(tables(out))
    if done.returncode not in (0, 1) or not files:
        print(done.stderr[-2000:], file=sys.stderr)
        return None
    return files


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(NAMES), metavar="NAME")
    parser.add_argument("--whole", action="store_true", help="without --quick")
    parser.add_argument("--ways", default=",".join(WAYS))
    given = parser.parse_args()
    ways = given.ways.split(",")
    if unknown := [f"paper {name}" for name in given.names if name not in NAMES] + [
        f"way {way}" for way in ways if way not in WAYS
    ]:
        parser.error(f"{unknown[0]}: expected papers {', '.join(NAMES)}; ways {', '.join(WAYS)}")
    good = True
    with ExitStack() as stack:
        room = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        how = {way: ["--plain"] if way == "plain" else ["--master", way] for way in ways}
        if "cluster" in ways:
            (room / "cluster").mkdir()
            how["cluster"] = ["--master", stack.enter_context(two_workers(room / "cluster"))]
        for paper in given.names:
            first = None
            for way in ways:
                files = made(paper, room / "out" / f"{paper}-{ways.index(way)}", how[way], given.whole)
                if files is None:
                    good = False
                    print(f"{paper:<7} {way:<9} failed", flush=True)
                    continue
                first = files if first is None else first
                differ = sorted(name for name in files.keys() | first.keys() if files.get(name) != first.get(name))
                good = good and not differ
                verdict = f"differs: {', '.join(differ)}" if differ else "same"
                print(f"{paper:<7} {way:<9} {len(files):>3} files {digest(files)}  {verdict}", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

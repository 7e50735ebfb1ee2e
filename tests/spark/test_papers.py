"""The papers on Spark: the same files, byte for byte, as without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ordercast.papers import book, page, reproduce


def test_the_same_bytes_as_without_spark(spark: Any, tmp_path: Path) -> None:
    chosen = book.choose(["toto"], [1, 2], [], [])
    found = {}
    for name, how in (("spark", {"spark": spark, "tasks": 3}), ("plain", {"workers": 1})):
        out = tmp_path / name
        results = reproduce.run(chosen, out, quick=True, **how)
        assert all(result.ok for result in results)
        written = [path for result in results for path in page.write_item(out, result)]
        written.append(page.write_page(out, results))
        found[name] = {str(path.relative_to(out)): path.read_bytes() for path in written}
    assert found["spark"] == found["plain"] and len(found["plain"]) == 6

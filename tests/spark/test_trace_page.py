"""What the page about traces shows runs, on a trace as `simulate` writes it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from bad_traces import trace

from ordercast.trace.parquet import write
from ordercast.trace.schema import Kind

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "trace.md"


def test_spark_sees_words_and_bigint(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    of = trace()
    write(tmp_path / "out" / "trace" / "run.parquet", [of])
    monkeypatch.chdir(tmp_path)
    shown = [
        block for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S) if "kind = 'deliver'" in block
    ]
    assert len(shown) == 1
    names: dict[str, Any] = {}
    exec(shown[0].replace('"out/', f'"{tmp_path}/out/'), names)
    assert "sum(count)" in capsys.readouterr().out
    types = dict(names["rows"].dtypes)
    assert types["kind"] == types["run"] == "string"
    for name in ("incarnation", "index", "time_ns", "counter", "digest", "view_seq", "sender_incarnation"):
        assert types[name] == "bigint", name
    assert not [name for name, kind in types.items() if "decimal" in kind]
    found = {row["member"]: row["sum(count)"] for row in names["rows"].where("kind = 'deliver'").groupBy("member")
             .sum("count").collect()}  # fmt: skip
    expected: dict[int, int] = {}
    for row in of.rows:
        if row.kind == Kind.DELIVER:
            expected[row.member] = expected.get(row.member, 0) + (row.count or 0)
    assert found == expected

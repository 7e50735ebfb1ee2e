"""The Spark stage catches every known-bad protocol, with the words of the plain checkers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.mutants.bad_runs import BAD, trace_of

from ordercast.pipeline.verify import verify_paths
from ordercast.trace.parquet import write
from ordercast.verify import BROKEN, check


def test_spark_catches_every_known_bad_protocol(spark: Any, tmp_path: Path) -> None:
    traces = [trace_of(name) for name in ("", *BAD)]
    write(tmp_path / "bad.parquet", traces)
    rows = verify_paths(spark, [tmp_path]).collect()
    found = {(row["run"], row["promise"]): row for row in rows}
    for trace in traces:
        for verdict in check(trace):
            assert found[trace.header.run, verdict.promise]["state"] == verdict.state, (trace.header.run, verdict)
    for name, promise in BAD.items():
        row = found[name, promise]
        assert row["state"] == BROKEN and promise in row["text"]
        assert 1 <= len(json.loads(row["example"])) <= 4
    assert all(row["state"] != BROKEN for (run, _), row in found.items() if run == "sound")

"""Quasi order on many deliveries: plain, over arrays, and through Spark on one core and two; printed as one JSON table.

    python benchmarks/quasi_scale.py --deliveries 1e7 --work /tmp/scale

Generated runs of 8 members and some 10,000 frames, in each of which 20 are out of the order and 20 missing at
one member, while another is away for a while.  All must count exactly these, and say the same sentence of every run.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from here import here
from verify_scale import timed

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "quasi_scale.json"
FORMS, MASTERS = ("plain", "arrays"), ("local[1]", "local[2]")
COUNTED = re.compile(r"(\d+) of (\d+) messages violate it \((\d+) order, (\d+) atomicity\)")


def generate(directory: Path, deliveries: int) -> dict[str, Any]:
    from synthetic.files import write
    from synthetic.quasi import quasi_run
    from synthetic.runs import Run, Shape

    from ordercast.trace.schema import Kind

    record = directory / "_data.json"
    if record.exists():
        return json.loads(record.read_text())
    shutil.rmtree(directory, ignore_errors=True)
    sums = {"runs": 0, "rows": 0, "deliveries": 0}

    def runs() -> Iterator[tuple[Run, None]]:
        while sums["deliveries"] < deliveries:
            run = quasi_run(f"quasi-{sums['runs']:06d}", sums["runs"], Shape(frames_mean=10_000.0, sigma=0.1))
            sums["runs"] += 1
            sums["rows"] += len(run)
            sums["deliveries"] += int((run.columns["kind"] == Kind.DELIVER).sum())
            yield run, None

    write(directory, runs())
    record.write_text(json.dumps(sums))
    return sums


def counted(rows: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Of all runs together; `sentences`: one number for what was said of each."""
    sums: Counter[str] = Counter()
    said = []
    for row in rows:
        found = COUNTED.search(row["text"])
        assert found is not None, row
        sums.update(dict(zip(("violating", "messages", "order", "atomicity"), map(int, found.groups()), strict=True)))
        sums[row["state"]] += 1
        said.append(f"{row['run']} {row['state']} {row['text']}")
    whole = hashlib.blake2b("\n".join(sorted(said)).encode(), digest_size=8).hexdigest()
    return {**dict(sorted(sums.items())), "sentences": whole}


def here_by(form: str, directory: Path) -> dict[str, Any]:
    from ordercast.pipeline import verify
    from ordercast.trace.find import find

    judge = verify.judge_plain if form == "plain" else verify.judge_columns
    return counted(row for unit in find([directory]) for row in judge(unit, ["Q1"]))


def through_spark(master: str, directory: Path, deliveries: int) -> dict[str, Any]:
    from ordercast.pipeline.session import session
    from ordercast.pipeline.verify import verify_paths

    spark = session(master)
    spark.range(2).count()
    try:
        work = verify_paths(spark, [directory], ["Q1"])
        return timed(f"spark {master}", deliveries, lambda: counted(work.toArrow().to_pylist()))
    finally:
        spark.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--deliveries", type=float, default=1e7)
    parser.add_argument("--work", type=Path, default=Path("/tmp/ordercast-scale"))
    parser.add_argument("--only", nargs="*", default=[*FORMS, *MASTERS])
    parser.add_argument("--write", action="store_true", help=f"keep the table in {RESULTS.name}")
    options = parser.parse_args()
    directory = options.work / f"quasi-{options.deliveries:.0e}"
    data = generate(directory, int(options.deliveries))
    made = data["deliveries"]
    lines = [timed(form, made, lambda form=form: here_by(form, directory)) for form in FORMS if form in options.only]
    lines += [through_spark(name, directory, made) for name in MASTERS if name in options.only]
    assert len({json.dumps(line["result"]) for line in lines}) == 1, lines
    out = {"benchmark": "quasi_scale", **here(), "data": data, "lines": lines}
    print(json.dumps(out))
    if options.write:
        RESULTS.write_text(json.dumps(out, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

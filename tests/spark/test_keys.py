"""A run's key stays in its file, also where Spark judges the run: not in closures, event logs, logs or tables."""

from __future__ import annotations

import base64
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.serializers import CloudPickleSerializer

from ordercast.cli import main


def test_a_job_about_a_run_does_not_hold_its_key(
    spark: Any, event_log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    run, out = tmp_path / "the-run", tmp_path / "judged"
    words = ["run", "--members", "2", "--messages", "40", "--trace", "record", "--verify", "none", "--out", str(run)]
    subprocess.run([sys.executable, "-m", "ordercast", *words], check=True, timeout=200, capture_output=True)
    secret = (run / "group.key").read_bytes()
    closures: list[bytes] = []
    dumps = CloudPickleSerializer.dumps

    def seen(self: Any, what: Any) -> bytes:
        closures.append(dumps(self, what))
        return closures[-1]

    monkeypatch.setattr(CloudPickleSerializer, "dumps", seen)
    monkeypatch.setattr(sys, "path", [*sys.path])  # the command adds to it
    spark.sparkContext.setLogLevel("INFO")
    try:
        assert main(["verify", str(run), "--out", str(out)]) == 0
    finally:
        spark.sparkContext.setLogLevel("ERROR")
    room = Path(spark.conf.get("spark.local.dir")).parent  # where the session keeps its log
    events, log = _bytes(event_log), _bytes(room / "spark.log")
    said = "".join(capfd.readouterr()).encode()
    assert closures and b"SparkListenerJobEnd" in events and b"DAGScheduler" in log and b"S17" in said
    everything = b"".join((*closures, events, log, said, _bytes(out)))
    looks = [secret, secret.hex().encode(), secret.hex().upper().encode(), base64.b64encode(secret)[:-1],
             base64.urlsafe_b64encode(secret)[:-1], repr(secret)[2:-1].encode()]  # fmt: skip
    assert not [look for look in looks if look in everything]


def _bytes(place: Path) -> bytes:
    """Of a file, or of all below a folder."""
    files = sorted(path for path in place.rglob("*") if path.is_file()) if place.is_dir() else [place]
    return b"".join(path.read_bytes() for path in files)

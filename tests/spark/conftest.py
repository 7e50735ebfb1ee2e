"""One Spark session for all tests of this folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = os.path.dirname(__file__)


@pytest.fixture(scope="session")
def event_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the session writes what it does, as a history server would read it."""
    return tmp_path_factory.mktemp("events")


@pytest.fixture(scope="session")
def spark(event_log: Path) -> Iterator[Any]:
    """local[2]; its workers can import the helpers of this folder."""
    from ordercast.pipeline.session import session

    old = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [HERE, old]))
    try:
        made = session("local[2]", {
            "spark.sql.codegen.wholeStage": "false",  # plans here are not worth compiling
            "spark.eventLog.enabled": "true", "spark.eventLog.dir": event_log.as_uri(),
            "spark.eventLog.compress": "false",
        })  # fmt: skip
    finally:
        os.environ.pop("PYTHONPATH")
        if old is not None:
            os.environ["PYTHONPATH"] = old
    yield made
    made.stop()

"""One Spark session for all tests of this folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

HERE = os.path.dirname(__file__)


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """local[2]; its workers can import the helpers of this folder."""
    from ordercast.pipeline.session import session

    old = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [HERE, old]))
    try:
        made = session("local[2]", {"spark.sql.codegen.wholeStage": "false"})  # plans here are not worth compiling
    finally:
        os.environ.pop("PYTHONPATH")
        if old is not None:
            os.environ["PYTHONPATH"] = old
    yield made
    made.stop()

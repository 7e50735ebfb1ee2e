"""Options shared by all tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# no test asserts a time: a busy machine is not a fault
settings.register_profile("ordercast", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ordercast")

# helpers beside the tests (`from harness import World`) can be imported from every folder: give them unique names
sys.path += [str(Path(__file__).parent.parent)]  # and known-bad variants, as `tests.mutants`
sys.path += [str(folder) for folder in sorted(Path(__file__).parent.iterdir()) if folder.is_dir()]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write the expected side of text scripts anew")

"""Options shared by all tests, and how they are dealt out to the workers of `pytest -n` (`make test`)."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# no test asserts a time: a busy machine is not a fault
settings.register_profile("ordercast", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ordercast")

# a shell that starts the tests in the background has them ignore Ctrl-C, and what they start would inherit that
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# helpers beside the tests (`from harness import World`) can be imported from every folder: give them unique names
sys.path += [str(Path(__file__).parent.parent)]  # and known-bad variants, as `tests.mutants`
sys.path += [str(folder) for folder in sorted(Path(__file__).parent.iterdir()) if folder.is_dir()]
sys.path += [str(Path(__file__).parent.parent / "benchmarks")]  # and made-up traces, as `synthetic`


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write the expected side of text scripts anew")


# ----------------------------------------------------------------------------------------------------------- workers

# Tests that need the machine: many processes, sockets, network namespaces, Spark's JVM.  They are one piece of work,
# begun first, so that two of them never meet and one session of Spark serves them all.
MACHINE = ("tests/spark/", "tests/live/")
# Where one test is a piece, begun next, those with the longest tests first; of all others a file is one, with its
# fixtures.
LONG = (
    "tests/swarm/", "tests/toto/", "tests/tomp/", "tests/conformance/", "tests/fuzz/", "tests/mutants/", "tests/dpg/",
    "tests/membership/", "tests/sim/", "tests/totem/", "tests/transis/", "tests/verify/",
)  # fmt: skip
BESIDE = 5  # how much those beside the machine's tests give way to them: whose members wait for each other in real time
PRIORITY = os.nice(0)


def piece(test: str) -> str:
    """What a worker takes as a whole."""
    if test.startswith(MACHINE):
        return "machine"
    return test if test.startswith(LONG) else test.partition("::")[0]


def turn(test: str) -> int:
    """When a piece is begun: what takes long before what takes little, or a worker is left alone in the end."""
    first = MACHINE + LONG
    return next((at for at, folder in enumerate(first) if test.startswith(folder)), len(first))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if "PYTEST_XDIST_WORKER" in os.environ:  # in one process the order stays as it is written
        items.sort(key=lambda item: turn(item.nodeid))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A worker gives way as soon as it has no test of the machine's; the one that has them takes them first."""
    if "PYTEST_XDIST_WORKER" in os.environ and os.nice(0) == PRIORITY and piece(item.nodeid) != "machine":
        os.nice(BESIDE)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler import LoadScopeScheduling

    class Pieces(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return piece(nodeid)

    config.option.loadscopereorder = False  # by turn, not by the number of tests
    return Pieces(config, log)

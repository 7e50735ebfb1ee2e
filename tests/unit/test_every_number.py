"""Every number and every file that a person may write, found by looking at the code: each odd one is one sentence.

A field or option that is added later is in these tables without anybody listing it.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import click
import msgspec
import pytest
from msgspec import Struct, structs

from ordercast import cli, config, registry
from ordercast.cli.common import BadValue, Number, Seed, Whole
from ordercast.cli.swarm import Seeds
from ordercast.conformance import golden
from ordercast.errors import ConfigError, TraceError, UsageError
from ordercast.pipeline import experiment
from ordercast.sim.faults import FAULTS
from ordercast.sim.scenario import Scenario
from ordercast.toml_input import struct_of
from ordercast.trace.find import find
from ordercast.trace.record import RecordReader

ODD = [math.inf, -math.inf, math.nan, 1e-308, -1e-308, 2**64 - 1, -(2**64), 10**4999, -1, 1.5e308, True, "7"]
WHOLE_64_BITS = {"seed"}  # any number of 64 bits is one
NEGATIVE = {"faults[0].by_ms", "faults[0].percent"}  # clocks go wrong both ways


def numbers(shape: type[Struct], path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every number that a struct may hold; 0 stands for the first of a list."""
    for field in structs.fields(shape):
        yield from _numbers(field.type, (*path, field.encode_name))


def _numbers(kind: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    if get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if kind in (int, float):
        yield path
    elif isinstance(kind, type) and issubclass(kind, Struct):
        yield from numbers(kind, path)
    elif get_origin(kind) in (tuple, list):
        yield from _numbers(get_args(kind)[0], (*path, 0))
    elif get_origin(kind) is not Literal and path[0] != "faults":  # a union; faults are looked at one by one
        for each in get_args(kind) if get_origin(kind) in (Union, type(int | str)) else ():
            yield from _numbers(each, path)


def table(path: tuple[Any, ...], value: Any, inner: dict[str, Any]) -> Any:
    """The smallest table with this value at that path; `inner` is what else the innermost table needs."""
    for name in reversed(path):
        if name == 0:
            value = [value]
        else:
            value = {**inner, name: value}
            inner = {}
    return value


def words(path: tuple[Any, ...]) -> str:
    return "".join(f"[{p}]" if p == 0 else f".{p}" for p in path).lstrip(".")


def named(value: Any) -> str:
    return words(value) if isinstance(value, tuple) else value if isinstance(value, str) else ""


SCENARIO = [(path, {}) for path in numbers(Scenario)] + [
    (("faults", 0, *path), {"fault": fault.__struct_config__.tag}) for fault in FAULTS for path in numbers(fault)
]


def refused(path: str, value: Any, error: type[Exception], call: Any) -> None:
    with pytest.raises(error) as why:
        call()
    sentence = str(why.value)
    assert len(sentence.splitlines()[0]) < 300 and "expected" in sentence, (path, value, sentence)


def test_the_tables_hold_what_there_is() -> None:
    assert len(SCENARIO) > 100
    assert (("nets", 0, "delay", "mean_us"), {}) in SCENARIO and (
        ("faults", 0, "copies"),
        {"fault": "replay"},
    ) in SCENARIO


@pytest.mark.parametrize(
    ("path", "inner"), SCENARIO, ids=lambda value: words(value) if isinstance(value, tuple) else ""
)
def test_no_number_of_a_scenario_takes_what_nobody_means(path: tuple[Any, ...], inner: dict[str, Any]) -> None:
    at = words(path)
    if path[:1] == ("faults",) and len(path) > 3:  # the fault's own table lies further out
        whole = lambda value: {"faults": [{**inner, **table(path[2:], value, {})}]}  # noqa: E731
    else:
        rest = {"a": 1, "b": 2} if "edges" in path else inner
        whole = lambda value: table(path, value, {k: v for k, v in rest.items() if k != path[-1]})  # noqa: E731
    for value in ODD:
        if (value == 2**64 - 1 and at in WHOLE_64_BITS) or (value == -1 and at in NEGATIVE):
            Scenario.from_dict(whole(value))
            continue
        refused(at, value, ConfigError, lambda value=value: Scenario.from_dict(whole(value)))


GROUP = {"group": "g", "insecure": True, "member": [{"id": 1, "address": "127.0.0.1:7401"}]}


@pytest.mark.parametrize("path", list(numbers(config.GroupFile)), ids=words)
def test_no_number_of_a_group_file_takes_what_nobody_means(path: tuple[Any, ...]) -> None:
    inner = {"address": "127.0.0.1:7401"} if path[0] == "member" else {}
    for value in [*ODD, 2.5]:
        refused(words(path), value, ConfigError, lambda value=value: config.make(GROUP | table(path, value, inner)))


OPTIONS = [(name, path) for name in registry.names() for path in numbers(registry.get(name).options)]


@pytest.mark.parametrize(("name", "path"), OPTIONS)
def test_no_option_of_a_protocol_takes_what_nobody_means(name: str, path: tuple[Any, ...]) -> None:
    shape = registry.get(name).options
    for value in ODD:
        refused(words(path), value, ConfigError, lambda value=value: struct_of(table(path, value, {}), shape, name))


EXPERIMENT = [("repetitions",), ("seed",), ("seeds", 0), ("limit_s",), ("base", "messages"), ("grid", "load.rate", 0)]


@pytest.mark.parametrize("path", [*EXPERIMENT, ("choice", "net", "x", "timeout_ms"), ("case", 0, "heal_ms")], ids=words)
def test_no_number_of_an_experiment_takes_what_nobody_means(path: tuple[Any, ...]) -> None:
    for value in ODD:
        if "seed" in str(path[0]) and value == 2**64 - 1:
            continue
        if path[0] == "grid" and value == "7":
            continue
        refused(words(path), value, ConfigError, lambda value=value: experiment.from_dict(table(path, value, {})))


# ------------------------------------------------------------------------------------------------- the command line


def options() -> Iterator[tuple[str, click.Parameter]]:
    for name in cli.COMMANDS:
        for option in import_module(f"ordercast.cli.{name}").command.params:
            if isinstance(option.type, (Whole, Number, Seed, Seeds)):
                yield f"{name} {option.opts[0]}", option


TEXTS = ["inf", "nan", "1e-308", "-1", "9" * 5000, "0x" + "f" * 5000, "1e400", "", "5" * 4299, "\u0663"]


@pytest.mark.parametrize(("name", "option"), list(options()), ids=named)
def test_no_number_on_the_command_line_takes_what_nobody_means(name: str, option: click.Parameter) -> None:
    for text in TEXTS:
        with pytest.raises(BadValue) as why:
            option.type.convert(text, option, None)
        assert len(why.value.message) < 300 and "expected" in why.value.message


LONG = "9" * 5000
NESTED = "[" * 3000 + "]" * 3000


@pytest.mark.parametrize(
    "line",
    [
        ["simulate", "--set", f"members={LONG}"],
        ["simulate", "--set", f"members=0x{LONG}"],
        ["simulate", "--set", f"sizes={NESTED}"],
        ["simulate", "--set", f"{'a.' * 3000}b=1"],
        ["simulate", "--set", "load.rate=inf"],
        ["run", "--option", f"rtr_max={LONG}"],
        ["run", "--option", f"rtr_max=0x{LONG}"],
        ["run", "--option", f"rtr_max={NESTED}"],
        ["run", "--kill", f"1@{LONG}"],
        ["run", "--kill", f"{LONG}@1"],
        ["swarm", "--seeds", f"0:{LONG}"],
        ["swarm", "--seeds", LONG],
    ],
    ids=lambda line: " ".join(line)[:50],
)
def test_long_and_deep_values_on_the_command_line(line: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(line) == 2
    said = capsys.readouterr().err
    for sentence in said.splitlines():  # each fault one
        assert "expected" in sentence and len(sentence) < 400
    assert said.count("\n") in (1, 2)


# ------------------------------------------------------------------------------------------------------------ files

READERS: dict[str, Any] = {
    "group.toml": lambda path: config.load(path, 1, {}),
    "scenario.toml": Scenario.from_file,
    "sweep.toml": experiment.from_file,
    "vectors.json": golden.load,
    "trace.rows": lambda path: find([path]),
    "trace.parquet": lambda path: find([path]),
    "member.record": RecordReader,
}
ERRORS = (ConfigError, UsageError, TraceError)


@pytest.fixture(params=sorted(READERS))
def reader(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_pipe_is_not_waited_for(reader: str, tmp_path: Path) -> None:
    path = tmp_path / reader
    os.mkfifo(path)
    done: list[str] = []

    def read() -> None:
        with pytest.raises(ERRORS) as why:
            READERS[reader](path)
        done.append(str(why.value))

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    thread.join(10)
    assert done and "is not a regular file" in done[0]


def test_a_device_is_not_read(reader: str, tmp_path: Path) -> None:
    path = tmp_path / reader
    path.symlink_to("/dev/zero")
    with pytest.raises(ERRORS, match="is not a regular file"):
        READERS[reader](path)


@pytest.mark.parametrize("name", ["group.toml", "scenario.toml", "sweep.toml"])
@pytest.mark.parametrize("text", [f"x = {LONG}", f"x = 0x{LONG}", f"x = {NESTED}", f"{'a.' * 3000}b = 1", "[" * 9000])
def test_files_with_long_and_deep_values(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ConfigError) as why:
        READERS[name](path)
    assert all(len(line) < 400 for line in str(why.value).splitlines())


@pytest.mark.parametrize("text", [f'{{"format": {LONG}}}', "[" * 100_000, '{"a":' * 100_000])
def test_vectors_with_long_and_deep_values(text: str, tmp_path: Path) -> None:
    path = tmp_path / "vectors.json"
    path.write_text(text)
    with pytest.raises(UsageError, match="expected"):
        golden.load(path)


def test_numbers_that_are_meant_are_taken() -> None:
    whole = msgspec.structs.replace(Scenario(), timeout_ms=1.0, limit_ms=1.0, seed=2**64 - 1, heal_ms=0.0)
    assert Scenario.from_dict(whole.to_dict()) == whole

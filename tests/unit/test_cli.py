"""The command line as such: lazy, quiet, and with the right exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from ordercast import cli
from ordercast.cli.common import Number, Progress, Seed, Whole, emit, output_directory
from ordercast.errors import ConfigError, RunError, UsageError
from ordercast.sim.scenario import Scenario
from ordercast.version import __version__
from ordercast.words import near, short

HEAVY = ("asyncio", "socket", "numpy", "pyarrow", "pandas", "pyspark", "matplotlib", "rich", "ordercast.protocols")


def ordercast(*args: str, **kwargs: object) -> subprocess.CompletedProcess[str]:
    settings: dict = {"capture_output": True, "text": True, "timeout": 60, "stdin": subprocess.DEVNULL} | kwargs
    return subprocess.run([sys.executable, "-m", "ordercast", *args], **settings)


def test_version() -> None:
    assert ordercast("--version").stdout == f"ordercast {__version__}\n"


def test_help_lists_what_exists_and_imports_nothing_heavy() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "ordercast", "--help"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0
    assert "doctor" in done.stdout and "protocols" in done.stdout
    imported = {line.rsplit("|", 1)[1].strip() for line in done.stderr.splitlines() if "|" in line}
    assert "click" in imported
    assert not [name for name in imported if name.startswith(HEAVY)]


def test_every_listed_command_can_be_imported_and_has_help_and_json() -> None:
    context = click.Context(cli.group)
    names = cli.group.list_commands(context)
    assert {"doctor", "protocols"} <= set(names) <= set(cli.COMMANDS)
    for name in names:
        command = cli.group.get_command(context, name)
        assert command is not None and command.name == name
        assert command.help, f"{name} has no help"
        options = {opt for param in command.params for opt in param.opts}
        assert "--json" in options, f"{name} has no --json"


def test_run_and_simulate_agree_on_names_and_protocol() -> None:
    context = click.Context(cli.group)
    run, simulate = (cli.group.get_command(context, name) for name in ("run", "simulate"))
    assert run is not None and simulate is not None
    for shared in ("protocol", "members", "messages", "size", "service", "trace", "out", "force", "as_json"):
        one, other = ({p.name: p.opts for p in command.params}[shared] for command in (run, simulate))
        assert one == other
    assert {p.name: p.default for p in run.params}["protocol"] == Scenario().protocol == "totem"


def test_no_command_prints_help_and_fails() -> None:
    done = ordercast()
    assert done.returncode == 2 and "Commands:" in done.stderr and not done.stdout


def behind(interrupt: BaseException) -> Exception:
    """What a library failed at while it cleaned up."""
    error = RunError("the connection is gone")
    error.__context__ = interrupt
    return error


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (UsageError("this is wrong"), 2, ["ordercast: doctor: this is wrong"]),
        (ConfigError(["one", "two"]), 2, ["ordercast: doctor: one", "ordercast: doctor: two"]),
        (RunError("member 3 died"), 1, ["ordercast: doctor: member 3 died"]),
        (RunError("doctor: said before"), 1, ["ordercast: doctor: said before"]),
        (KeyboardInterrupt(), 130, ["ordercast: doctor: interrupted"]),
        (KeyboardInterrupt("interrupted: 3 are done"), 130, ["ordercast: doctor: interrupted: 3 are done"]),
        (behind(KeyboardInterrupt()), 130, ["ordercast: doctor: interrupted"]),
        (BrokenPipeError(), 1, ["ordercast: doctor: standard output was closed before everything was written"]),
        (FileNotFoundError(2, "No such file", "x.txt"), 1, ["ordercast: doctor: x.txt: No such file"]),
    ],
)
def test_errors_become_sentences_and_exit_codes(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    code: int,
    said: list[str],
) -> None:
    @click.command("doctor")
    def broken() -> None:
        raise error

    monkeypatch.setattr(cli.LazyGroup, "get_command", lambda self, ctx, name: broken)
    assert cli.main(["doctor"]) == code
    assert capsys.readouterr().err.splitlines() == said


def test_a_command_returns_its_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command("doctor")
    def failed() -> int:
        return 1

    monkeypatch.setattr(cli.LazyGroup, "get_command", lambda self, ctx, name: failed)
    assert cli.main(["doctor"]) == 1


def test_reader_gone() -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        done = ordercast("protocols", "--help", capture_output=False, stdout=write, stderr=subprocess.PIPE)
    finally:
        os.close(write)
    assert done.returncode == 1
    assert done.stderr == "ordercast: protocols: standard output was closed before everything was written\n"


def test_disk_full() -> None:
    with open("/dev/full", "w") as full:
        done = ordercast("--help", capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert done.stderr == "ordercast: writing failed: No space left on device\n"


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams(closed: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f'"{sys.executable}" -m ordercast protocols --json {closed}'],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n") == (0 if closed.startswith(">") or " >" in closed else 1)


@pytest.mark.parametrize(
    "env", [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0"}, {"LANG": "nowhere"}]
)
def test_locale_without_utf8(env: dict[str, str]) -> None:
    done = ordercast("größe", env=os.environ | env)
    assert done.returncode == 2
    assert done.stderr.startswith("ordercast: unknown command") and done.stderr.count("\n") == 1


def test_doctor_says_how_to_fix(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from ordercast.cli import doctor

    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setenv("PYSPARK_PYTHON", "/nowhere/python")
    assert doctor.java().fix == "unset JAVA_HOME"
    assert cli.main(["doctor", "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    wrong = {c["name"]: c["fix"] for c in answer["checks"] if not c["ok"] and c["needed"]}
    assert answer["version"] == 1 and not answer["ok"]
    assert wrong["Java"] and wrong["PYSPARK_PYTHON"]
    assert cli.main(["doctor"]) == 1
    said = capsys.readouterr().out
    assert "fix: unset PYSPARK_PYTHON" in said and said.endswith(" of these must be fixed first\n")


def test_doctor_knows_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    from ordercast.cli import doctor

    check = doctor.package("pandas", (2,), (3,))
    for version, ok in (("2.3.3", True), ("3.0.1", False), ("1.9", False), ("2", True)):
        monkeypatch.setattr(doctor.metadata, "version", lambda name, version=version: version)
        assert check().ok is ok
    monkeypatch.undo()
    assert not doctor.package("no-such-package-here")().ok


@pytest.mark.parametrize("text", ["", " ", "1e9", "abc", "-1", "0", "65", "1_0", "٣", "9" * 500, "0x10", "1.0", "+3"])
def test_whole_numbers_refuse(text: str) -> None:
    with pytest.raises(click.BadParameter, match="expected a whole number from 1 to 64"):
        Whole(1, 64).convert(text, None, None)


@pytest.mark.parametrize(("text", "number"), [("1", 1), ("64", 64), ("007", 7), (" 3 ", 3)])
def test_whole_numbers_take(text: str, number: int) -> None:
    assert Whole(1, 64).convert(text, None, None) == number


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "-1", "0", "x", "1e999"])
def test_numbers_refuse(text: str) -> None:
    with pytest.raises(click.BadParameter, match="expected a number above 0"):
        Number(0, above=True).convert(text, None, None)


def test_seeds() -> None:
    assert Seed().convert(str(2**64 - 1), None, None) == 2**64 - 1
    for text in (str(2**64), "-1", "1.5", "abc", "", "1e3", "9" * 5000):
        with pytest.raises(click.BadParameter, match=r"2\^64-1"):
            Seed().convert(text, None, None)


def test_words() -> None:
    assert near("membres", ["--members", "members"]) == "membres; did you mean members?"
    assert near("xyz", ["members"]) == "xyz"
    assert near("--seed", ["--size", "--help"], ignore="-") == "--seed"
    assert near("--sise", ["--size", "--help"], ignore="-") == "--sise; did you mean --size?"
    assert short("a\nb") == "'a\\nb'" and short("") == "''"
    assert len(short("x" * 10_000)) <= 60


def test_emit_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    emit({"text": "a\nb", "rate": 1.5}, True, "unused")
    emit({}, False, lambda: "words")
    first, second = capsys.readouterr().out.splitlines()
    assert json.loads(first) == {"version": 1, "text": "a\nb", "rate": 1.5} and second == "words"


def test_progress_is_silent_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("working", 10) as bar:
        for _ in range(10):
            bar.advance()
        bar.say("next stage")
    assert capsys.readouterr().err == ""


def test_output_directory(tmp_path: Path) -> None:
    out = tmp_path / "a" / "b"
    output_directory(out, False)
    (out / "trace").mkdir()
    (out / "trace" / "rows").write_text("x")
    with pytest.raises(UsageError, match="--force"):
        output_directory(out, False)
    assert (out / "trace" / "rows").exists()
    output_directory(out, True)
    assert not (out / "trace").exists()

    precious = tmp_path / "home"
    precious.mkdir()
    (precious / "thesis.tex").write_text("x")
    with pytest.raises(UsageError, match=r"thesis\.tex"):
        output_directory(precious, True)
    assert (precious / "thesis.tex").exists()

    with pytest.raises(UsageError, match="is not a directory"):
        output_directory(precious / "thesis.tex", True)
    with pytest.raises(UsageError, match="cannot be written"):
        output_directory(precious / "thesis.tex" / "below", True)
    with pytest.raises(UsageError, match="cannot be written"):
        output_directory(Path("/proc/none/out"), False)


def test_protocols_tells_every_option_with_its_default_and_what_is_legal() -> None:
    told = {each["name"]: each for each in json.loads(ordercast("protocols", "--json").stdout)["protocols"]}
    share = "a share of the members, from 1/2 to below 1, such as 0.5 or 5/8"
    assert {"name": "phi", "default": "1/2", "legal": share} in told["toto"]["options"]
    lag = {"name": "request_lag", "default": 0, "legal": "a whole number from 0 to 64"}
    assert lag in told["totem"]["options"]
    assert "    option strict=true: true or false\n" in ordercast("protocols").stdout

"""`ordercast run` and `ordercast bench` with real processes on loopback."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import pytest

from ordercast.cli.run import late
from ordercast.errors import TraceError
from ordercast.lab.bench import free_ports
from ordercast.lab.run_plan import Fault, RunPlan
from ordercast.trace.load import load
from ordercast.trace.reader import RowReader
from ordercast.trace.rows import SUFFIX
from ordercast.trace.schema import Kind

from .conftest import WAIT_SECONDS, Cli, processes_with, wait_for


def members_of(directory: Path) -> list[int]:
    """The processes of a run's members."""
    return processes_with(str(directory / "group.toml"))


def test_a_run_delivers_everything_and_is_verified(cli: Cli, tmp_path: Path) -> None:
    words = ("--protocol", "token_site", "--members", "3", "--messages", "300", "--size", "50", "--verify", "plain")
    answer = cli.json("run", *words, "--out", "o")
    assert answer["messages"] == answer["delivered"] == 300
    assert answer["violations"] == 0
    assert {v["promise"] for v in answer["verdicts"]} >= {"S1", "S2", "S3", "S15", "S17", "S19", "L3"}
    assert all(v["verdict"] == "holds" for v in answer["verdicts"] if v["promise"] in ("S1", "S2", "S17", "L3"))
    (trace,) = load(tmp_path / "o" / "trace")
    kinds = {Kind(row.kind) for row in trace.rows if row.member == 0}
    assert kinds == {Kind.START, Kind.STABLE}
    ends = [row for row in trace.rows if row.kind == Kind.END]
    assert len(ends) == 3 and all(row.detail["traffic"]["received"] > 0 for row in ends)
    again = cli.run("run", "--members", "3", "--messages", "1", "--out", "o")
    assert again.returncode == 2 and "--force" in again.stderr


def test_unicast_mode_and_large_messages(cli: Cli) -> None:
    words = ("--members", "2", "--messages", "20", "--size", "200000", "--mode", "unicast", "--verify", "none")
    answer = cli.json("run", *words, "--out", "o")
    assert answer["messages"] == answer["delivered"] == 20


def test_a_killed_member_leaves_a_readable_trace_and_the_run_says_who_died(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "o"
    run = cli.start(
        "run",
        "--protocol",
        "token_site",
        "--members",
        "3",
        "--messages",
        "6000",
        "--rate",
        "2000",
        "--out",
        "o",
        "--verify",
        "none",
    )
    rows = wait_for(lambda: [p for p in out.glob(f"trace/member-2-*{SUFFIX}") if written(p) > 50])
    victim = wait_for(lambda: [p for p in members_of(out) if f"--id\0{2}\0".encode() in _words(p)])
    os.kill(victim[0], signal.SIGKILL)
    said, _ = run.communicate(timeout=WAIT_SECONDS)
    assert run.returncode == 0
    assert "member 2 was killed by SIGKILL" in said, "the others go on"
    read_back = RowReader(rows[0]).rows()
    assert [row.index for row in read_back] == list(range(1, len(read_back) + 1))
    assert Kind.END not in {row.kind for row in read_back}
    assert not members_of(out)


def written(path: Path) -> int:
    try:
        return len(RowReader(path).rows())
    except TraceError:
        return 0  # it is just being made


def _words(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@pytest.mark.parametrize("how", ["once", "twice", "killed"])
def test_nothing_is_left_after_an_interrupt(cli: Cli, tmp_path: Path, how: str) -> None:
    out = tmp_path / "o"
    run = cli.start("run", "--members", "3", "--messages", "1000000", "--rate", "500", "--out", "o", "--verify", "none")
    wait_for(lambda: len(list(out.glob(f"trace/*{SUFFIX}"))) == 4)
    assert len(members_of(out)) == 3
    if how == "killed":
        run.send_signal(signal.SIGKILL)
        assert run.wait(timeout=WAIT_SECONDS) == -signal.SIGKILL
    else:
        run.send_signal(signal.SIGINT)
        if how == "twice":
            run.send_signal(signal.SIGINT)
        assert run.wait(timeout=WAIT_SECONDS) == 130
    wait_for(lambda: not members_of(out))
    if how == "once":
        ends = [p for p in out.glob(f"trace/member-[123]-*{SUFFIX}") if RowReader(p).rows()[-1].kind == Kind.END]
        assert len(ends) == 3, "an interrupted run ends its traces"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--kill", "9@1"), "expected a member from 1 to 4"),
        (("--restart", "2@1"), "member 2 is up then"),
        (("--kill", "2@1", "--kill", "2@2"), "member 2 is dead then"),
        (("--pause", "2@1"), "--resume"),
        (("--members", "1", "--kill", "1@1"), "at least one"),
        (("--kill", "2"), "MEMBER@SECONDS"),
        (("--kill", "x@1"), "MEMBER@SECONDS"),
        (("--senders", "9"), "at most"),
        (("--service", "quasi"), "provides"),
    ],
)
def test_what_cannot_be_run_is_told_in_one_sentence(cli: Cli, words: tuple[str, ...], said: str) -> None:
    done = cli.run("run", "--protocol", "totem", "--out", "o", *words)
    assert done.returncode == 2 and said in done.stderr and len(done.stderr.splitlines()) == 1
    assert not list(cli.cwd.iterdir())


@pytest.mark.parametrize(
    ("messages", "rate", "faults", "said"),
    [
        (1000, 1000.0, [], ""),
        (1000, 1000.0, [("kill", 1, 0.9)], ""),
        (
            1000,
            1000.0,
            [("kill", 1, 1.5)],
            "--kill 1@1.5 comes late: the load (1000 messages at 1000 a second) is over",
        ),
        (1000, 1000.0, [("pause", 1, 2.0), ("resume", 1, 3.0)], "--pause 1@2 comes late"),
        (1000, 1000.0, [("kill", 1, 0.5), ("restart", 1, 5.0)], ""),  # sends the rest of its share then
        (1000, 1000.0, [("kill", 1, 0.5), ("restart", 1, 1.5), ("kill", 2, 1.8)], ""),
        (10, 0.0, [("kill", 1, 99.0)], "--kill 1@99 comes late: the load (10 messages at once, without --rate) may be"),
        (10**6, 0.0, [("kill", 1, 2.0)], ""),
    ],
)
def test_a_fault_after_the_load_is_told(
    messages: int, rate: float, faults: list[tuple[str, int, float]], said: str
) -> None:
    told = late(RunPlan(protocol="totem", messages=messages, rate=rate, faults=tuple(Fault(*f) for f in faults)))
    assert told.startswith(said) and bool(told) == bool(said)


def test_it_is_told_before_anything_starts_and_carried_out(cli: Cli) -> None:
    done = cli.run("run", "--members", "2", "--messages", "10", "--kill", "1@0.2", "--verify", "none", "--out", "o")
    assert done.returncode == 0 and "killed" in done.stdout
    assert done.stderr.startswith("ordercast: run: --kill 1@0.2 comes late") and len(done.stderr.splitlines()) == 1


def test_delivered_everywhere_means_where_nobody_died(cli: Cli) -> None:
    words = ("--members", "3", "--messages", "1500", "--rate", "1000", "--kill", "2@0.5", "--verify", "none")
    told = cli.json("run", *words, "--out", "o")
    assert told["messages"] >= told["delivered"] >= 1000  # the survivors' share; of the victim's the last may be lost


@pytest.mark.parametrize("mode", ["multicast", "unicast"])
def test_bench_prints_its_figures(cli: Cli, mode: str) -> None:
    words = ("--members", "3", "--size", "100", "--senders", "2", "--seconds", "0.5", "--mode", mode)
    figures = cli.json("bench", *words)
    assert figures["same_order"] is True
    assert figures["msgs_s"] > 0 and figures["mb_s"] > 0 and figures["cpu_us_per_msg"] > 0
    assert 0 < figures["p50_us"] <= figures["p99_us"]
    paced = cli.json("bench", *words, "--rate", "200", "--size", "16")
    assert paced["same_order"] is True and paced["messages"] > 0


def test_two_runs_share_a_port(cli: Cli, tmp_path: Path) -> None:
    """The group id keeps them apart: same multicast address and port, other groups."""
    port, *own = free_ports(3)
    files = []
    for k, at in enumerate(own, 1):
        path = tmp_path / f"group-{k}.toml"
        path.write_text(
            f'group = "apart-{k}"\nprotocol = "token_site"\ninsecure = true\n'
            f'state_dir = "s{k}"\ntrace.level = "off"\nnet.port = {port}\n'
            f'[[member]]\nid = 1\naddress = "127.0.0.1:{at}"\n'
        )
        files.append(path)
    members = [cli.start("member", "--config", str(path), "--id", "1", stdin=-1) for path in files]
    for k, member in enumerate(members, 1):
        member.stdin.write(f"from {k}\n")
        member.stdin.flush()
    for k, member in enumerate(members, 1):
        view, message = json.loads(member.stdout.readline()), json.loads(member.stdout.readline())
        assert view["event"] == "view" and message["data"] == f"from {k}"
    wait_for(lambda: cli.json("status", "--config", str(files[0]))["members"][0]["drops"].get("group"))
    for member in members:
        member.send_signal(signal.SIGTERM)
        assert member.wait(timeout=WAIT_SECONDS) == 0


def test_the_report_is_one_self_contained_page(cli: Cli, tmp_path: Path) -> None:
    answer = cli.json("run", "--members", "2", "--messages", "100", "--out", "o", "--verify", "plain")
    page = Path(answer["report"]).read_text()
    assert page.startswith("<!") and "<svg" in page
    assert not re.findall(r"""(?:src|href)=["']?https?:""", page), "it loads nothing"
    for promise in ("S1", "S17", "L3"):
        assert promise in page


def test_quasi_order_through_a_pause_a_restart_and_another_tagger_which_is_not_left_behind(
    cli: Cli, tmp_path: Path
) -> None:
    words = ("--protocol", "dpg", "--members", "3", "--messages", "900", "--rate", "400", "--verify", "plain")
    faults = ("--pause", "2@0.3", "--resume", "2@0.8", "--kill", "3@0.9", "--restart", "3@1.4")
    faults += ("--kill", "0@1.7", "--restart", "0@1.9")
    answer = cli.json("run", *words, *faults, "--out", "o")
    verdicts = {v["promise"]: v["verdict"] for v in answer["verdicts"]}
    assert verdicts["S1"] == verdicts["S2"] == verdicts["S3"] == verdicts["L6"] == "holds"
    assert verdicts["Q1"] in ("holds", "cannot judge") and answer["violations"] == 0
    assert not members_of(tmp_path / "o")
    (trace,) = load(tmp_path / "o" / "trace")
    assert {row.member for row in trace.rows if row.kind == Kind.PRESENT} == {1, 2, 3}

"""`ordercast member` and `ordercast status`, and the example of the README, as users run them."""

from __future__ import annotations

import json
import random
import signal
import socket
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ordercast.lab.bench import free_ports
from ordercast.trace.load import load
from ordercast.trace.schema import Kind

from .conftest import WAIT_SECONDS, Cli, apart, environment, examples, wait_for


def lines(process: subprocess.Popen[str], count: int) -> list[dict[str, Any]]:
    """The next events, without the time of day, which is each member's own."""
    assert process.stdout is not None
    events = [json.loads(process.stdout.readline()) for _ in range(count)]
    for event in events:
        del event["time"]
    return events


def test_lines_are_sent_deliveries_and_views_are_printed(cli: Cli, group_file: Callable[..., Path]) -> None:
    file = str(group_file(2))
    members = [
        cli.start("member", "--config", file, "--id", str(k), *words, stdin=subprocess.PIPE)
        for k, words in ((1, ()), (2, ("--json",)))  # the same either way
    ]
    for member in members:
        _until_view(member, [1, 2])
    for k, member in enumerate(members, 1):
        member.stdin.write(f"one from {k}\nzwei \u00e4 from {k}\n")
        member.stdin.flush()
    logs = [lines(member, 4) for member in members]
    assert logs[0] == logs[1]
    assert sorted(e["data"] for e in logs[0]) == [
        "one from 1",
        "one from 2",
        "zwei \u00e4 from 1",
        "zwei \u00e4 from 2",
    ]

    status = cli.json("status", "--config", file)
    assert status["running"] == 2
    for each in status["members"]:
        assert each["view"]["members"] == [1, 2] and each["view"]["cause"]
        assert each["timers_ms"] and "unread_frames" in each["queues"] and each["drops"] == {} and each["waits"] == []
        assert each["insecure"] is True
    second = cli.run("member", "--config", file, "--id", "2")
    assert second.returncode == 2 and "already runs" in second.stderr and len(second.stderr.splitlines()) == 1

    members[0].stdin.close()  # the end of its input is not the end of the member
    members[1].stdin.write("last\n")
    members[1].stdin.flush()
    assert lines(members[0], 1)[0]["data"] == "last"
    for member in members:
        member.send_signal(signal.SIGTERM)
    assert [member.wait(timeout=WAIT_SECONDS) for member in members] == [0, 0]
    nobody = cli.run("status", "--config", file, "--json")
    assert nobody.returncode == 1 and json.loads(nobody.stdout)["members"][0]["error"] == "not running"


def test_a_second_process_with_a_members_id_ends_with_a_sentence(
    cli: Cli, group_file: Callable[..., Path], tmp_path: Path
) -> None:
    """On another machine, by its address and its state folder: the first stays, the group is whole afterwards."""
    file = group_file(3, protocol='"totem"')
    members = [cli.start("member", "--config", str(file), "--id", str(k), stdin=subprocess.PIPE) for k in (1, 2, 3)]
    for member in members:
        _until_view(member, [1, 2, 3])
    before = {each["member"]: each["incarnation"] for each in cli.json("status", "--config", str(file))["members"]}
    own = tomllib.loads(file.read_text())["member"][1]["address"]
    (port,) = free_ports(1)
    elsewhere = tmp_path / "elsewhere" / "group.toml"
    elsewhere.parent.mkdir()
    elsewhere.write_text(file.read_text().replace(own, f"127.0.0.1:{port}"))

    second = cli.run("member", "--config", str(elsewhere), "--id", "2")
    assert second.returncode == 1
    said = second.stderr.splitlines()[-1]
    assert "another process is member 2 and is in a view with others" in said and "expected one process" in said

    def whole() -> bool:
        status = cli.json("status", "--config", str(file))["members"]
        return all(each["view"]["members"] == [1, 2, 3] and not each["waits"] for each in status)

    wait_for(whole)
    after = {each["member"]: each["incarnation"] for each in cli.json("status", "--config", str(file))["members"]}
    assert after == before, "the lives that were there first"
    members[1].stdin.write("still here\n")
    members[1].stdin.flush()
    for member in members:
        while lines(member, 1)[0].get("data") != "still here":
            pass
        member.send_signal(signal.SIGTERM)
    assert [member.wait(timeout=WAIT_SECONDS) for member in members] == [0, 0, 0]
    assert "another process says it is this member" in members[1].stderr.read()


def _until_view(member: subprocess.Popen[str], ids: list[int]) -> None:
    while (event := lines(member, 1)[0])["event"] != "view" or (event["kind"], event["members"]) != ("regular", ids):
        pass


@pytest.mark.parametrize("protocol", ["token_site", "totem"])
def test_a_long_input_is_sent_by_batches_and_ended_cleanly(
    cli: Cli, group_file: Callable[..., Path], protocol: str
) -> None:
    """One that cannot be sent is named, and the others are sent."""
    count, large = 100_000, 17 * 2**20
    (file,) = [str(group_file(1, protocol=f'"{protocol}"'))]
    text = cli.cwd / "lines"
    text.write_text("\n".join(map(str, range(1, count + 1))) + "\n" + "x" * large + "\nlast")
    with open(text) as lines_of:
        member = cli.start("member", "--config", file, "--id", "1", stdin=lines_of)
        said = lines(member, count + 2)
        member.send_signal(signal.SIGTERM)
        assert member.wait(timeout=WAIT_SECONDS) == 0
    assert [event["data"] for event in said if event["event"] == "message"] == [*map(str, range(1, count + 1)), "last"]
    assert member.stderr is not None
    (told,) = member.stderr.read().splitlines()
    assert told.startswith(f"ordercast: line {count + 1} of standard input was not sent: a message of {large} bytes")


def test_an_input_without_end_is_given_up_with_a_sentence(cli: Cli, group_file: Callable[..., Path]) -> None:
    file = str(group_file(1, protocol='"totem"'))
    source = subprocess.Popen(["yes"], stdout=subprocess.PIPE)
    member = cli.start("member", "--config", file, "--id", "1", stdin=source.stdout, stdout=subprocess.PIPE)
    lines(member, 1_000)
    member.send_signal(signal.SIGTERM)
    out, err = member.communicate(timeout=WAIT_SECONDS)
    source.kill()
    source.communicate()
    assert member.returncode == 0
    last = json.loads(out.splitlines()[-1])["counter"]  # all that was accepted is delivered, and printed
    rest = f"ordercast: line {last + 1} of standard input and those after it were not sent: the group was left\n"
    assert err in (rest, ""), "nothing is said where no line was at hand"


def test_junk_on_a_members_ports_is_counted_and_disturbs_nothing(cli: Cli, group_file: Callable[..., Path]) -> None:
    file = group_file(2, timeout_ms="500")
    members = [cli.start("member", "--config", str(file), "--id", str(k), stdin=subprocess.PIPE) for k in (1, 2)]
    for member in members:
        _until_view(member, [1, 2])
    config = tomllib.loads(file.read_text())
    targets = [tuple(m["address"].split(":")) for m in config["member"]]
    rng = random.Random(3)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
        for k in range(3_000):
            junk = rng.randbytes(rng.choice((1, 31, 32, 33, 100, 1_400, 20_000)))
            if k % 3 == 0:
                junk = b"oc\x01\x00" + junk
            host, port = ("239.192.74.0", config["net"]["port"]) if k % 4 == 0 else targets[k % 2]
            sock.sendto(junk, (host, int(port)))
            if k % 500 == 0:
                members[k // 500 % 2].stdin.write(f"{k}\n")
                members[k // 500 % 2].stdin.flush()
    logs = [lines(member, 6) for member in members]
    assert logs[0] == logs[1]
    status = cli.json("status", "--config", str(file))
    for each in status["members"]:
        assert {"short", "magic"} <= set(each["drops"]) and each["waits"] == []
        assert each["view"]["members"] == [1, 2]
    for member in members:
        member.send_signal(signal.SIGINT)
    assert [member.wait(timeout=WAIT_SECONDS) for member in members] == [130, 130]


def test_a_recorded_run_replays_byte_for_byte(cli: Cli, tmp_path: Path) -> None:
    words = ("--members", "3", "--messages", "60", "--size", "40", "--trace", "record", "--verify", "none")
    cli.json("run", *words, "--out", "o")
    answer = cli.json("replay", str(tmp_path / "o"))
    assert len(answer["files"]) == 3
    assert all(each["passed"] > 50 and each["failed"] == 0 for each in answer["files"])
    recording = max((tmp_path / "o" / "trace").glob("*.inputs"))
    data = bytearray(recording.read_bytes())
    data[len(data) // 2] ^= 1
    recording.write_bytes(data)
    flipped = cli.run("replay", str(recording))
    assert flipped.returncode == 1 and "record" in flipped.stdout


def spoil(folder: Path, what: str) -> list[str]:
    """Damage what a member stored; the names of the files."""
    if what == "unreadable":
        (folder / "a.state").write_bytes(b"\xc1")
        (folder / "b.state").mkdir()
        return ["a.state", "b.state"]
    files = sorted(folder.glob(f"*{what}*.state"))
    for file in files:
        data = bytearray(file.read_bytes())
        data[-10] ^= 0x80  # the number's highest bit
        file.write_bytes(data)
    return [file.name for file in files]


def test_members_pass_over_damaged_records_say_so_and_join(cli: Cli, group_file: Callable[..., Path]) -> None:
    file = group_file(2, protocol='"totem"', **{"trace.level": '"full"'})

    def lives() -> list[subprocess.Popen[str]]:
        started = [cli.start("member", "--config", str(file), "--id", str(k), stdin=subprocess.PIPE) for k in (1, 2)]
        for member in started:
            while lines(member, 1)[0]["members"] != [1, 2]:
                pass
        return started

    def end(members: list[subprocess.Popen[str]]) -> list[str]:
        for member in members:
            member.send_signal(signal.SIGTERM)
        assert [member.wait(timeout=WAIT_SECONDS) for member in members] == [0, 0]
        return [member.stderr.read() for member in members]  # type: ignore[union-attr]

    assert end(lives()) == ["", ""]
    folders = [file.parent / "state" / f"member-{k}" for k in (1, 2)]
    damaged = [spoil(folders[0], "unreadable") + spoil(folders[0], "incarnation"), spoil(folders[1], "ring_seq")]
    assert len(damaged[0]) > 2 and damaged[1]
    members = lives()
    status = cli.json("status", "--config", str(file))
    assert [each["drops"]["disk"] for each in status["members"]] == [len(names) for names in damaged]
    assert end(members) == [
        f"ordercast: {folder}: damaged or unknown, and passed over: {', '.join(names)}\n"
        for folder, names in zip(folders, damaged, strict=True)
    ]
    (trace,) = load(file.parent / "trace")
    drops = [(row.member, row.detail) for row in trace.rows if row.kind == Kind.DROP and row.detail]
    told = [(member, detail["what"]) for member, detail in drops if detail["reason"] == "disk"]
    assert sorted(told) == [(k, name) for k, names in enumerate(damaged, 1) for name in names]
    assert max(row.incarnation for row in trace.rows if row.member) < 2**62


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("member", "--config", "nowhere.toml", "--id", "1"), "nowhere.toml"),
        (("member", "--config", "GROUP", "--id", "7"), "member 7 is not listed"),
        (("member", "--config", "GROUP"), "--id"),
        (("status",), "expected either"),
        (("status", "."), "group.toml"),
        (("status", "--config", "GROUP", "--id", "9"), "--id 9"),
        (("bench", "--members", "2", "--senders", "3"), "--senders 3"),
        (("bench", "--seconds", "0"), "--seconds"),
        (("bench", "--service", "quasi"), "provides agreed"),
    ],
)
def test_what_cannot_be_used_is_told_in_one_sentence(
    cli: Cli, group_file: Callable[..., Path], words: tuple[str, ...], said: str
) -> None:
    file = group_file(2)
    file.rename(cli.cwd / "other.toml")
    done = cli.run(*("other.toml" if word == "GROUP" else word for word in words))
    assert done.returncode == 2 and said in done.stderr and len(done.stderr.splitlines()) == 1
    assert [p.name for p in cli.cwd.iterdir()] == ["other.toml"]


THREE_TERMINALS = """
import signal, subprocess, sys
words = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
ps = [subprocess.Popen([sys.executable, sys.argv[1], k], **words) for k in sys.argv[2:]]
logs = [[p.stdout.readline() for _ in range(1 + 2 * len(ps))] for p in ps]
print(logs[0] == logs[1] == logs[2], *map(str.strip, logs[0]), sep="\\n")
first, second, third = ps
third.kill()
for p in (first, second):
    print(p.stdout.readline(), p.stdout.readline(), sep="", end="")
second.send_signal(signal.SIGINT)
print(second.communicate()[0] == "", second.returncode)
print(first.stdout.readline(), first.stdout.readline(), sep="", end="")
first.send_signal(signal.SIGINT)
print(first.communicate()[0] == "", first.returncode)
third.communicate()
"""


def test_the_example_of_the_readme_in_three_terminals(tmp_path: Path) -> None:
    _, example = examples()
    (tmp_path / "hello.py").write_text(example)
    (tmp_path / "three.py").write_text(THREE_TERMINALS)
    command = [sys.executable, str(tmp_path / "three.py"), str(tmp_path / "hello.py"), "1", "2", "3"]
    done = subprocess.run(
        apart(command),
        capture_output=True,
        text=True,
        env=environment(),
        cwd=tmp_path,
        timeout=WAIT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    same, view, *messages = done.stdout.splitlines()
    assert same == "True" and view == "REGULAR view of (1, 2, 3)" and "Traceback" not in done.stderr
    messages, after = messages[:6], messages[6:]
    two, one = ([f"{kind} view of {of}" for kind in ("TRANSITIONAL", "REGULAR")] for of in ("(1, 2)", "(1,)"))
    assert after == [*two, *two, "True 0", *one, "True 0"], "one was killed, then Ctrl-C twice"
    words = [f"{text} from {k}" for k in (1, 2, 3) for text in ("hello", "and good-bye")]
    assert sorted(messages) == sorted(words)

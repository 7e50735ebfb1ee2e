"""What a person can get wrong on the command line: exit code 2, one sentence on stderr, and nothing was written."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import click
import pytest

from ordercast import cli, interfaces

GROUP = """\
group = "demo"
insecure = true
[[member]]
id = 1
address = "127.0.0.1:7401"
"""

MEMBERS = [
    (["--members", text], f"--members {text}: expected a whole number from 1 to 64")
    for text in ("0", "-1", "1e9", "abc", "65", "4.0")
]
WORKLOAD = [
    *MEMBERS,
    (["--members", ""], "--members '': expected"),
    (["--members"], "requires an argument"),
    (["--membres", "3"], "unknown option --membres; did you mean --members?"),
    (["--protocol", "token_sit"], "--protocol token_sit; did you mean token_site?"),
    (["--protocol", "paxos"], "--protocol paxos (known: "),
    (["--protocol", "Totem"], "--protocol Totem; did you mean totem?"),
    (["--size", "-1"], "--size -1: expected a whole number from 0 to 16777216"),
    (["--size", "16777217"], "--size 16777217: expected"),
    (["--service", "total"], "--service total: expected one of fifo, causal, agreed, safe, quasi"),
    (["surplus"], "unexpected extra argument"),
]
SEEDS = [
    (["--seed", text], "expected a whole number from 0 to 2^64-1")
    for text in ("abc", "-1", "1.5", str(2**64), "9" * 4000)
]
NO_TRACE = [
    (["none"], "none: cannot be read: no such file or directory"),
    (["occupied"], "occupied: holds no trace: expected .parquet files or a directory with .rows files"),
]

CASES: dict[str, list[tuple[list[str], str]]] = {
    "run": [
        *WORKLOAD,
        (["--messages", "-5"], "--messages -5: expected"),
        (["--messages", "many"], "--messages many: expected"),
        (["--senders", "0"], "--senders 0: expected"),
        (["--members", "3", "--senders", "4"], "--senders 4: expected at most the 3 members"),
        (["--rate", "0"], "--rate 0: expected a number above 0"),
        (["--rate", "nan"], "--rate nan: expected"),
        (["--service", "quasi"], "provides agreed"),
        (["--option", "fair"], "--option fair: expected KEY=VALUE with an option of totem"),
        (["--option", "fairy=true"], "expected KEY=VALUE with an option of totem: max_messages"),
        (["--option", "fair=3"], "--option fair=3: expected true or false"),
        (["--option", "fair=yes"], "--option fair=yes: expected true or false"),
        (["--option", "request_lag=65"], "--option request_lag=65: expected a whole number from 0 to 64"),
        (
            ["--protocol", "toto", "--option", "phi=1/3"],
            "phi is 1/3: expected a share of the members",
        ),
        (["--protocol", "toto", "--option", "phi=1"], "phi is 1.0: expected a share of the members"),
        (["--protocol", "toto", "--option", "phi=[1]"], "--option phi=[1]: expected a share of the members"),
        (["--protocol", "hybrid", "--option", "active=9"], "--option active=9: expected ids of members, as [1, 3]"),
        (["--protocol", "hybrid", "--option", "active=[-1]"], "active=[-1]: expected ids of members, as [1, 3]"),
        (["--kill", "2"], "--kill 2: expected MEMBER@SECONDS"),
        (["--kill", "x@1"], "--kill x@1: expected"),
        (["--kill", "1@-1"], "--kill 1@-1: expected"),
        (["--kill", "1@nan"], "--kill 1@nan: expected"),
        (["--protocol", "totem", "--members", "3", "--kill", "4@1"], "--kill 4: expected a member from 1 to 3"),
        (["--protocol", "totem", "--restart", "2@1"], "--restart 2@1: member 2 is up then"),
        (["--protocol", "totem", "--kill", "2@2", "--restart", "2@1"], "--restart 2@1: member 2 is up then"),
        (["--protocol", "totem", "--resume", "2@1"], "--resume 2@1: member 2 is up then"),
        (["--pause", "2@x"], "--pause 2@x: expected MEMBER@SECONDS"),
        (["--verify", "maybe"], "--verify maybe: expected one of spark, plain, none"),
        (["--mode", "broadcast"], "--mode broadcast: expected one of multicast, unicast"),
        (["--trace", "loud"], "--trace loud: expected one of"),
        (["--out", "occupied"], "--out occupied: holds thesis.tex"),
        (["--out", "occupied", "--force"], "--out occupied: holds thesis.tex"),
        (["--out", "earlier"], "--force to replace it"),
        (["--out", "file.txt"], "--out file.txt: is not a directory"),
        (["--out", "file.txt/below"], "--out file.txt/below: cannot be written"),
        (["--out", "/proc/none"], "--out /proc/none: cannot be written"),
        (["--out", ""], "--out .: holds bad.toml, which no run of ordercast made"),
    ],
    "init": [
        *MEMBERS,
        (["--members", "3", "1=10.0.0.1:7400"], "--members and ID=ADDRESS: expected at most one of them"),
        (["x"], "x: expected ID=ADDRESS"),
        (["0=10.0.0.1:7400"], "0=10.0.0.1:7400: expected ID=ADDRESS"),
        ([f"{2**32}=10.0.0.1:7400"], "expected ID=ADDRESS such as 1=10.0.0.1:7400"),
        (["1=10.0.0.1:7400", "1=10.0.0.2:7400"], "1=10.0.0.2:7400: another member has this id: expected each once"),
        (
            ["1=10.0.0.1", "2=10.0.0.1", "--dir", "occupied"],
            "10.0.0.1:7400: member 1 has this address and port: give each its own",
        ),
        (["1=10.0.0.1", "2=[::1]", "--dir", "occupied"], "expected one kind of address in a group"),
        (["1=10.0.0.1:70000"], "1=10.0.0.1:70000: expected"),
        (["1=10.0.0.1:0"], "1=10.0.0.1:0: expected"),
        (["1="], "1=: expected the address of one machine"),
        (["1=a..b"], "1=a..b: expected the address of one machine"),
        (["1=239.1.1.1"], "1=239.1.1.1: expected the address of one machine"),
        (["1=0.0.0.0"], "1=0.0.0.0: expected the address of one machine"),
        (["--group", "", "--dir", "occupied"], "group: '': expected a printable name of 1 to 64 bytes"),
        (["--group", "x" * 65, "--dir", "occupied"], "expected a printable name of 1 to 64 bytes"),
        (["--protocol", "totme"], "--protocol totme; did you mean totem?"),
        (["--dir", "/nowhere/at/all"], "--dir /nowhere/at/all: expected a directory that is there"),
        (["--dir", "file.txt"], "expected a directory that is there"),
        ([], "group.toml: is there already: expected a folder without it (--dir)"),
    ],
    "keygen": [
        ([], "missing argument FILE"),
        (["/nowhere/at/all/group.key"], "/nowhere/at/all/group.key: cannot be written (no such file or directory)"),
        (["file.txt/group.key"], "file.txt/group.key: cannot be written (not a directory)"),
        (["file.txt"], "file.txt: is there already: expected a new name; whoever has the old key needs it"),
        (["/"], "/: is a directory: expected a file such as /group.key"),
        (["occupied"], "occupied: is a directory: expected a file such as occupied/group.key"),
        ([""], ".: is a directory: expected a file such as group.key"),
        (["a.key", "b.key"], "unexpected extra argument"),
    ],
    "key": [
        ([], "missing argument STEP"),
        (["ad", "0123456789abcdef", "--config", "no.toml"], "STEP ad: expected one of add, use, drop"),
        (["add", "--config", "no.toml"], "missing argument KEY"),
        (["add", "0123456789abcdef"], "missing option --config"),
        (["add", "0123456789abcdef", "--config", "no.toml"], "no.toml: cannot be read: No such file or directory"),
        (["add", "0123456789abcdef", "--config", "group.toml"], "insecure = true: expected a group with a key"),
        *[
            (["add", name, "--config", "keyed.toml"], f"{said}: no such file, and no name of a key: expected a file")
            for name, said in (("none.key", "none.key"), ("0123456789ABCDEF", "0123456789ABCDEF"), ("", "''"))
        ],
        (["add", "occupied", "--config", "keyed.toml"], "occupied: is no file: expected a key of 32 bytes"),
        (["use", "short.key", "--config", "keyed.toml"], "short.key: holds 31 bytes: expected a key of 32 bytes"),
        (["drop", "open.key", "--config", "keyed.toml"], "expected mode 0600 (chmod 600 open.key)"),
        (["add", "loop.key", "--config", "keyed.toml"], "no such file, and no name of a key"),
    ],
    "bench": [
        *WORKLOAD,
        (["--seconds", "0"], "--seconds 0: expected"),
        (["--seconds", "-1"], "--seconds -1: expected"),
        (["--seconds", "inf"], "--seconds inf: expected"),
        (["--senders", "0"], "--senders 0: expected"),
        (["--members", "3", "--senders", "4"], "--senders 4: expected at most the 3 members"),
        (["--rate", "-1"], "--rate -1: expected"),
        (["--service", "quasi"], "provides agreed"),
        (["--option", "fair"], "--option fair: expected KEY=VALUE with an option of totem"),
        (["--option", "fairy=true"], "expected KEY=VALUE with an option of totem: max_messages"),
        (["--option", "fair=3"], "--option fair=3: expected true or false"),
        (["--option", "fair=yes"], "--option fair=yes: expected true or false"),
        (["--mode", "x"], "--mode x: expected"),
        (["--mtu", "1"], "--mtu 1: expected"),
        (["--config", "none.toml"], "none.toml: cannot be read"),
        (["--config", "bad.toml"], "bad.toml: not valid TOML: invalid value (at line 1"),
    ],
    "simulate": [
        *WORKLOAD,
        *SEEDS,
        (["--messages", "-5"], "--messages -5: expected"),
        (["--protocol", "token_site", "--service", "safe"], "token_site provides agreed, not safe"),
        (["--protocol", "toto", "--set", "options.phi=0.4"], "phi is 0.4: expected a share of the members"),
        (["--trace", "loud"], "--trace loud: expected one of"),
        (["--trace", "record"], "--trace record: expected --out DIR beside it"),
        (["--set", "x"], "expected KEY=VALUE"),
        (["--set", "load.rat=5"], "did you mean rate?"),
        (["--set", "load.rate=abc"], "load.rate: abc: expected a number from 0.000001 to 1000000000"),
        (["--set", "net.model=lan"], "did you mean nets?"),
        (["--set", "members=0"], "members: 0: expected a whole number from 1 to 64"),
        (["--set", "timeout_ms=0"], "timeout_ms: 0: expected a number from 1 to 86400000"),
        (["--scenario", "none.toml"], "none.toml: cannot be read: No such file or directory"),
        (["--scenario", "bad.toml"], "bad.toml: not valid TOML: invalid value (at line 1"),
        (["--scenario", "occupied"], "is a directory: expected a file such as occupied/scenario.toml"),
        (["--out", "occupied"], "--out occupied: holds thesis.tex"),
        (["--out", "earlier"], "--out earlier: holds an earlier run"),
        (["--out", "file.txt"], "--out file.txt: is not a directory"),
    ],
    "tagger": [
        ([], "missing option --config"),
        (["--config", "/nowhere/group.toml"], "/nowhere/group.toml"),
    ],
    "member": [
        ([], "missing option --config"),
        (["--config", "group.toml"], "missing option --id"),
        (["--config", "none.toml", "--id", "1"], "none.toml: cannot be read: No such file or directory"),
        (["--config", "occupied", "--id", "1"], "occupied: is a directory"),
        (["--config", "empty.toml", "--id", "1"], "empty.toml: is empty"),
        (["--config", "bad.toml", "--id", "1"], "bad.toml: not valid TOML"),
        (["--config", "group.toml", "--id", "2"], "member 2 is not listed: expected one of 1"),
        (["--config", "group.toml", "--id", "0"], "--id 0: expected"),
        (["--config", "group.toml", "--id", "x"], "--id x: expected"),
        (["--config", "group.toml", "--id", "1", "--log", "xml"], "--log xml: expected one of text, json"),
        *[
            (["--config", "group.toml", "--id", "1", "--metrics", at], f"--metrics {at}: expected PORT (on loopback)")
            for at in ("0", "70000", "localhost:9400", "127.0.0.1", "127.0.0.1:x")
        ],
    ],
    "status": [
        ([], "expected either the directory of a run or --config FILE"),
        (["none"], "none/group.toml: cannot be read: No such file or directory"),
        (["file.txt"], "file.txt/group.toml: cannot be read: Not a directory"),
        (["--config", "none.toml"], "none.toml: cannot be read"),
        (["earlier", "--config", "group.toml"], "expected either the directory of a run or --config FILE"),
        (["--config", "group.toml", "--id", "9"], "--id 9: expected one of 1"),
        (["--id", "x"], "--id x: expected"),
    ],
    "views": [
        ([], "expected either the PATH of traces or --config FILE"),
        (["none"], "none: cannot be read: no such file or directory"),
        (["occupied"], "occupied: holds no trace"),
        (["file.txt"], "file.txt: "),
        (["occupied", "--config", "group.toml"], "expected either the PATH of traces or --config FILE"),
        (["--config", "none.toml"], "none.toml: cannot be read"),
        (["--config", "bad.toml"], "bad.toml: not valid TOML"),
    ],
    "replay": [
        ([], "missing argument PATH"),
        (["none.json"], "none.json: no such file"),
        (["occupied"], "occupied: holds no recording (*.inputs): expected a run made with --trace record"),
    ],
    "verify": [
        ([], "missing argument"),
        *NO_TRACE,
        (["earlier", "--promises", "S99"], "--promises S99: expected ids such as S1,S17,L3"),
    ],
    "compare": [
        (["--seeds", "3:3"], "--seeds 3:3: expected A:B with A below B"),
        (["--messages", "0"], "--messages 0: expected a whole number from 1"),
        (["--members", "65"], "--members 65: expected a whole number from 1 to 64"),
        (["--scenario", "nowhere.toml"], "nowhere.toml: "),
        (["--set", "load.rate=x"], "lan: load.rate: x: expected a number"),
        (["--protocol", "totem", "--set", "options.phi=0.7"], "options of totem: phi: unknown key phi"),
        (["--plain", "--master", "local[1]"], "--plain runs without Spark"),
        (["--plain", "--out", "occupied"], "--out occupied: holds thesis.tex"),
    ],
    "sweep": [
        ([], "missing argument FILE"),
        (["none.toml"], "none.toml: cannot be read: No such file or directory"),
        (["bad.toml"], "bad.toml: not valid TOML: invalid value (at line 1"),
        (["empty.toml"], "empty.toml: is empty: expected at least a [base] table with a protocol"),
        (["occupied"], "occupied: is a directory: expected a file such as occupied/sweep.toml"),
        (["good.toml", "--tasks", "0"], "--tasks 0: expected"),
        (["good.toml", "--conf", "x"], "--conf x: expected KEY=VALUE"),
    ],
    "papers": [
        (["totm"], "paper totm; did you mean totem?: expected one of toto, totem, tomp, hybrid, dpg"),
        (["toto", "--table", "9"], "table 9: toto has tables 1, 2, 3, 4, 5"),
        (["toto", "--figure", "3"], "figure 3 of toto is a listing"),
        (["toto", "--claim", "nope"], "claim nope: toto has claims"),
        (["--table", "x"], "--table x: expected"),
        (["--tasks", "0"], "--tasks 0: expected"),
        (["--plain", "--master", "local[1]"], "--plain runs without Spark"),
        (["tomp", "--plain", "--out", "occupied"], "--out occupied: holds thesis.tex"),
    ],
    "measure": [([], "missing argument"), *NO_TRACE],
    "report": [([], "missing argument"), *NO_TRACE],
    "swarm": [
        (["--protocol", "paxos"], "--protocol paxos (known: "),
        (["--wrong"], "unknown option --wrong"),
        (["--seeds", "x"], "--seeds x: expected"),
        (["--seeds", "5:3"], "--seeds 5:3: expected"),
        (["--seeds", "-1:2"], "--seeds -1:2: expected"),
        (["--seeds", f"0:{2**64 + 1}"], "expected A:B with whole numbers from 0"),
        (["--minutes", "0"], "--minutes 0: expected"),
        (["--minutes", "nan"], "--minutes nan: expected"),
        (["--jobs", "0"], "--jobs 0: expected"),
        (["--shrink", "-1"], "--shrink -1: expected"),
        (["--seeds", "1", "--out", "occupied"], "--out occupied: holds thesis.tex"),
        (["--seeds", "1", "--out", "file.txt"], "--out file.txt: is not a directory"),
    ],
    "protocols": [(["--jsn"], "unknown option --jsn; did you mean --json?"), (["x"], "unexpected extra argument")],
    "doctor": [(["--fix"], "unknown option --fix"), (["x"], "unexpected extra argument")],
}
GENERAL = [
    (["simulat"], "unknown command simulat"),
    (["RUN"], "unknown command RUN"),
    (["x" * 5000], "unknown command xxx"),
    (["a\nb"], "unknown command 'a\\nb'"),
    ([""], "unknown command ''"),
    (["--verbose"], "unknown option --verbose"),
    (["--jso", "run"], "unknown option --jso"),
]


def present() -> list[str]:
    return cli.group.list_commands(click.Context(cli.group))


def table() -> list[tuple[list[str], str]]:
    return GENERAL + [([name, *args], said) for name in present() for args, said in CASES[name]]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with the usual obstacles in it."""
    (tmp_path / "occupied").mkdir()
    (tmp_path / "occupied" / "thesis.tex").write_text("precious")
    (tmp_path / "earlier").mkdir()
    (tmp_path / "earlier" / ".ordercast").touch()
    (tmp_path / "file.txt").write_text("text")
    (tmp_path / "group.toml").write_text(GROUP)
    (tmp_path / "empty.toml").write_text("")
    (tmp_path / "bad.toml").write_text("group = \n")
    (tmp_path / "good.toml").write_text('[base]\nprotocol = "token_site"\n')
    for name, size, mode in (("group", 32, 0o600), ("short", 31, 0o600), ("open", 32, 0o640)):
        (tmp_path / f"{name}.key").write_bytes(b"k" * size)
        (tmp_path / f"{name}.key").chmod(mode)
    (tmp_path / "loop.key").symlink_to("loop.key")
    (tmp_path / "keyed.toml").write_text(GROUP.replace("insecure = true", 'key = "group.key"'))
    monkeypatch.setattr(interfaces, "in_own_namespace", lambda: False)
    for name in [name for name in os.environ if name.startswith("ORDERCAST_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contents(path: Path) -> dict[str, bytes]:
    return {str(p.relative_to(path)): p.read_bytes() if p.is_file() else b"" for p in sorted(path.rglob("*"))}


@pytest.mark.parametrize(
    ("args", "said"), table(), ids=lambda value: " ".join(value)[:60] if type(value) is list else ""
)
def test_bad_input(desk: Path, capsys: pytest.CaptureFixture[str], args: list[str], said: str) -> None:
    before = contents(desk)
    code = cli.main(args)
    out, err = capsys.readouterr()
    assert code == 2, err
    assert out == ""
    where = f"{args[0]}: " if args[0] in cli.COMMANDS else ""
    assert err.startswith(f"ordercast: {where}") and err.count("\n") == 1, err
    assert not where or not err.startswith(f"ordercast: {where}{where}")
    assert said in err
    assert len(err) < 400
    assert contents(desk) == before, "something was written"


@pytest.mark.parametrize(
    ("address", "net", "said"),
    [
        ("127.0.0.1:0", "", ["expected a port from 1 to 65535"]),
        ("127.0.0.1:70000", "", ["expected a port from 1 to 65535"]),
        (
            "[2001:db8::7]:7401",
            'mode = "unicast"',
            ["insecure: member 1", "2001:db8::7 is not an address of this machine"],
        ),
        ("203.0.113.9", 'mode = "unicast"', ["insecure: member 1", "203.0.113.9 is not an address of this machine"]),
        ("203.0.113.9", "", ["net.interface: is missing", "insecure: member 1", "not an address of this machine"]),
        ("127.0.0.1", 'interface = "nosuch0"', ["net.interface: nosuch0: no such interface"]),
        ("127.0.0.1", "port = 0", ["net.port: 0: expected"]),
    ],
)
def test_addresses(desk: Path, capsys: pytest.CaptureFixture[str], address: str, net: str, said: list[str]) -> None:
    text = f'group = "g"\ninsecure = true\n[net]\n{net}\n[[member]]\nid = 1\naddress = "{address}"\n'
    (desk / "group.toml").write_text(text)
    before = contents(desk)
    assert cli.main(["member", "--config", "group.toml", "--id", "1"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(said) and all(line.startswith("ordercast: member: group.toml: ") for line in lines), lines
    for part, line in zip(said, lines, strict=True):
        assert part in line
    assert contents(desk) == before


def test_port_in_use(desk: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 0))
        port = other.getsockname()[1]
        (desk / "group.toml").write_text(GROUP.replace("7401", str(port)))
        done = subprocess.run(
            [sys.executable, "-m", "ordercast", "member", "--config", "group.toml", "--id", "1"],
            capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.count("\n") == 1 and f"port {port} at 127.0.0.1 is in use by another process" in done.stderr


@pytest.mark.parametrize("name", present())
def test_every_command_has_cases(name: str) -> None:
    assert CASES[name]


@pytest.mark.parametrize("name", present())
def test_json_keeps_errors_off_stdout(name: str, desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([name, "--json", "--no-such-option"]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("ordercast: ")

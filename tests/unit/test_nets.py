"""Several rings in group.toml: read, written back, and every fault told at once."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from ordercast import config, keyfiles
from ordercast.cli import bench as cli_bench
from ordercast.cli import run as cli_run
from ordercast.errors import ConfigError, UsageError
from ordercast.lab import bench
from ordercast.lab.bench import BenchPlan
from ordercast.lab.launcher import RunPlan, check, make_config
from ordercast.live.build import ring_addresses
from ordercast.registry import get

GOOD = """
group = "demo"
protocol = "multiring"
insecure = true
[[net]]
ring = 1
port = 7400
members = [1, 2]
[[net]]
ring = 2
address = "239.192.74.2"
port = 7400
members = [2, 3]
[[member]]
id = 1
address = "127.0.0.1:7401"
[[member]]
id = 2
address = ["127.0.0.1:7402", "127.0.0.1:7412"]
[[member]]
id = 3
address = "127.0.0.1:7403"
"""


def read(tmp_path: Path, text: str) -> config.GroupConfig:
    path = tmp_path / "group.toml"
    path.write_text(text)
    return config.load(path, 2, {})


def faults(tmp_path: Path, text: str) -> str:
    with pytest.raises(ConfigError) as why:
        read(tmp_path, text)
    return "\n".join(why.value.faults)


def test_whoever_is_not_on_a_ring_needs_no_interface_of_it(tmp_path: Path) -> None:
    """One file for all machines: each has the interfaces of its own rings."""
    path = tmp_path / "group.toml"
    path.write_text(GOOD.replace("ring = 2\n", 'ring = 2\ninterface = "eth77"\n'))
    assert [ring.number for ring in config.load(path, 1, {}).rings] == [1, 2]
    assert [ring.number for ring in config.load(path, None, {}, here=False).rings] == [1, 2]
    for me in (2, 3):
        with pytest.raises(ConfigError, match=r"net\[1\].interface: eth77: no such interface here"):
            config.load(path, me, {})


def test_rings_are_read_and_written_back(tmp_path: Path) -> None:
    got = read(tmp_path, GOOD)
    assert got.ids == (1, 2, 3)
    assert [(ring.number, ring.addresses) for ring in got.rings] == [
        (1, {1: ("127.0.0.1", 7401), 2: ("127.0.0.1", 7402)}),
        (2, {2: ("127.0.0.1", 7412), 3: ("127.0.0.1", 7403)}),
    ]
    assert not got.pure
    pure = read(tmp_path, GOOD.replace("id = 2\n", "id = 2\npure = true\n"))
    assert pure.pure == (2,) and config.make(pure, 2).pure == (2,)
    again = tmp_path / "again"
    again.mkdir()
    assert read(again, config.dump(got)).rings == got.rings
    assert set(ring_addresses(got, 2, get("multiring"))) == {0, 1}
    assert set(ring_addresses(got, 3, get("multiring"))) == {1}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("members = [2, 3]", "members = [3]", "ring 2 shares no member with the others"),
        ("members = [2, 3]", "members = [2]", "member 3 is on no ring"),
        ("members = [2, 3]", "members = [2, 3, 9]", "member 9 is not listed"),
        ('address = "239.192.74.2"\n', "", "ring 1 has this address and port: give each its own"),
        ("ring = 2", "ring = 1", "another net has this number"),
        ("ring = 2", "ring = 17", "1 to 16"),
        ('protocol = "multiring"', 'protocol = "totem"', "which totem does not join"),
        ('["127.0.0.1:7402", "127.0.0.1:7412"]', '"127.0.0.1:7402"', "1 addresses: expected one for each of 2 rings"),
        ("id = 3", "id = 1", "another member has this id"),
        ("members = [2, 3]", "members = [2, 3, 3]", "member 3 is named twice: expected each once"),
        ("id = 3\n", "id = 3\npure = true\n", "member 3 is on one ring: expected a gateway"),
        ("127.0.0.1:7403", "127.0.0.1:7401", "127.0.0.1:7401: given twice, to members 1 and 3"),
        ('"127.0.0.1:7403"', '"some.name:7403"', "names are looked up in groups on one network only"),
    ],
)
def test_each_fault_is_one_sentence(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert old in GOOD
    assert words in faults(tmp_path, GOOD.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("members = [2, 3]", "members = []", "net[1].members: is empty: expected the ids of who is on it"),
        ("members = [2, 3]\n", "", "net[1].members: is missing: expected the ids of who is on it"),
        ("members = [2, 3]", "members = [2, true]", "net[1].members[1]: true: expected a whole number"),
        ('"127.0.0.1:7403"', '"some.name:7403"', "member[2].address: some.name:7403: names are looked up"),
    ],
)
def test_what_follows_from_a_fault_is_none_of_its_own(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert old in GOOD
    told = faults(tmp_path, GOOD.replace(old, new))
    assert words in told and "\n" not in told


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    told = faults(tmp_path, GOOD.replace("[2, 3]", "[3, 9]").replace("ring = 2", "ring = 1"))
    for words in ("shares no member", "member 9", "another net has this number"):
        assert words in told


def test_a_run_on_rings(tmp_path: Path) -> None:
    plan = check(RunPlan(protocol="multiring", members=5, rings=((1, 2, 3), (3, 4, 5))))
    keyfiles.write(tmp_path / "group.key")
    made = config.make(make_config(plan, tmp_path))
    assert [tuple(ring.addresses) for ring in made.rings] == [(1, 2, 3), (3, 4, 5)]
    assert len({ring.net.address for ring in made.rings}) == 2
    with pytest.raises(UsageError, match="totem stands on one network"):
        check(RunPlan(protocol="totem", members=3, rings=((1, 2), (2, 3))))
    with pytest.raises(UsageError, match="expected each of 1 to 4 on a ring"):
        check(RunPlan(protocol="multiring", members=4, rings=((1, 2), (2, 4))))


@pytest.mark.parametrize("command", [cli_run.command, cli_bench.command])
def test_a_member_that_is_on_no_ring(command: click.Command) -> None:
    words = ["--protocol", "multiring", "--ring", "1,2", "--ring", "2,3", "--members", "4"]
    with pytest.raises(UsageError, match="expected each of 1 to 4 on a ring"):
        command.main(words, standalone_mode=False)


def test_a_benchmark_on_rings(tmp_path: Path) -> None:
    plan = BenchPlan(protocol="multiring", members=3, senders=2, rings=((1, 2), (2, 3)), pure=(2,), crossing=0.5)
    made = config.make(bench.make_config(bench.check(plan), tmp_path, []), 2)
    assert [tuple(ring.addresses) for ring in made.rings] == [(1, 2), (2, 3)] and made.pure == (2,)
    assert [bench.home(made, member) for member in made.ids] == [1, 1, 2]
    with pytest.raises(UsageError) as why:
        bench.check(BenchPlan(protocol="totem", members=5, rings=((1, 2), (4, 5)), pure=(4,)))
    assert [words.split(":")[0] for words in str(why.value).splitlines()] == [
        "--ring",
        "--ring",
        "--ring 4,5",
        "--pure 4",
    ]
    with pytest.raises(UsageError) as why:
        bench.check(BenchPlan(protocol="totem", members=3, senders=2, pure=(1,)))
    assert str(why.value) == "--pure: totem stands on one network; expected --protocol multiring"

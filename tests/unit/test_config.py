"""Every way a configuration can be wrong gets one sentence, and all of them at once."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Struct, structs

import ordercast
from ordercast import config, files, interfaces, registry
from ordercast.config import GroupConfig, Member, NetConfig, TraceConfig, dump, load, make
from ordercast.errors import ConfigError, UsageError

GOOD = """\
group = "demo"
protocol = "token_site"
insecure = true

[[member]]
id = 1
address = "127.0.0.1:7401"

[[member]]
id = 2
address = "127.0.0.1:7402"
"""


@pytest.fixture(autouse=True)
def on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Judge as in the host's own namespace, wherever the tests run."""
    monkeypatch.setattr(interfaces, "in_own_namespace", lambda: False)


def write(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "group.toml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def faults(path: Path, me: int | None = None, **environ: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(path, me, environ)
    assert isinstance(caught.value, UsageError)
    for sentence in caught.value.faults:
        assert "\n" not in sentence and len(sentence) < 300
    return caught.value.faults


# ------------------------------------------------------------------------------------------------------------- good


def test_defaults_on_loopback(tmp_path: Path) -> None:
    got = load(write(tmp_path, GOOD), 1, {})
    assert got.members == (Member(1, "127.0.0.1", 7401), Member(2, "127.0.0.1", 7402)) and got.ids == (1, 2)
    assert (got.timeout_ms, got.datagram_bytes) == (200, 65_000) and got.timeout_ns == 200_000_000
    assert got.net == NetConfig("multicast", config.MULTICAST_ADDRESS, 7400, "127.0.0.1")
    assert got.trace == TraceConfig("deliver", "trace") and got.trace_path == tmp_path / "trace"
    assert got.state_path(2) == tmp_path / "state" / "member-2"
    assert got.partition == "evs-all-continue" and got.insecure
    assert got.options == registry.get("token_site").options()
    assert got.member(2).port == 7402


def test_defaults_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interfaces, "in_own_namespace", lambda: True)
    monkeypatch.setattr(interfaces, "mtu_of", lambda name: 1500)
    text = (
        GOOD.replace("127.0.0.1:7401", "10.9.0.1").replace("127.0.0.1:7402", "10.9.0.2") + '[net]\nmode = "unicast"\n'
    )
    got = load(write(tmp_path, text), None, {})
    assert (got.timeout_ms, got.datagram_bytes) == (1000, 1472)
    assert got.members == (Member(1, "10.9.0.1", 7400), Member(2, "10.9.0.2", 7400))


def test_everything_given(tmp_path: Path) -> None:
    text = """\
group = "größe"
protocol = "token_site"
timeout_ms = 300
datagram_bytes = 9000
state_dir = "s"
partition = "evs-all-continue"
insecure = true
net = { mode = "multicast", address = "239.1.2.3", port = 9000, interface = "lo" }
trace.level = "record"
trace.dir = "t"
[options]
tickets_at_once = false
[[member]]
id = 7
address = "127.0.0.7"
[[member]]
id = 3
address = "127.0.0.3"
"""
    got = load(write(tmp_path, text), 7, {})
    assert got.members == (Member(3, "127.0.0.3", 9000), Member(7, "127.0.0.7", 9000))
    assert got.net == NetConfig("multicast", "239.1.2.3", 9000, "127.0.0.1")
    assert got.trace == TraceConfig("record", "t") and got.options.tickets_at_once is False
    assert load(write(tmp_path, dump(got)), 7, {}) == got


def test_from_python(tmp_path: Path) -> None:
    data = {"group": "g", "insecure": True, "member": [{"id": 1, "address": "127.0.0.1:7401"}]}
    assert make(data, base=tmp_path).ids == (1,)
    with pytest.raises(ConfigError, match=r"configuration: timeout_ms: 0: expected a whole number from 1"):
        make(data | {"timeout_ms": 0})


BY_HAND = GroupConfig(
    group="demo", protocol="totem", members=(Member(1, "127.0.0.1", 7401), Member(2, "127.0.0.1", 7402)),
    options=None, timeout_ms=200, datagram_bytes=1472, insecure=True,
)  # fmt: skip


def test_a_configuration_put_together_by_hand_is_completed(tmp_path: Path) -> None:
    options = registry.get("totem").options()
    got = make(structs.replace(BY_HAND, base=tmp_path), 1)
    assert got == structs.replace(BY_HAND, base=tmp_path, options=options, packet_bytes=65_000)
    assert make(got, 2) == got and ordercast.join(me=1, config=BY_HAND).config.options == options


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"insecure": False}, "key: is missing: expected key = "),
        ({"timeout_ms": 0}, "timeout_ms: 0: expected a whole number from 1"),
        ({"timeout_ms": 1.5}, "timeout_ms: 1.5: expected a whole number from 1"),
        ({"datagram_bytes": 0}, "datagram_bytes: 0: expected a whole number from 576"),
        ({"datagram_bytes": "many"}, "datagram_bytes: many: expected a whole number from 576"),
        ({"packet_bytes": 1}, "packet_bytes: 1: expected a whole number from 576"),
        ({"protocol": "totm"}, "did you mean totem?"),
        ({"options": {"windw": 1}}, "options.windw: unknown key windw"),
        ({"options": 7}, "options: 7: expected a table"),
        ({"group": ""}, "group: ''"),
        ({"partition": "any"}, "partition: any"),
        ({"state_dir": 3}, "state_dir: 3"),
        ({"net": NetConfig("broadcast")}, "net.mode: broadcast: expected multicast or unicast"),
        ({"net": NetConfig("unicast", port=0)}, "net.port: 0: expected a whole number from 1 to 65535"),
        ({"net": "here"}, "net: here: expected a table"),
        ({"trace": TraceConfig("all")}, "trace.level: all"),
        ({"members": ()}, "member: an empty array: expected one [[member]] table"),
        ({"members": None}, "member: "),
        ({"members": ("127.0.0.1",)}, "member[0]: 127.0.0.1: expected a table"),
        ({"members": (Member(1, "127.0.0.1", 0),)}, "member[0].address: 127.0.0.1:0: expected a port"),
        ({"members": (Member(2, "127.0.0.1", 7402),)}, "member 1 is not listed: expected one of 2"),
        (
            {"members": (Member(1, "192.0.2.7", 7401),), "net": NetConfig("unicast")},
            "insecure: member 1 at 192.0.2.7: expected 127.0.0.0/8",
        ),
    ],
)
def test_by_hand_the_same_is_refused_as_in_a_file(fields: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ordercast.join(me=1, config=structs.replace(BY_HAND, **fields))
    assert any(said in sentence for sentence in caught.value.faults), caught.value.faults


@pytest.mark.parametrize("me", [None, "1", 1.0, True])
def test_join_takes_an_id_for_me(me: object) -> None:
    with pytest.raises(UsageError, match=r"join: me: .*: expected the id of a member"):
        ordercast.join(me=me, config=BY_HAND)  # type: ignore[arg-type]


# -------------------------------------------------------------------------------------------------------- the file


def test_missing_file(tmp_path: Path) -> None:
    assert faults(tmp_path / "none.toml") == [f"{tmp_path}/none.toml: cannot be read: No such file or directory"]


def test_directory(tmp_path: Path) -> None:
    assert "is a directory" in faults(tmp_path)[0]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"# only a comment\n\n", "is empty"),
        (GOOD.encode("utf-16"), "byte order mark"),
        (b'insecure = true\ngroup = "gr\xfc\xdfe"\n', "line 2: byte 0xfc is not UTF-8"),
        (b"group = demo\n", "not valid TOML"),
        (b'group = "a"\n\nprotocol\n', "line 3"),
        (b'group = "a"\ngroup = "b"\n', "line 2"),
        (b'group = "a\n', "line 1"),
        (b"timeout_ms = " + b"9" * 5000, "not valid TOML"),
        (b"x = " + b"[" * 100_000, "not valid TOML"),
        (b"\x00", "not valid TOML"),
        (b"#" * (files.TEXT_BYTES_MAX + 1), "larger than"),
    ],
)
def test_files_that_are_no_configuration(tmp_path: Path, content: bytes, said: str) -> None:
    path = write(tmp_path, content)
    (sentence,) = faults(path)
    assert sentence.startswith(f"{path}: ") and said in sentence


def test_a_byte_order_mark_of_utf8_is_passed_over(tmp_path: Path) -> None:
    assert load(write(tmp_path, b"\xef\xbb\xbf" + GOOD.encode()), None, {}).group == "demo"


def test_special_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "not a regular file" in faults(tmp_path / "pipe")[0]
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert "cannot be read" in faults(tmp_path / "loop")[0]
    assert "not a directory" in faults(write(tmp_path, GOOD) / "below")[0].lower()
    assert "cannot be read" in faults(Path("a\0b"))[0]


# ------------------------------------------------------------------------------------------------------------- keys

HEAD = 'group = "demo"\ninsecure = true\n'
MEMBERS = '[[member]]\nid = 1\naddress = "127.0.0.1:7401"\n[[member]]\nid = 2\naddress = "127.0.0.1:7402"\n'


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("timeout_ms = 0", "line 3: timeout_ms: 0: expected a whole number from 1 to"),
        ("timeout_ms = -5", "timeout_ms: -5: expected"),
        ("timeout_ms = 0.5", "timeout_ms: 0.5: expected"),
        ("timeout_ms = true", "timeout_ms: true: expected"),
        ('timeout_ms = "200"', "timeout_ms: 200: expected"),
        ("timeout_ms = 99999999999", "timeout_ms: 99999999999: expected"),
        ("timeout_ms = []", "timeout_ms: an empty array: expected"),
        ("timeout_ms = 1979-05-27", "timeout_ms: a date: expected"),
        ("timeoutms = 200", "unknown key timeoutms; did you mean timeout_ms?"),
        ("xyzzy = 1", "unknown key xyzzy"),
        ("datagram_bytes = 575", "datagram_bytes: 575: expected a whole number from 576 to 65507"),
        ("datagram_bytes = 65508", "datagram_bytes: 65508: expected"),
        ('protocol = "token_sit"', "did you mean token_site?"),
        ('protocol = "paxos"', "protocol: paxos: expected one of"),
        ("protocol = 5", "protocol: 5: expected a string"),
        ('partition = "keep-oldest"', "not built yet: expected evs-all-continue or primary-majority"),
        ('partition = "split"', "partition: split: expected evs-all-continue or primary-majority"),
        ('state_dir = ""', "state_dir: '': expected the name of a directory"),
        ('state_dir = "a\\nb"', "state_dir: 'a\\nb': expected the name of a directory"),
        ('state_dir = "/dev/null"', "state_dir: /dev/null: is not a directory"),
        ("net = 5", "net: 5: expected a table"),
        ('net.mode = "broadcast"', "net.mode: broadcast: expected multicast or unicast"),
        ('net.mod = "unicast"', "net.mod: unknown key mod; did you mean mode?"),
        ("net.port = 0", "net.port: 0: expected a whole number from 1 to 65535"),
        ("net.port = 70000", "net.port: 70000: expected"),
        ('net.address = "10.0.0.1"', "net.address: 10.0.0.1: expected a multicast address"),
        ('net.address = "224.0.0.1"', "net.address: 224.0.0.1: expected"),
        ('net.address = "ff02::1"', "net.address: ff02::1: expected a multicast address"),
        ('net.address = "here"', "net.address: here: expected a multicast address"),
        ('net = {mode = "unicast", address = "239.1.1.1"}', "net.address: is a multicast group"),
        ('net.interface = "eth99"', "net.interface: eth99: no such interface"),
        ('net.interface = "203.0.113.7"', "net.interface: 203.0.113.7: not an address of this machine"),
        ('net.interface = "2001:db8::7"', "net.interface: 2001:db8::7: not an address of this machine"),
        ("trace = []", "trace: an empty array: expected a table"),
        ('trace.level = "loud"', "trace.level: loud: expected one of off, deliver, full, record"),
        ('trace.dir = "/dev/null"', "trace.dir: /dev/null: is not a directory"),
        ('trace.lvl = "off"', "did you mean level?"),
        ("trace.keep_mb = -1", "trace.keep_mb: -1: expected a whole number from 0 to 1048576"),
        ('trace.keep_mb = 5\ntrace.level = "record"', 'trace.keep_mb: 5: level = "record" needs all that was written'),
        ("options = 5", "options: 5: expected a table"),
        ("options.fai = true", "did you mean fair?"),
        ("options.fair = 3", "options.fair: 3: expected true or false"),
    ],
)
def test_bad_keys(tmp_path: Path, line: str, said: str) -> None:
    (sentence,) = faults(write(tmp_path, f"{HEAD}{line}\n{MEMBERS}"))
    assert said in sentence
    assert sentence.startswith(f"{tmp_path}/group.toml: line 3: ")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('group = ""', "group: '': expected a printable name"),
        (f'group = "{"x" * 65}"', "expected a printable name of 1 to 64 bytes"),
        ('group = "a\\u0007"', "group: 'a\\x07': expected a printable name"),
        ("group = 1", "group: 1: expected a string"),
        ("", "group: is missing: expected a name"),
    ],
)
def test_bad_group(tmp_path: Path, line: str, said: str) -> None:
    (sentence,) = faults(write(tmp_path, f"{line}\ninsecure = true\n{MEMBERS}"))
    assert said in sentence


ONE = '[[member]]\nid = 1\naddress = "127.0.0.1"\n'
MANY = "".join(f'[[member]]\nid = {i}\naddress = "127.0.0.1:{i}"\n' for i in range(1, 66))


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ("", "member: is missing"),
        ("member = []\n", "member: an empty array: expected one [[member]]"),
        ("member = 4\n", "member: 4: expected one [[member]]"),
        ("member = [4]\n", "member[0]: 4: expected a table"),
        ('[[member]]\naddress = "127.0.0.1"\n', "line 3: member[0].id: is missing"),
        ("[[member]]\nid = 1\n", "line 3: member[0].address: is missing"),
        ('[[member]]\nid = 0\naddress = "127.0.0.1"\n', "line 4: member[0].id: 0: expected"),
        ('[[member]]\nid = 4294967296\naddress = "127.0.0.1"\n', "member[0].id: 4294967296: expected"),
        ('[[member]]\nid = "one"\naddress = "127.0.0.1"\n', "member[0].id: one: expected"),
        (
            '[[member]]\nid = 1\naddress = "no name"\n',
            "line 5: member[0].address: 'no name': expected the address",
        ),
        ('[[member]]\nid = 1\naddress = "10.0.0.256"\n', "expected the address of one machine"),
        ('[[member]]\nid = 1\naddress = "-x.example"\n', "expected the address of one machine"),
        ('[[member]]\nid = 1\naddress = "[::1]:0"\n', "expected a port from 1 to 65535"),
        (ONE + 'bind = "here"\n', "member[0].bind: here: expected an address to listen at"),
        (ONE + 'bind = "239.1.1.1"\n', "expected an address to listen at"),
        ('[[member]]\nid = 1\naddress = "127.0.0.1:0"\n', "expected a port from 1 to 65535"),
        ('[[member]]\nid = 1\naddress = "127.0.0.1:70000"\n', "expected a port"),
        ('[[member]]\nid = 1\naddress = "127.0.0.1:"\n', "expected a port"),
        ('[[member]]\nid = 1\naddress = ":7400"\n', "expected the address of one machine"),
        ('[[member]]\nid = 1\naddress = "::"\n', "expected the address of one machine"),
        ('[[member]]\nid = 1\naddress = "[fe80::1%eth0]"\n', "is known on one link only"),
        (ONE + '[[member]]\nid = 2\naddress = "::1"\n', "member: member 1 at 127.0.0.1, while others are on IPv6"),
        ('[[member]]\nid = 1\naddress = "239.1.1.1"\n', "expected the address of one machine"),
        ('[[member]]\nid = 1\naddress = "0.0.0.0"\n', "expected the address of one machine"),
        ("[[member]]\nid = 1\naddress = 7400\n", "member[0].address: 7400: expected a string"),
        ('[[member]]\nid = 1\naddress = "127.0.0.1"\nadress = 1\n', "did you mean address?"),
        (ONE + '[[member]]\nid = 1\naddress = "127.0.0.2"\n', "line 7: member[1].id: 1"),
        (ONE + '[[member]]\nid = 2\naddress = "127.0.0.1:7400"\n', "give each its own"),
        (MANY, "65 members: expected at most 64"),
    ],
)
def test_bad_members(tmp_path: Path, members: str, said: str) -> None:
    (sentence,) = faults(write(tmp_path, HEAD + members))
    assert said in sentence


def test_own_id(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD)
    assert faults(path, 3) == [f"{path}: member 3 is not listed: expected one of 1, 2"]


def test_own_entry_that_is_wrong_is_not_told_to_be_missing_too(tmp_path: Path) -> None:
    (sentence,) = faults(write(tmp_path, GOOD.replace("127.0.0.1:7401", "127.0.0.1:0")), 1)
    assert "expected a port from 1 to 65535" in sentence


def test_own_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interfaces, "in_own_namespace", lambda: True)
    path = write(tmp_path, GOOD.replace("127.0.0.1:7402", "203.0.113.9") + '[net]\nmode = "unicast"\n')
    assert "member 2: 203.0.113.9 is not an address of this machine" in faults(path, 2)[0]
    assert load(path, 1, {}).ids == (1, 2)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "",
            'key: is missing: expected key = "group.key" (`ordercast keygen group.key` makes one), or insecure = true',
        ),
        ("insecure = false", "key: is missing"),
        ('insecure = "true"', "insecure: true: expected true or false"),
        ("insecure = 1", "insecure: 1: expected true or false"),
    ],
)
def test_insecure_must_be_said(tmp_path: Path, line: str, said: str) -> None:
    (sentence,) = faults(write(tmp_path, f'group = "g"\n{line}\n{MEMBERS}'))
    assert said in sentence


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("key = 5", "line 2: key: 5: expected a string"),
        ('key = ""', "key: '': expected the name of a file"),
        ('key = "none.key"', "none.key: no such file: expected a key of 32 bytes; `ordercast keygen"),
        ('key = "."', "is no file: expected a key of 32 bytes"),
        ('key = "short.key"', "short.key: holds 31 bytes: expected a key of 32 bytes"),
        ('key = "long.key"', "long.key: holds 33 bytes: expected a key of 32 bytes"),
        ('key = "open.key"', "open.key: others than its owner may read or write it: expected mode 0600"),
        ('key = "group.key"\ninsecure = true', "insecure: true, and a key is given: remove one of the two"),
    ],
)
def test_bad_key(tmp_path: Path, line: str, said: str) -> None:
    for name, size, mode in (("short", 31, 0o600), ("long", 33, 0o600), ("open", 32, 0o640), ("group", 32, 0o600)):
        path = tmp_path / f"{name}.key"
        path.write_bytes(b"k" * size)
        path.chmod(mode)
    (sentence,) = faults(write(tmp_path, f'group = "g"\n{line}\n{MEMBERS}'))
    assert said in sentence and "kkk" not in sentence


@pytest.mark.parametrize("key", [bytes(range(32)).hex(), base64.b64encode(bytes(range(32))).decode()])
def test_a_key_written_into_the_file_is_not_repeated(tmp_path: Path, key: str) -> None:
    (sentence,) = faults(write(tmp_path, f'group = "g"\nkey = "{key}"\n{MEMBERS}'))
    assert (
        sentence.endswith("line 2: key: expected the name of a file, never the key itself") and key[:8] not in sentence
    )


def test_a_key_opens_every_address(tmp_path: Path) -> None:
    (tmp_path / "group.key").write_bytes(bytes(32))
    (tmp_path / "group.key").chmod(0o600)
    text = """\
group = "g"
key = "group.key"
net.mode = "unicast"
[[member]]
id = 1
address = "[2001:db8::1]:7401"
bind = "[::]:7500"
[[member]]
id = 2
address = "Two.Example.:7402"
[[member]]
id = 3
address = "2001:db8::3"
"""
    got = load(write(tmp_path, text), 1, {})
    assert got.ipv6 and got.key_path == tmp_path / "group.key" and not got.insecure
    assert got.members == (
        Member(1, "2001:db8::1", 7401, "::", 7500), Member(2, "two.example", 7402), Member(3, "2001:db8::3", 7400),
    )  # fmt: skip
    assert load(write(tmp_path, dump(got)), 1, {}) == got
    assert got.datagram_bytes == 1500 - 48 and got.timeout_ms == 1000


def test_ipv6_multicast(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interfaces, "in_own_namespace", lambda: True)
    monkeypatch.setattr(interfaces, "address_of", lambda name: "10.0.0.1")
    text = 'group = "g"\ninsecure = true\n[[member]]\nid = 1\naddress = "2001:db8::1"\n[net]\ninterface = "eth0"\n'
    got = load(write(tmp_path, text), None, {})
    assert got.net.address == config.MULTICAST_ADDRESS_IPV6 and got.ipv6
    (sentence,) = faults(write(tmp_path, text + 'address = "239.1.1.1"\n'))
    assert "net.address: 239.1.1.1: the members are on IPv6: expected an address of ff15::/16" in sentence
    (sentence,) = faults(write(tmp_path, 'group = "g"\ninsecure = true\n[[member]]\nid = 1\naddress = "::1"\n'))
    assert 'net.mode: multicast: loopback has none of IPv6: expected mode = "unicast"' in sentence


def test_insecure_only_on_loopback_or_in_a_namespace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, GOOD.replace("127.0.0.1:7402", "192.0.2.7") + '[net]\nmode = "unicast"\n')
    (sentence,) = faults(path)
    assert "insecure: member 2 at 192.0.2.7: expected 127.0.0.0/8, or a network namespace" in sentence
    monkeypatch.setattr(interfaces, "in_own_namespace", lambda: True)
    assert load(path, None, {}).member(2).address == "192.0.2.7"


def test_insecure_interface(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interfaces, "address_of", lambda name: "10.0.0.1")
    (sentence,) = faults(write(tmp_path, GOOD + '[net]\ninterface = "eth0"\n'))
    assert "insecure: interface 10.0.0.1" in sentence


def test_multicast_needs_an_interface_beyond_loopback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interfaces, "in_own_namespace", lambda: True)
    path = write(tmp_path, GOOD.replace("127.0.0.1:7402", "192.0.2.7"))
    (sentence,) = faults(path)
    assert "net.interface: is missing" in sentence


def test_all_faults_at_once(tmp_path: Path) -> None:
    text = """\
grop = "demo"
protocol = "nope"
timeout_ms = 0
datagram_bytes = 1
partition = "x"
[net]
mode = "x"
port = 0
[trace]
level = "x"
[[member]]
id = 1
address = "10.0.0.1"
[[member]]
id = 1
address = "x:y:z"
"""
    path = write(tmp_path, text)
    places = [sentence.removeprefix(f"{path}: ").partition(": expected")[0] for sentence in faults(path, 4)]
    assert places == [
        "group: is missing", "line 2: protocol: nope", "line 3: timeout_ms: 0", "line 4: datagram_bytes: 1",
        "line 5: partition: x", "line 7: net.mode: x", "line 8: net.port: 0", "line 10: trace.level: x",
        "line 16: member[1].address: x:y:z", "line 1: grop: unknown key grop; did you mean group?",
        "line 15: member[1].id: 1: another member has this id",
        "line 6: net.interface: is missing", "key: is missing", "member 4 is not listed",
    ]  # fmt: skip


# ----------------------------------------------------------------------------------------------------- environment


def test_environment_adds(tmp_path: Path) -> None:
    got = load(
        write(tmp_path, GOOD), None, {"ORDERCAST_TIMEOUT_MS": "350", "ORDERCAST_NET_PORT": "9100", "PATH": "/bin"}
    )
    assert got.timeout_ms == 350 and got.net.port == 9100


def test_environment_may_repeat_the_file(tmp_path: Path) -> None:
    environ = {"ORDERCAST_GROUP": "demo", "ORDERCAST_INSECURE": "true"}
    assert load(write(tmp_path, GOOD), None, environ).group == "demo"


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("ORDERCAST_GROUP", "other", "line 1: group: demo here but other in ORDERCAST_GROUP: remove one"),
        ("ORDERCAST_INSECURE", "false", "line 3: insecure: true here but false in ORDERCAST_INSECURE"),
        ("ORDERCAST_TIMEOUT_MS", "0", "environment: ORDERCAST_TIMEOUT_MS: 0: expected a whole number from 1"),
        ("ORDERCAST_TIMEOUT_MS", "soon", "environment: ORDERCAST_TIMEOUT_MS: soon: expected a whole number"),
        ("ORDERCAST_TIMEOUT_MS", "", "environment: ORDERCAST_TIMEOUT_MS: '': expected a whole number"),
        ("ORDERCAST_NET_PORT", "70000", "environment: ORDERCAST_NET_PORT: 70000: expected"),
        ("ORDERCAST_TRACE_LEVEL", "loud", "environment: ORDERCAST_TRACE_LEVEL: loud: expected one of off"),
        ("ORDERCAST_TIMEOUT", "3", "unknown variable ORDERCAST_TIMEOUT; did you mean ORDERCAST_TIMEOUT_MS?"),
    ],
)
def test_environment_faults(tmp_path: Path, name: str, value: str, said: str) -> None:
    (sentence,) = faults(write(tmp_path, GOOD), **{name: value})
    assert said in sentence


def test_environment_and_a_table_that_is_none(tmp_path: Path) -> None:
    (sentence,) = faults(write(tmp_path, HEAD + "net = 5\n" + MEMBERS), ORDERCAST_NET_PORT="7000")
    assert "expected a table" in sentence


# --------------------------------------------------------------------------------------------- options of protocols


class Options(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    window: Annotated[int, Meta(ge=1, le=9)]
    ratio: float = 0.5
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.ratio * 10 < self.window:
            raise ValueError("ratio x 10 must reach window")


@pytest.fixture
def with_options() -> object:
    registry.register(structs.replace(registry.get("token_site"), name="opts", options=Options))
    yield
    registry.unregister("opts")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, ["options.window: is missing: expected a whole number from 1 to 9"]),
        ({"window": 0}, ["options.window: 0: expected a whole number from 1 to 9"]),
        ({"window": "x", "ratio": "y", "z": 1}, ["options.window: x", "options.ratio: y", "unknown key z"]),
        ({"window": 9}, ["options: ratio x 10 must reach window"]),
        ({"window": 1, "names": [1]}, ["options.names[0]: 1: expected a string"]),
    ],
)
def test_options_of_a_protocol(with_options: object, options: dict[str, object], said: list[str]) -> None:
    data = {"group": "g", "insecure": True, "protocol": "opts", "member": [{"id": 1, "address": "127.0.0.1"}]}
    with pytest.raises(ConfigError) as caught:
        make(data | {"options": options})
    assert len(caught.value.faults) == len(said)
    for sentence, part in zip(caught.value.faults, said, strict=True):
        assert part in sentence


@pytest.mark.parametrize("phi", ["1/3", 0.25, 1.0, "1", "half"])
def test_a_share_that_is_none(phi: object) -> None:
    data = {"group": "g", "insecure": True, "protocol": "toto", "member": [{"id": 1, "address": "127.0.0.1"}]}
    with pytest.raises(
        ConfigError, match=f"options: phi is {phi}: expected a share of the members, from 1/2 to below 1"
    ):
        make(data | {"options": {"phi": phi}})


def test_members_that_write_one_share_in_two_ways_mean_the_same() -> None:
    data = {"group": "g", "insecure": True, "protocol": "toto", "member": [{"id": 1, "address": "127.0.0.1"}]}
    assert make(data | {"options": {"phi": 0.625}}).options == make(data | {"options": {"phi": "5/8"}}).options


def test_options_survive_the_file(with_options: object, tmp_path: Path) -> None:
    data = {"group": "g", "insecure": True, "protocol": "opts", "member": [{"id": 1, "address": "127.0.0.1"}]}
    got = make(data | {"options": {"window": 3, "names": ["a", 'b"c']}}, base=tmp_path)
    assert load(write(tmp_path, dump(got)), None, {}) == got


# ---------------------------------------------------------------------------------------------------------- any input

_words = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=15)


@given(
    group=_words,
    state=_words.filter(lambda name: name not in ("trace",)),
    mode=st.sampled_from(["multicast", "unicast"]),
    level=st.sampled_from(config.LEVELS),
    ids=st.lists(st.integers(1, 2**32 - 1), min_size=1, max_size=8, unique=True),
    timeout=st.integers(1, 600_000),
    datagram=st.integers(576, 65_507),
    at_once=st.booleans(),
)
def test_dump_then_load_is_the_same(
    tmp_path_factory: pytest.TempPathFactory, group: str, state: str, mode: str, level: str, ids: list[int],
    timeout: int, datagram: int, at_once: bool,
) -> None:  # fmt: skip
    base = tmp_path_factory.getbasetemp()
    data = {
        "group": group, "protocol": "token_site", "insecure": True, "timeout_ms": timeout, "datagram_bytes": datagram,
        "state_dir": f"state-{state}", "net": {"mode": mode}, "trace": {"level": level},
        "options": {"tickets_at_once": at_once},
        "member": [{"id": id, "address": f"127.0.0.1:{7000 + k}"} for k, id in enumerate(ids)],
    }  # fmt: skip
    got = make(data, base=base)
    again = load(write(base, dump(got)), None, {})
    assert isinstance(again, GroupConfig) and again == got


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    assert faults(write(tmp_path_factory.getbasetemp(), content))


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


_keys = st.sampled_from(
    [
        "group",
        "protocol",
        "net",
        "member",
        "trace",
        "options",
        "insecure",
        "timeout_ms",
        "datagram_bytes",
        "state_dir",
        "partition",
        "x",
    ]
)


@given(st.dictionaries(_keys, _values, max_size=6))
def test_any_values_are_refused_in_words(data: dict[str, object]) -> None:
    with pytest.raises(ConfigError) as caught:
        make(data)
    assert all(text.startswith("configuration: ") and text.isprintable() for text in caught.value.faults)


def test_interfaces() -> None:
    assert interfaces.addresses()["lo"] == "127.0.0.1" == interfaces.address_of("lo")
    assert interfaces.address_of("127.0.0.9") == "127.0.0.9" and interfaces.address_of("nosuch") is None
    assert interfaces.mtu_of("127.0.0.1") == interfaces.mtu_of("lo") > 1500
    assert interfaces.mtu_of("nosuch") == 1500 and interfaces.mtu_of("") == 1500
    assert (
        interfaces.is_loopback("127.3.4.5") and interfaces.is_loopback("lo") and not interfaces.is_loopback("10.0.0.1")
    )
    assert interfaces.is_local("127.0.0.1") and not interfaces.is_local("203.0.113.7")

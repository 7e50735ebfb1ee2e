"""Damaged inputs at every door: each gives what is documented for it, or its documented error, and nothing else.

Targets: a datagram's header; sealed datagrams that were changed on the way; what a holder of the key may say, each
type of packet of each protocol; a configuration; files of traces; recordings.  Input k of a target follows from
(target, k) alone.
"""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from tests.fuzz.forger import Forger
from tests.fuzz.overheard import forger_of

from ordercast import config, registry
from ordercast.contract import Packet
from ordercast.drivers.admission import Admission
from ordercast.drivers.guard import LIVES_MAX, Guard
from ordercast.drivers.incoming import Incoming
from ordercast.drivers.keyring import KeyRing
from ordercast.drivers.rotation import Rotation
from ordercast.drivers.terms import Agreement
from ordercast.errors import ConfigError, TraceError, WireError
from ordercast.trace import load, record
from ordercast.trace.rows import RowFile
from ordercast.trace.schema import Header, Kind, Row
from ordercast.types import Identity, Peer
from ordercast.wire import header
from ordercast.wire.codec import origin
from ordercast.wire.seal import GroupKey, Sealer

Try = Callable[[random.Random], None]
GROUP, SECOND = "g", 1_000_000_000
KEY, OTHER = GroupKey(bytes(range(32))), GroupKey(bytes(32))
ODD = (0, 1, -1, 127, 128, 255, 2**16 - 1, 2**16, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 1)


class Found(AssertionError):
    """An input that was not answered as documented; the text tells how to try it again."""


def damaged(data: bytes, chance: random.Random) -> bytes:
    """A few bytes changed, cut out, put in, or the end cut off."""
    out = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 8))):
        at = chance.randrange(len(out) + 1)
        match chance.randrange(6):
            case 0 if at < len(out):
                out[at] ^= 1 << chance.randrange(8)
            case 1:
                out[at : at + 4] = chance.randbytes(chance.randrange(5))
            case 2:
                del out[at : at + chance.randint(1, 20)]
            case 3:
                del out[at:]
            case 4:
                out[at:at] = chance.choice(ODD).to_bytes(9, "little", signed=True)[: chance.choice((1, 2, 4, 8))]
            case _:
                out[at:at] = chance.choice(
                    (b"\xc1", b"\xdc\xff\xff", b"\xdd\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff", b"\x91" * 300)
                )
    return bytes(out)


def said(forger: Forger, what: type[Packet] | str, chance: random.Random) -> bytes:
    """What a holder of the key might say: a packet of this type, terms or a step of a key, then perhaps damaged; or
    anything."""
    if chance.random() < 0.1:
        return chance.randbytes(chance.randrange(1, 60))
    if what == "terms":
        words = chance.choice(("terms", "fresh"))
        body = msgspec.msgpack.encode([words, {"protocol": "x"}, True, b"c" * 16, b"e" * 16])
    elif what == "keys":
        names = ["0" * 16, "f" * 16]
        step = chance.choice(("add", "use", "drop", "have"))
        body = msgspec.msgpack.encode(["keys", step, names[0], names[1], names[:1], chance.choice(ODD), ""])
    else:
        forger.rng = chance
        made = forger.make(what)
        body = made[1] if made is not None else b"\x90"
    return damaged(body, chance) if chance.random() < 0.5 else body


class Door:
    """A member's way in, which other members have entered."""

    def __init__(self, protocol: str) -> None:
        identity = Identity(1, 100, (1, 2, 3), GROUP, 0)
        self.forger = forger_of(protocol, random.Random(0))
        self.codec, self.now, self.count, self.used = self.forger.codec, 0, 0, Counter[str]()
        ring, me = KeyRing([KEY], KEY.name), Peer(1, 100)
        self.guard = Guard(ring, identity, False, {})
        agreement = Agreement(me, (1, 2, 3), {"protocol": "x"}, 1000, secret=b"s")
        self.rotation = Rotation(ring, lambda name: "no such key", lambda: None)
        self.incoming = Incoming(
            self.codec, Admission(identity, False, True, True), 6, lambda: self.now, self._got, lambda now, why: None,
            agreement, lambda net, to, words: None, self.guard, self.rotation,
        )  # fmt: skip
        self.sealers = {peer: Sealer(KEY, GROUP, peer) for peer in (Peer(2, 7), Peer(3, 9), Peer(9, 1), Peer(1, 99))}
        for peer in self.sealers:
            agreement._same[peer] = None

    def _got(self, now: int, net: int, peer: Peer, packet: Any, drops: int, body: Any) -> None:
        assert type(packet) in {origin(kind) for kind in self.codec.packets} and peer.id in (1, 2, 3)
        self.used[type(packet).__name__] += 1

    def sealed(self, body: bytes, chance: random.Random) -> bytes:
        self.count += 1
        return self.sealers[chance.choice(tuple(self.sealers))].seal(0, self.count, body)

    def hear(self, datagram: bytes, chance: random.Random) -> None:
        self.now += SECOND // 50
        if chance.random() < 0.1 and len(datagram) > 1:
            segment = chance.randint(1, len(datagram))
            self.incoming.several(0, memoryview(datagram), segment, 0, ("10.0.0.2", 7400))
        else:
            self.incoming.one(0, memoryview(datagram), 0, ("10.0.0.2", 7400))
        assert len(self.guard._others) <= LIVES_MAX and self.guard.ring.names == (KEY.name,)


def of_header(chance: random.Random) -> None:
    good = header.pack(header.group_id(GROUP), chance.choice(ODD) % 2**32, chance.choice(ODD) % 2**64, 1) + b"packet"
    data = damaged(good, chance)
    try:
        header.unpack(data, header.group_id(GROUP))
    except WireError:
        return


def of_sealed() -> Try:
    door = Door("totem")

    def one(chance: random.Random) -> None:
        door.hear(damaged(door.sealed(chance.randbytes(chance.randrange(80)), chance), chance), chance)

    return one


def of_inside(protocol: str, word: str) -> Try:
    door = Door(protocol)
    what = {origin(kind).__name__: origin(kind) for kind in door.codec.packets}.get(word, word)

    def one(chance: random.Random) -> None:
        door.hear(door.sealed(said(door.forger, what, chance), chance), chance)

    return one


TOML = """\
group = "g"
protocol = "totem"
insecure = true
key = "group.key"
timeout_ms = 200
datagram_bytes = 1400
[net]
mode = "multicast"
address = "239.1.1.1"
port = 7400
interface = "lo"
[trace]
level = "off"
keep_mb = 5
[options]
window = 50
[[member]]
id = 1
address = "[::1]:7401"
bind = "0.0.0.0:9"
[[member]]
id = 2
address = "two.example:7402"
"""


def of_configuration(folder: Path) -> Try:
    path = folder / "group.toml"

    def one(chance: random.Random) -> None:
        lines = TOML.splitlines(keepends=True)
        for _ in range(chance.randrange(4)):
            lines.pop(chance.randrange(len(lines)))
        path.write_bytes(damaged("".join(lines).encode(), chance))
        try:
            config.load(path, 1, {})
        except ConfigError as why:
            assert why.faults and all("\n" not in fault and fault.isprintable() for fault in why.faults), why.faults

    return one


HEADER = Header("r", "p", "agreed", (1, 2), ("S1",), level="full", timeout_ns=1000)


def of_traces(folder: Path) -> Try:
    file = RowFile(folder, HEADER, 1, 9)
    for k in range(1, 20):
        kind = Kind.DELIVER if k % 2 else Kind.ORIGINATE
        file.append(Row(1, 9, k, k, k, int(kind), 1, 9, k, 1, k, service=3, groups=("g",) if k % 5 == 0 else None))
    file.close()
    good = {name: (folder / name).read_bytes() for name in ("member-1-9.rows", "member-1-9.side")}

    def one(chance: random.Random) -> None:
        victim = chance.choice(tuple(good))
        (folder / victim).write_bytes(damaged(good[victim], chance))
        try:
            load(folder)
        except TraceError:
            pass
        finally:
            (folder / victim).write_bytes(good[victim])

    return one


def of_recordings(folder: Path) -> Try:
    writer = record.RecordWriter(folder, record.Recorded(HEADER, 1, 9, {}, 1000, 1000, (0,), [3, [1], None]))
    for k in range(10):
        writer.append(record.Received(k, 0, 2, 9, 0, b"abc"), [])
    writer.close()
    good, path = writer.path.read_bytes(), folder / "x.inputs"

    def one(chance: random.Random) -> None:
        path.write_bytes(damaged(good, chance))
        try:
            list(record.RecordReader(path))
        except TraceError as why:
            assert why.why

    return one


def targets() -> dict[str, int]:
    """Each target, and its share of all inputs: those behind files are dearer."""
    inside = {f"inside {name} {word}": 1 for name in registry.names() for word in inside_words(name)}
    return {"header": 20, "sealed": 20, **inside, "configuration": 1, "traces": 1, "recordings": 1}


def inside_words(protocol: str) -> tuple[str, ...]:
    """What a sealed datagram of a member holds: a packet of one of its types, terms, or a step of a key."""
    return (*(origin(kind).__name__ for kind in registry.get(protocol).packets), "terms", "keys")


def run(target: str, first: int, count: int) -> None:
    """Inputs `first` and following of a target, in a world of their own."""
    with tempfile.TemporaryDirectory(prefix="ordercast-fuzz-") as name:
        folder = Path(name)
        kind, _, rest = target.partition(" ")
        makers: dict[str, Callable[[], Try]] = {
            "header": lambda: of_header,
            "sealed": of_sealed,
            "inside": lambda: of_inside(*rest.split(" ")),
            "configuration": lambda: of_configuration(folder),
            "traces": lambda: of_traces(folder),
            "recordings": lambda: of_recordings(folder),
        }
        once = makers[kind]()
        for k in range(first, first + count):
            try:
                once(random.Random(f"{target} {k}"))
            except Exception as why:
                text = f"{target}: input {k} of those from {first}: {type(why).__name__}: {why}"
                raise Found(text) from why

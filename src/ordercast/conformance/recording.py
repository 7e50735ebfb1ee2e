"""Live = core: the recorded inputs of a member, fed to a fresh core, give the recorded actions, byte for byte."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
from msgspec import Struct

from ordercast import registry
from ordercast.contract import Setup
from ordercast.errors import TraceError, UsageError, WireError
from ordercast.stack import Stack
from ordercast.trace.record import (
    SUFFIX,
    Recorded,
    RecordReader,
    Started,
    decode_actions,
    encode_actions,
    feed,
    random_state,
)
from ordercast.types import Identity
from ordercast.wire.codec import Codec


class Replayed(Struct, frozen=True):
    """What became of one recording: inputs replayed alike, and the first difference, if any."""

    name: str
    inputs: int
    difference: str = ""
    record: int = 0  # where, from 1
    note: str = ""  # cut short by a kill, and the like
    unknown: str = ""  # its protocol, if there is none of that name here: nothing was replayed


def find(path: Path) -> list[Path]:
    """The recordings below a directory, or the file itself."""
    files = sorted(path.rglob(f"*{SUFFIX}")) if path.is_dir() else [path]
    if not files:
        raise UsageError(f"{path}: holds no recording (*{SUFFIX}): expected a run made with --trace record")
    return files


def replay_file(path: Path) -> Replayed:
    """Feed one recording to a fresh core and stop at the first difference."""
    try:
        reader = RecordReader(path)
        protocol = reader.recorded.header.protocol
        if not registry.known(protocol):
            return Replayed(path.stem, 0, unknown=protocol)
        inputs = 0
        core = None
        for entry in reader:
            if core is None:
                if not isinstance(entry.input, Started):
                    return Replayed(path.stem, 0, "does not begin with a start", entry.number)
                core, codec = _fresh(reader.recorded, entry.input.identity)
            try:
                got = encode_actions(feed(core, codec, entry.input))
            except WireError as why:
                return Replayed(path.stem, inputs, f"a recorded packet cannot be decoded: {why}", entry.number)
            except AssertionError as why:
                if entry.actions is not None:
                    return Replayed(path.stem, inputs, f"the fresh core failed: {why}", entry.number)
                return Replayed(path.stem, inputs + 1, note="the member's core failed here, and so does the fresh one")
            if entry.actions is None:
                return Replayed(path.stem, inputs, "the member's core failed, the fresh one does not", entry.number)
            if got != entry.actions:
                return Replayed(path.stem, inputs, _difference(entry.actions, got), entry.number)
            inputs += 1
    except TraceError as why:
        return Replayed(path.stem, 0, str(why))
    return Replayed(path.stem, inputs, note="cut short by a kill" if reader.torn_at is not None else "")


def replay(path: Path) -> list[Replayed]:
    return [replay_file(file) for file in find(path)]


def _fresh(recorded: Recorded, identity: Identity) -> tuple[Stack, Codec]:
    info = registry.get(recorded.header.protocol)
    generator = random.Random()
    generator.setstate(random_state(recorded))
    options = msgspec.convert(recorded.options, info.options)
    setup = Setup(identity, recorded.timeout_ns, options, recorded.frame_bytes, generator, recorded.nets)
    setup.on_nets, setup.pure = recorded.on_nets, recorded.pure
    setup.partition, setup.outbox_bytes, setup.pack = recorded.header.partition, recorded.outbox_bytes, recorded.pack
    return info.factory(setup), Codec(info.packets)


def _difference(recorded: bytes, got: bytes) -> str:
    """The first action that differs, in words."""
    old, new = decode_actions(recorded), decode_actions(got)
    for number, (a, b) in enumerate(zip(old, new, strict=False)):
        if a != b:
            return f"action {number}: recorded {_short(a)}, replayed {_short(b)}"
    if len(old) != len(new):
        longer, who = (old, "recorded") if len(old) > len(new) else (new, "replayed")
        return f"action {min(len(old), len(new))}: only {who}: {_short(longer[min(len(old), len(new))])}"
    return "the same actions in another encoding"


def _short(action: list[object]) -> str:
    text = str(action)
    return text if len(text) <= 160 else text[:157] + "..."

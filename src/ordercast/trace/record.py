"""Level `record`: every input of a core and the actions it caused, so that a fresh core can be held against it.

A driver calls `Recorder.input(input, actions)` right after the core answered, with one of the structs below; a core
that raised is written with None.  Replaying feeds the same inputs to a fresh core and compares `encode_actions` byte
for byte.  Records carry checksums, so a damaged one is reported at its place; one that a kill cut short ends the file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from struct import Struct as Layout
from typing import Any, NamedTuple
from zlib import crc32

import msgspec
from msgspec import Struct

from ordercast import files
from ordercast.contract import Action, Event, Setup
from ordercast.errors import RunError, TraceError
from ordercast.limits import OUTBOX_BYTES_MAX
from ordercast.stack import Stack
from ordercast.trace.schema import SCHEMA_VERSION, Header
from ordercast.types import Identity, Nanoseconds, Peer, Service, Submission
from ordercast.wire.codec import Codec

MAGIC = b"OCINPUT\n"
SUFFIX = ".inputs"
_HEAD = Layout("<8sI")
_RECORD = Layout("<III")  # bytes, CRC-32 of the bytes, CRC-32 of these two and the record's number
_NUMBERED = Layout("<IIQ")


class Input(Struct, frozen=True, array_like=True, tag=True, gc=False):
    """What the core was told, and its clock then."""

    now: int


class Started(Input, frozen=True, gc=False):
    identity: Identity
    stored: dict[str, tuple[int, bytes]]


class Submitted(Input, frozen=True, gc=False):
    payloads: list[bytes]
    service: int
    groups: tuple[str, ...]


def submitted(now: Nanoseconds, submission: Submission) -> Submitted:
    return Submitted(now, submission.payloads, submission.service, submission.groups)


class Regrouped(Input, frozen=True, gc=False):
    group: str
    join: bool


class Received(Input, frozen=True, gc=False):
    net: int
    source: int
    incarnation: int
    drops: int
    packet: bytes  # as the codec decodes it, without the datagram's header


class Drained(Input, frozen=True, gc=False):
    net: int


class Fired(Input, frozen=True, gc=False):
    name: str
    due: int


class Stored(Input, frozen=True, gc=False):
    key: str
    number: int


class StoreFailed(Input, frozen=True, gc=False):
    key: str
    number: int
    why: str


class Unreachable(Input, frozen=True, gc=False):
    net: int
    member: int


class RoomGiven(Input, frozen=True, gc=False):
    frames: int


class LeaveAsked(Input, frozen=True, gc=False):
    until: int | None = None


AnyInput = (
    Started
    | Submitted
    | Regrouped
    | Received
    | Drained
    | Fired
    | Stored
    | StoreFailed
    | Unreachable
    | RoomGiven
    | LeaveAsked
)


class Recorded(Struct):
    """What a fresh core needs beside the inputs."""

    header: Header
    member: int
    incarnation: int
    options: dict[str, Any]  # of the protocol, as plain values
    timeout_ns: int
    frame_bytes: int
    nets: tuple[int, ...]
    random_state: list[Any]  # random.Random.getstate(), before the core was made
    schema: int = SCHEMA_VERSION
    on_nets: dict[int, tuple[int, ...]] = {}  # who was configured on each of its nets, where they are several
    outbox_bytes: int = OUTBOX_BYTES_MAX
    pack: bool = True
    pure: bool = False


class Entry(NamedTuple):
    """One record: its byte offset, its number from 1, the input, and what the core answered, canonically encoded."""

    offset: int
    number: int
    input: AnyInput
    actions: bytes | None


def recorded(header: Header, setup: Setup) -> Recorded:
    """Take down a setup before the core is made of it."""
    state = setup.random.getstate()
    options = msgspec.to_builtins(setup.options)
    return Recorded(
        header, setup.identity.me, setup.identity.incarnation, options, setup.timeout_ns, setup.frame_bytes,
        setup.nets, [state[0], list(state[1]), state[2]], on_nets=dict(setup.on_nets),
        outbox_bytes=setup.outbox_bytes, pack=setup.pack, pure=setup.pure,
    )  # fmt: skip


def random_state(recorded: Recorded) -> tuple[Any, ...]:
    """For random.Random.setstate."""
    version, words, gauss = recorded.random_state
    return version, tuple(words), gauss


# ------------------------------------------------------------------------------------------------ canonical encoding

_canonical = msgspec.msgpack.Encoder(order="deterministic").encode


def encode_actions(actions: list[Action]) -> bytes:
    """One encoding for equal action lists: names and fields in order, dictionaries by key."""
    return _canonical([_named(action) for action in actions])


def _named(thing: Any) -> list[Any]:
    fields = msgspec.structs.astuple(thing)
    return [type(thing).__name__, *(_named(f) if isinstance(f, Event) else f for f in fields)]


def decode_actions(data: bytes) -> list[Any]:
    """For people: [[name, fields...], ...] as plain values."""
    out: list[Any] = msgspec.msgpack.decode(data)
    return out


def feed(stack: Stack, codec: Codec, input: AnyInput) -> list[Action]:
    """Give a recorded input to a core."""
    now = input.now
    match input:
        case Received():
            source = Peer(input.source, input.incarnation)
            return stack.receive(now, input.net, source, codec.decode(input.packet), input.drops)
        case Drained():
            return stack.drained(now, input.net)
        case Fired():
            return stack.timer(now, input.name, input.due)
        case Submitted():
            return stack.submit(now, Submission(input.payloads, Service(input.service), input.groups))
        case Regrouped():
            return stack.regroup(now, input.group, input.join)
        case Started():
            return stack.start(now, input.identity, input.stored)
        case Stored():
            return stack.stored(now, input.key, input.number)
        case StoreFailed():
            return stack.store_failed(now, input.key, input.number, input.why)
        case Unreachable():
            return stack.unreachable(now, input.net, input.member)
        case RoomGiven():
            return stack.room(now, input.frames)
        case LeaveAsked():
            return stack.leave(now, input.until)


def started(now: int, identity: Identity, stored: Mapping[str, tuple[int, bytes]]) -> Started:
    """A start's record must not change when the driver's dictionary does."""
    return Started(now, identity, dict(stored))


# -------------------------------------------------------------------------------------------------------------- files

_encode = msgspec.msgpack.Encoder().encode


class _Line(Struct, array_like=True):
    input: AnyInput
    actions: bytes | None


_line = msgspec.msgpack.Decoder(_Line)
_recorded = msgspec.msgpack.Decoder(Recorded)


def file_name(member: int, incarnation: int) -> str:
    return f"member-{member}-{incarnation}{SUFFIX}"


class RecordWriter:
    """The input log of one incarnation; each record is in the file when `append` returns."""

    def __init__(self, directory: str | os.PathLike[str], recorded: Recorded) -> None:
        self.path = Path(directory) / file_name(recorded.member, recorded.incarnation)
        self.records = 0
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_APPEND, 0o600)
        except OSError as why:
            raise RunError(f"cannot write the recording {self.path}: {why.strerror or why}") from why
        self._write(_HEAD.pack(MAGIC, SCHEMA_VERSION) + self._frame(_encode(recorded)))

    def append(self, input: AnyInput, actions: list[Action] | None) -> None:
        self.records += 1
        self._write(self._frame(_encode(_Line(input, None if actions is None else encode_actions(actions)))))

    def _frame(self, data: bytes) -> bytes:
        crc = crc32(data)
        return _RECORD.pack(len(data), crc, crc32(_NUMBERED.pack(len(data), crc, self.records))) + data

    def _write(self, data: bytes) -> None:
        try:
            done = os.write(self._file, data)
        except OSError as why:
            raise RunError(f"cannot extend the recording {self.path}: {why.strerror or why}") from why
        if done != len(data):
            raise RunError(f"cannot extend the recording {self.path}: only {done} of {len(data)} bytes written")

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


class RecordReader:
    """Reads a recording; after the iteration `torn_at` is where a kill cut it short, or None."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.torn_at: int | None = None
        try:
            self._data = files.read(self.path, files.DATA_BYTES_MAX)
        except OSError as why:
            raise TraceError(path, 0, f"cannot be read: {why.strerror or why}") from why
        data = self._data
        if not data:
            raise TraceError(path, 0, "the file is empty, a recording was expected")
        if data[:8] != MAGIC[: len(data)]:
            raise TraceError(path, 0, "this is not a recording: it does not begin with a recording's magic")
        if len(data) < _HEAD.size:
            raise TraceError(path, len(data), "the file ends inside its head")
        _, version = _HEAD.unpack_from(data)
        if version > SCHEMA_VERSION:
            raise TraceError(path, 8, f"schema {version} is newer than {SCHEMA_VERSION}, the newest known here")
        body, self._first = self._record(_HEAD.size, 0)
        if body is None:
            raise TraceError(path, _HEAD.size, "the file ends inside its header")
        try:
            self.recorded: Recorded = _recorded.decode(body)
        except msgspec.MsgspecError as why:
            raise TraceError(path, _HEAD.size, f"the header cannot be understood: {why}") from None

    def __iter__(self) -> Iterator[Entry]:
        offset, number = self._first, 0
        while offset < len(self._data):
            number += 1
            body, after = self._record(offset, number)
            if body is None:
                self.torn_at = offset
                return
            try:
                line = _line.decode(body)
            except (msgspec.MsgspecError, RecursionError) as why:
                raise TraceError(self.path, offset, f"record {number} cannot be understood: {why}") from None
            yield Entry(offset, number, line.input, line.actions)
            offset = after

    def _record(self, offset: int, number: int) -> tuple[bytes | None, int]:
        """The record's bytes (None: cut short) and the place after it."""
        data, start = self._data, offset + _RECORD.size
        if len(data) < start:
            return None, len(data)
        length, crc, check = _RECORD.unpack_from(data, offset)
        if check != crc32(_NUMBERED.pack(length, crc, number)):
            raise TraceError(self.path, offset, f"the head of record {number} is damaged")
        body = data[start : start + length]
        if len(body) < length:
            return None, len(data)
        if crc32(body) != crc:
            raise TraceError(self.path, offset, f"record {number} is damaged: its checksum does not match")
        return body, start + length

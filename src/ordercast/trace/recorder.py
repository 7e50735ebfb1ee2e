"""What a member did, as rows: the one place where a stack's actions become trace events.

Both drivers call `actions` with the flattened list that left the stack (of a member that dies in mid-handler: with the
part that was carried out), before the datagrams in it leave, so that a kill in between never looks like an invention.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ordercast.contract import (
    Accepted,
    Action,
    Delivered,
    GroupView,
    Left,
    Missing,
    Note,
    Originate,
    Presence,
    Receive,
    Refuse,
    Up,
    ViewChange,
)
from ordercast.trace.digest import MessageDigest, frame_digest
from ordercast.trace.schema import COLUMNS, Kind, Level, Row
from ordercast.types import Batch, Frame, ViewKind

Expected = Callable[[int, int, int, bytes], bool]  # (sender, incarnation, counter, payload) -> is it what was sent

_SUBMIT, _ORIGINATE, _RECEIVE, _DELIVER = map(int, (Kind.SUBMIT, Kind.ORIGINATE, Kind.RECEIVE, Kind.DELIVER))
_VIEW, _GROUP_VIEW, _REFUSE, _LEAVE, _NOTE = map(int, (Kind.VIEW, Kind.GROUP_VIEW, Kind.REFUSE, Kind.LEAVE, Kind.NOTE))
_ABSENT, _PRESENT = map(int, (Kind.ABSENT, Kind.PRESENT))
_MODE = int(Kind.MODE)
_OWN_COLUMNS = frozenset(COLUMNS) - {"member", "incarnation", "index", "time_ns", "now_ns", "kind", "detail"}


class Sink(Protocol):
    """Where rows go."""

    @property
    def append(self) -> Callable[[Row], Any]: ...

    def close(self) -> None: ...


class InputLog(Protocol):
    """Where inputs and the actions they caused go at level `record`; ordercast.trace.record has the one for files."""

    def append(self, input: Any, actions: list[Action] | None) -> Any: ...

    def close(self) -> None: ...


class Recorder:
    """The rows of one incarnation of one member (member 0: the launcher or the simulator)."""

    def __init__(
        self,
        sink: Sink,
        member: int,
        incarnation: int,
        level: Level | int,
        expected: Expected | None = None,
        log: InputLog | None = None,
    ) -> None:
        self.sink, self.member, self.incarnation = sink, member, incarnation
        self.level, self.expected, self.log = Level(level), expected, log
        self.index = 0  # of the last row
        self.position = 0  # messages delivered
        self.view: tuple[int | None, int | None, int | None] = (None, None, None)
        self._originating: _Pieces | None = None
        self._receiving: dict[tuple[int, int, int], _Pieces] = {}
        self._append = sink.append
        self._fast: Callable[..., None] | None = getattr(sink, "deliver", None)  # the commonest row, without a Row
        self._rows: dict[type, Callable[[int, int, Any], None]] = {}
        if self.level >= Level.DELIVER:
            self._rows |= {
                Up: self._up, Originate: self._originate, Accepted: self._submit, Refuse: self._refuse,
                Presence: self._presence, Note: self._mode,
            }  # fmt: skip
        if self.level >= Level.FULL:
            self._rows |= {Receive: self._receive, Note: self._note}
        self._ups: dict[type, Callable[[int, int, Any], None]] = {
            Delivered: self._deliver,
            Missing: self._missing,
            ViewChange: self._view,
            GroupView: self._group_view,
            Left: self._left,
        }

    # ------------------------------------------------------------------------------------------- what drivers call

    def actions(self, time_ns: int, now_ns: int, actions: list[Action]) -> None:
        """Write one row for each action that is an event of the trace."""
        rows = self._rows
        for action in actions:
            write = rows.get(type(action))
            if write is not None:
                write(time_ns, now_ns, action)

    def event(self, time_ns: int, now_ns: int, kind: Kind, **fields: Any) -> None:
        """Write an event the driver itself knows of; fields that are no column go into `detail`.

        Who it is about, when member 0 writes it: `sender` and `sender_incarnation` (start, crash, pause, resume).
        """
        if self.level < Level.DELIVER or (self.level < Level.FULL and kind in _FULL_ONLY):
            return
        detail = dict(fields.pop("detail", None) or {})
        columns: dict[str, Any] = {}
        for name, value in fields.items():
            (columns if name in _OWN_COLUMNS else detail)[name] = value
        if kind not in _LAUNCHER and self.member and "view_seq" not in columns:
            columns["view_seq"], columns["view_rep"], columns["view_kind"] = self.view
        if self.member:
            columns.setdefault("position", self.position)
        self.index += 1
        row = Row(
            self.member, self.incarnation, self.index, time_ns, now_ns, int(kind), detail=detail or None, **columns
        )
        self._append(row)

    def input(self, input: Any, actions: list[Action] | None) -> None:
        """Level record: an input (a struct of ordercast.trace.record) with all it caused; None: the core raised."""
        if self.log is not None:
            self.log.append(input, actions)

    def close(self) -> None:
        self.sink.close()
        if self.log is not None:
            self.log.close()

    # ------------------------------------------------------------------------------------------------ rows, by event

    def _up(self, time_ns: int, now_ns: int, action: Up) -> None:
        write = self._ups.get(type(action.event))
        if write is not None:
            write(time_ns, now_ns, action.event)

    def _deliver(self, time_ns: int, now_ns: int, event: Delivered) -> None:
        batch = event.batch
        count, position = batch.count, self.position
        seq, rep, kind = self.view
        detail = self._altered(batch) if self.expected is not None else None
        if event.stamp:
            detail = {**(detail or {}), "stamp": event.stamp}
        self.index += 1
        self.position = position + count
        digest = frame_digest(batch.lengths, batch.data)
        if self._fast is not None and detail is None and seq is not None and not batch.groups and not event.certainty:
            self._fast(
                self.index, time_ns, now_ns, batch.sender, batch.incarnation, batch.counter, count, digest, position,
                event.epoch, event.seq, event.ring, batch.service, seq, rep, kind,
            )  # fmt: skip
            return
        self._append(
            Row(
                self.member, self.incarnation, self.index, time_ns, now_ns, _DELIVER,
                batch.sender, batch.incarnation, batch.counter, count, digest, position,
                event.epoch, event.seq, event.ring, int(batch.service), batch.groups or None,
                seq, rep, kind, None, None, None, None, event.certainty, detail,
            )
        )  # fmt: skip

    def _missing(self, time_ns: int, now_ns: int, event: Missing) -> None:
        """A delivery of nothing: what came never did."""
        seq, rep, kind = self.view
        self.index += 1
        self._append(
            Row(
                self.member, self.incarnation, self.index, time_ns, now_ns, _DELIVER,
                event.sender, event.incarnation, 0, 0, None, self.position, 0, event.tag, None, None, None,
                seq, rep, kind, None, None, None, None, "dummy", None,
            )
        )  # fmt: skip

    def _submit(self, time_ns: int, now_ns: int, action: Accepted) -> None:
        seq, rep, kind = self.view
        self.index += 1
        self._append(
            Row(
                self.member, self.incarnation, self.index, time_ns, now_ns, _SUBMIT,
                self.member, self.incarnation, action.counter, action.count, None, self.position, None, None, None,
                int(action.service), action.groups or None, seq, rep, kind,
            )
        )  # fmt: skip

    def _originate(self, time_ns: int, now_ns: int, action: Originate) -> None:
        frame = action.frame
        if frame.control:
            return
        if frame.parts == 1:
            digest = frame_digest(frame.lengths, frame.data)
            detail = self._altered(frame) if self.expected is not None else None
        else:
            if frame.part == 0 or self._originating is None:
                self._originating = _Pieces(self.expected is not None)
            pieces = self._originating
            pieces.take(frame)
            if not frame.last:
                return
            self._originating = None
            digest = pieces.digest.value()
            detail = self._altered_message(frame, pieces.data) if self.expected is not None else None
        view = action.view
        seq, rep = (view.seq, view.rep) if view is not None else (None, None)
        self.index += 1
        self._append(
            Row(
                self.member, self.incarnation, self.index, time_ns, now_ns, _ORIGINATE,
                frame.sender, frame.incarnation, frame.counter, frame.count, digest, self.position, None, None, None,
                int(frame.service), frame.groups or None, seq, rep, _REGULAR if view is not None else None,
                None, None, None, None, None, detail,
            )
        )  # fmt: skip

    def _receive(self, time_ns: int, now_ns: int, action: Receive) -> None:
        frame = action.frame
        if frame.control:
            return
        if frame.parts == 1:
            digest = frame_digest(frame.lengths, frame.data)
        else:  # a message counts as received with the last missing one of its fragments
            key = (frame.sender, frame.incarnation, frame.counter)  # fragments of several may come mixed
            pieces = self._receiving.get(key)
            if pieces is None:
                pieces = self._receiving[key] = _Pieces(False)
            if not pieces.complete(frame):
                return
            del self._receiving[key]
            digest = pieces.digest.value()
        seq, rep, kind = self.view
        self.index += 1
        self._append(
            Row(
                self.member, self.incarnation, self.index, time_ns, now_ns, _RECEIVE,
                frame.sender, frame.incarnation, frame.counter, frame.count, digest, self.position, None, None, None,
                int(frame.service), frame.groups or None, seq, rep, kind,
            )
        )  # fmt: skip

    def _view(self, time_ns: int, now_ns: int, event: ViewChange) -> None:
        view = event.view
        self.view = (view.id.seq, view.id.rep, int(view.kind))
        self._receiving.clear()
        previous, cause = view.previous, view.cause
        detail: dict[str, Any] = {"cause": str(cause), "reason": cause.reason}
        if cause.member is not None:
            detail["of"] = cause.member
        if view.components:
            detail["components"] = [
                [None if old is None else [old.seq, old.rep], list(members)] for old, members in view.components
            ]
        if view.primary is not None:
            detail["primary"] = view.primary
        self.index += 1
        self._append(
            Row(
                self.member, self.incarnation, self.index, time_ns, now_ns, _VIEW,
                None, None, None, None, None, self.position, None, None, None, None, None,
                view.id.seq, view.id.rep, int(view.kind), view.members, view.trans,
                previous.seq if previous is not None else None, previous.rep if previous is not None else None,
                None, detail,
            )
        )  # fmt: skip

    def _group_view(self, time_ns: int, now_ns: int, event: GroupView) -> None:
        seq, rep, kind = self.view
        self.index += 1
        self._append(
            Row(
                self.member, self.incarnation, self.index, time_ns, now_ns, _GROUP_VIEW,
                None, None, None, None, None, self.position, None, None, None, None, (event.group,),
                seq, rep, kind, event.members,
            )
        )  # fmt: skip

    def _left(self, time_ns: int, now_ns: int, event: Left) -> None:
        self._plain(time_ns, now_ns, _LEAVE, {"unsent": list(event.unsent)} if event.unsent else None)

    def _presence(self, time_ns: int, now_ns: int, action: Presence) -> None:
        if action.present:
            self._plain(time_ns, now_ns, _PRESENT, None)
        else:
            self._plain(time_ns, now_ns, _ABSENT, {"since_ns": action.since_ns})

    def _refuse(self, time_ns: int, now_ns: int, action: Refuse) -> None:
        self._plain(time_ns, now_ns, _REFUSE, {"why": action.why})

    def _mode(self, time_ns: int, now_ns: int, action: Note) -> None:
        """A core that tells of another role has a row of its own."""
        if action.name == "mode":
            self._plain(time_ns, now_ns, _MODE, action.fields)

    def _note(self, time_ns: int, now_ns: int, action: Note) -> None:
        if action.name == "mode":
            self._mode(time_ns, now_ns, action)
        else:
            self._plain(time_ns, now_ns, _NOTE, {"name": action.name, **action.fields})

    def _plain(self, time_ns: int, now_ns: int, kind: int, detail: dict[str, Any] | None) -> None:
        seq, rep, view_kind = self.view
        self.index += 1
        self._append(
            Row(
                self.member, self.incarnation, self.index, time_ns, now_ns, kind,
                None, None, None, None, None, self.position, None, None, None, None, None,
                seq, rep, view_kind, None, None, None, None, None, detail,
            )
        )  # fmt: skip

    # ---------------------------------------------------------------------------------------------------- payloads

    def _altered(self, frame: Batch | Frame) -> dict[str, Any] | None:
        """Which message of it is not what its sender submitted, if any."""
        expected, sender, incarnation, counter = self.expected, frame.sender, frame.incarnation, frame.counter
        assert expected is not None
        if frame.count == 1:
            return None if expected(sender, incarnation, counter, frame.data) else {"altered": counter}
        lengths, data, start = memoryview(frame.lengths).cast("I"), frame.data, 0
        if len(lengths) != frame.count or sum(lengths) != len(data):
            return {"altered": counter}
        for k, length in enumerate(lengths):
            if not expected(sender, incarnation, counter + k, data[start : start + length]):
                return {"altered": counter + k}
            start += length
        return None

    def _altered_message(self, frame: Frame, pieces: list[bytes]) -> dict[str, Any] | None:
        assert self.expected is not None
        whole = self.expected(frame.sender, frame.incarnation, frame.counter, b"".join(pieces))
        return None if whole else {"altered": frame.counter}


_REGULAR = int(ViewKind.REGULAR)
_FULL_ONLY = frozenset((Kind.RECEIVE, Kind.DECIDE, Kind.NOTE, Kind.DROP))
_LAUNCHER = frozenset((Kind.START, Kind.CRASH, Kind.PAUSE, Kind.RESUME, Kind.FAULT, Kind.STABLE))


class _Pieces:
    """The fragments of one message on their way to one row."""

    __slots__ = ("data", "digest", "early", "keep", "next")

    def __init__(self, keep: bool) -> None:
        self.keep = keep
        self.digest = MessageDigest()
        self.data: list[bytes] = []
        self.next = 0
        self.early: dict[int, Frame] = {}

    def take(self, frame: Frame) -> None:
        self.digest.update(frame.data)
        if self.keep:
            self.data.append(frame.data)

    def complete(self, frame: Frame) -> bool:
        """Take a fragment, in whatever order they come; true when it was the last one missing."""
        if frame.part >= self.next:
            self.early[frame.part] = frame
        while self.next in self.early:
            self.take(self.early.pop(self.next))
            self.next += 1
        return self.next == frame.parts

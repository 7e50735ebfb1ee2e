"""Frames -> messages: the Inbox puts fragments together, Framing is the layer around it.

The way down is the Sender's (sender.py), which packs; here ordered frames become batches.  Fragments are consecutive
among their sender's frames, and a message is delivered at its last one.
"""

from __future__ import annotations

from array import array
from typing import Any

from msgspec.structs import replace

from ordercast.contract import Action, Control, Delivered, Event, Layer, Missing, Ordered, Up, ViewChange, dropped
from ordercast.limits import MESSAGE_BYTES_MAX
from ordercast.types import Batch, Frame, MemberId, Nanoseconds, ViewKind


class Inbox:
    """Ordered frames become batches; fragments wait for their last one, per sender and view.

    A sender has one message open at a time, of at most `MESSAGE_BYTES_MAX`; a fragment that does not go with those
    before it ends that message, and is counted.
    """

    def __init__(self) -> None:
        self._parts: dict[MemberId, list[Frame]] = {}
        self._bytes: dict[MemberId, int] = {}  # of its fragments here
        self.bad = 0  # messages given up, not yet told

    def take(self, frame: Frame) -> Batch | None:
        """The batch this frame completes, or None."""
        if frame.parts == 1:
            return Batch(
                frame.sender, frame.incarnation, frame.counter, frame.count, frame.service,
                frame.lengths, frame.data, frame.groups,
            )  # fmt: skip
        key = frame.sender
        if frame.part == 0:
            self._parts[key], self._bytes[key] = [frame], len(frame.data)
            return None
        parts = self._parts.get(key)
        if parts is None:
            return None  # its beginning belongs to an earlier view: never whole here
        size = self._bytes[key] + len(frame.data)
        if size > MESSAGE_BYTES_MAX or not _goes_on(parts, frame):
            del self._parts[key], self._bytes[key]
            self.bad += 1
            return None
        parts.append(frame)
        self._bytes[key] = size
        if not frame.last:
            return None
        del self._parts[key], self._bytes[key]
        data = b"".join(f.data for f in parts)
        lengths = array("I", [len(data)]).tobytes()
        return Batch(frame.sender, frame.incarnation, frame.counter, 1, frame.service, lengths, data, frame.groups)

    def give_up(self, sender: MemberId) -> None:
        """Something of this sender is missing here: what it began is never whole."""
        self._parts.pop(sender, None)
        self._bytes.pop(sender, None)

    def reset(self) -> None:
        """A new regular view: fragments of the old one are never completed."""
        self._parts.clear()
        self._bytes.clear()

    def open(self) -> int:
        return len(self._parts)

    def held(self) -> int:
        """Bytes of fragments."""
        return sum(self._bytes.values())


def _goes_on(parts: list[Frame], frame: Frame) -> bool:
    """Whether a fragment is the next of the message that these began."""
    first = parts[0]
    return (len(parts), first.incarnation, first.counter, first.parts, first.control) == (
        frame.part, frame.incarnation, frame.counter, frame.parts, frame.control,
    )  # fmt: skip


class Framing(Layer):
    """Ordered frames out as batches: the application's, and those of the groups layer.

    Without views nobody says that a sender is gone in the middle of a message: what it began stays, and counts for
    nothing.
    """

    name = "framing"

    def __init__(self, views: bool = True) -> None:
        self.inbox, self.views = Inbox(), views

    def up(self, now: Nanoseconds, event: Event, child: int) -> list[Action]:
        kind = type(event)
        if kind is Ordered:
            batch = self.inbox.take(event.frame)  # type: ignore[attr-defined]
            if batch is None:
                bad, self.inbox.bad = self.inbox.bad, 0
                return [dropped("fragment")] * bad
            if event.certainty is not None:  # type: ignore[attr-defined]
                batch = replace(batch, certainty=event.certainty)  # type: ignore[attr-defined]
            if event.frame.control:  # type: ignore[attr-defined]
                return [Up(Control(batch))]
            return [Up(Delivered(batch, event.epoch, event.seq, event.certainty, event.ring, event.stamp))]  # type: ignore[attr-defined]
        if kind is ViewChange and event.view.kind is ViewKind.REGULAR:  # type: ignore[attr-defined]
            self.inbox.reset()
        elif kind is Missing:
            self.inbox.give_up(event.sender)  # type: ignore[attr-defined]
        return [Up(event)]

    def status(self) -> dict[str, Any]:
        queues = {"reassemblies": self.inbox.open()} if self.views else {}
        return {"open_reassemblies": self.inbox.open(), "queues": queues}

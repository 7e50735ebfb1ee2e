"""The Sender: own messages on their way out, one part that every ordering protocol holds.

It accepts or refuses what is submitted, packs it (outbox.py), gives frames out as fast as the layer below takes them,
writes the rows that tell of it (Originate precedes what carries a frame), tells who was refused when there is room
again, and drains before its member leaves.  An ordering protocol says how a frame is ordered, and nothing of all this.

A member that leaves waits until all it accepted is ordered and every member of the view holds it, for as long as that
moves and the application allows; what is left then is named in Left.  Who leaves reads no more, so its own application
holds nobody up meanwhile.
In a view that is not primary nothing leaves: what was accepted waits for the next that is, anything new is refused, and
who leaves there goes at once.

Two kinds of protocols use it.  Over a reliable layer frames leave as soon as that layer's window is open: `carry` says
how one travels, and all bodies go by `multicast`, which counts their frames.  A protocol that knows by itself when it
may speak, such as a token ring, gives `wake` instead and takes frames when its turn has come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ordercast.contract import (
    Accepted,
    Action,
    Body,
    CancelTimer,
    Down,
    Event,
    FreeSpace,
    Leave,
    Left,
    Multicast,
    Originate,
    Refuse,
    Room,
    SetTimer,
    Setup,
    Submit,
    UnicastTo,
    Up,
    ViewChange,
    Window,
)
from ordercast.limits import FRAGMENTS_MAX, FRAME_MESSAGES_MAX, MESSAGE_BYTES_MAX
from ordercast.outbox import LENGTH_BYTES, Outbox, names_bytes
from ordercast.types import Frame, MemberId, Nanoseconds, Service, Submission, ViewId, ViewKind

LEAVE = "leave"  # the timer of its owner, at which the draining ends unless something moved
PATIENCE = 8  # timeouts for which nothing has to move: what load leaves behind drains in that time (L6)
ROOM_OF_ONE_THAT_LEAVES = 2**31  # frames

Steps = Callable[[Nanoseconds], list[Action]]


class Sender:
    """Of one member.

    unsettled: own frames that left and are not yet known to be ordered and held where they must be, in their order.
    go: the last step of leaving, when everything is drained or waiting is over; until when a layer below may drain.
    views: false for a protocol without views, which accepts from the start.
    """

    def __init__(
        self,
        setup: Setup,
        services: tuple[Service, ...],
        unsettled: Callable[[], Iterable[Frame]],
        *,
        carry: Callable[[Frame], list[Action]] | None = None,
        wake: Steps | None = None,
        go: Callable[[Nanoseconds, Nanoseconds], list[Action]] | None = None,
        views: bool = True,
    ) -> None:
        identity = setup.identity
        most = FRAME_MESSAGES_MAX if setup.pack else 1
        self.outbox = Outbox(identity.me, identity.incarnation, setup.frame_bytes, most=most)
        self.services, self.bytes_max, self.timeout_ns = services, setup.outbox_bytes, setup.timeout_ns
        self._unsettled, self._carry = unsettled, carry
        self._wake = wake or self._push
        self._last = go or (lambda now, until: [Down(Leave(until))])
        self.view: ViewId | None = None
        self.in_view = not views  # nothing is accepted before the first view
        self.halted = False  # the view is not primary
        self.window = 0  # multicasts that the layer below takes now
        self.leaving = self.gone = False
        self._until: Nanoseconds | None = None  # the application waits no longer for what leaving still has to send
        self._mark: tuple[ViewId | None, int, int] = (None, 0, 0)  # how far that was when last looked at
        self._refused = False  # somebody waits for room

    # --------------------------------------------------------------------------------------------- what comes down

    def down(self, now: Nanoseconds, event: Event) -> list[Action]:
        """For the owner's `down`: submissions and the wish to leave; anything else passes on."""
        if type(event) is Submit:
            return self._submit(now, event)
        if type(event) is Leave:
            return self._leave(now, event.until)
        return [] if self.leaving and type(event) is FreeSpace else [Down(event)]

    def _submit(self, now: Nanoseconds, event: Submit) -> list[Action]:
        submission, outbox = event.submission, self.outbox
        why = "" if event.ahead else self._refusal(submission, event.control)
        if why:
            return [Refuse(why)]
        was_empty = not outbox
        payloads, service, groups = submission.payloads, submission.service, submission.groups
        out: list[Action] = []
        if event.ahead:
            outbox.put_first(payloads[0], service)
        else:
            counter = outbox.put(payloads, service, groups, event.control)
            if not event.control:
                out.append(Accepted(counter, len(payloads), service, groups))
        return out + self._wake(now) if was_empty else out

    def _refusal(self, submission: Submission, control: bool) -> str:
        if self.leaving:
            return "closed"
        if control:
            return "not primary" if self.halted else "" if self.in_view else "no view"
        if submission.service not in self.services:
            return "service"
        if not submission.payloads:
            return "empty"
        largest, frame = max(map(len, submission.payloads)), self.outbox.frame_bytes
        if submission.groups or largest + LENGTH_BYTES > frame:
            names = names_bytes(submission.groups)
            if 2 * names > frame:
                return "groups"
            if largest > min(MESSAGE_BYTES_MAX, FRAGMENTS_MAX * (frame - names - LENGTH_BYTES)):
                return "too large"
        if self.halted or not self.in_view or self.outbox.bytes > self.bytes_max:
            self._refused = True
            return "not primary" if self.halted else "overloaded" if self.in_view else "no view"
        return ""

    # ------------------------------------------------------------------------------------------------ frames leave

    def __bool__(self) -> bool:
        """Whether own frames wait that may leave in this view."""
        return bool(self.outbox) and not self.halted

    def waiting(self) -> int:
        return 0 if self.halted else self.outbox.waiting()

    def held(self) -> int:
        """Frames that wait, whether they may leave or not."""
        return self.outbox.waiting()

    def take(self, n: int) -> list[Frame]:
        """At most n frames, which leave now; their owner says so to `originated`."""
        return [] if self.halted else self.outbox.take(n)

    def originated(self, frames: Iterable[Frame]) -> list[Action]:
        """The rows that tell of frames which are about to leave, and of the room they leave behind."""
        view = self.view
        out: list[Action] = [Originate(frame, view) for frame in frames]
        return out + self._room() if self._refused else out

    def multicast(self, body: Body) -> Action:
        """A body for the layer below, with a frame or without; its window counts frames."""
        if getattr(body, "frame", None) is not None:
            self.window -= 1
        return Down(Multicast(body, self.view))

    def unicast(self, to: MemberId, body: Body) -> Action:
        """A body for one member of the view."""
        return Down(UnicastTo(to, body, self.view))

    def _push(self, now: Nanoseconds) -> list[Action]:
        """Own frames leave, as many as the layer below takes."""
        out: list[Action] = []
        if self.window > 0 and self.in_view and not self.halted:
            assert self._carry is not None
            for frame in self.outbox.take(self.window):
                out.append(Originate(frame, self.view))
                out += self._carry(frame)
        return out + self._room() if self._refused else out

    def _room(self) -> list[Action]:
        if self._refused and self.in_view and (self.halted or self.outbox.bytes <= self.bytes_max // 2):
            self._refused = False
            return [Up(Room())]
        return []

    # -------------------------------------------------------------------------------------------------- what comes up

    def up(self, now: Nanoseconds, event: Event) -> list[Action]:
        """For the owner's `up`, over a reliable layer: windows and views; anything else passes on."""
        if type(event) is Window:
            self.window = event.frames
            return self._push(now) if self.outbox else []
        if type(event) is ViewChange and event.view.kind is ViewKind.REGULAR:
            return [Up(event), *self.enter(event.view.id, event.view.primary), *self._wake(now), *self._hurry(now)]
        if type(event) is Left:
            return [Up(Left(self.unsent(event.unsent)))]
        return [Up(event)]

    def enter(self, view: ViewId, primary: bool | None = None) -> list[Action]:
        """A view begins: a message not wholly originated goes back, whole, and who was refused may go on, or hears that
        the view is not primary."""
        self.outbox.unwind()
        self.view, self.in_view, self.halted = view, True, primary is False
        return self._room()

    def _hurry(self, now: Nanoseconds) -> list[Action]:
        """Who leaves does not wait where nothing can be sent."""
        return self.settle(now) if self.leaving and self.halted else []

    # ----------------------------------------------------------------------------------------------------- leaving

    def _leave(self, now: Nanoseconds, until: Nanoseconds | None) -> list[Action]:
        """Asked for the first time, or again with less patience."""
        if until is not None:
            self._until = until if self._until is None else min(until, self._until)
        if self.gone:
            return [Down(Leave(self._until))]
        out: list[Action] = []
        if not self.leaving:
            self.leaving, self._mark = True, self._moved()
            out.append(Down(FreeSpace(ROOM_OF_ONE_THAT_LEAVES)))
        return [*out, SetTimer(LEAVE, self._latest(now)), *self._wake(now), *self.settle(now)]

    def _latest(self, now: Nanoseconds) -> Nanoseconds:
        patient = now + PATIENCE * self.timeout_ns
        return patient if self._until is None else min(patient, self._until)

    def _moved(self) -> tuple[ViewId | None, int, int]:
        """It differs when something of what is still to be sent moved, or a view began."""
        return self.view, self.outbox.waiting(), sum(1 for _ in self._unsettled())

    def timer(self, now: Nanoseconds) -> list[Action]:
        """The owner's timer `LEAVE`: go on waiting while there is a reason to."""
        mark, before = self._moved(), self._mark
        self._mark = mark
        if self.gone or mark == before or (self._until is not None and now >= self._until):
            return self.go(now)
        return [SetTimer(LEAVE, self._latest(now))]

    def settle(self, now: Nanoseconds) -> list[Action]:
        """Called by the owner where own frames may have arrived: if all have, a member that leaves goes."""
        if not self.leaving or self or any(True for _ in self._unsettled()):
            return []
        return self.go(now)

    def go(self, now: Nanoseconds) -> list[Action]:
        """Drained, or waited for long enough."""
        if self.gone:
            return []
        self.gone = True
        return [CancelTimer(LEAVE), *self._last(now, self._latest(now))]

    def unsent(self, below: tuple[int, int] | None = None) -> tuple[int, int] | None:
        """The first and the last of what was accepted and did not arrive, as far as is known here and `below`."""
        waits = [frame.counter for frame in self._unsettled() if not frame.control][:1]
        waits += [first for first in (self.outbox.first(), below[0] if below else 0) if first]
        return (min(waits), self.outbox.counter) if waits else None

    def waits(self) -> str:
        """In words, where it is the view that keeps frames back."""
        return "a primary view, to send what was accepted" if self.halted and self.outbox else ""

    def status(self) -> dict[str, Any]:
        return {
            "submitted": self.outbox.counter,
            "waiting_frames": self.outbox.waiting(),
            "waiting_bytes": self.outbox.bytes,
            "leaving": self.leaving,
        }

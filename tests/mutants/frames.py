"""Variants of framing: packing, fragments, back-pressure at the application's edge."""

from __future__ import annotations

from tests.mutants.parts import token_site, totem
from tests.mutants.registry import mutant

from ordercast.contract import Action, Setup, Submit
from ordercast.framing import Inbox
from ordercast.outbox import Outbox
from ordercast.sender import Sender
from ordercast.stack import Stack
from ordercast.types import Batch, Frame, Nanoseconds

AREA = "framing"


@mutant("fragments_mixed", "token_site", AREA, "fragments are put together without looking whose they are")
def fragments_mixed(setup: Setup) -> Stack:
    class Mixed(Inbox):
        def take(self, frame: Frame) -> Batch | None:
            if frame.parts == 1:
                return super().take(frame)
            parts = self._parts.setdefault((0, 0), [])
            parts.append(frame)
            if len(parts) < frame.parts:
                return None
            del self._parts[0, 0]
            data = b"".join(f.data for f in parts)
            lengths = len(data).to_bytes(4, "little")
            return Batch(
                frame.sender,
                frame.incarnation,
                frame.counter,
                1,
                frame.service,
                lengths,
                data,
                frame.groups,  # type: ignore[arg-type]
            )

    return token_site(setup, inbox=Mixed)


@mutant("last_fragment_dropped", "token_site", AREA, "a cut message is handed out without its last fragment")
def last_fragment_dropped(setup: Setup) -> Stack:
    class Short(Inbox):
        def take(self, frame: Frame) -> Batch | None:
            batch = super().take(frame)
            if batch is None or frame.parts == 1:
                return batch
            data = batch.data[: -len(frame.data)] if frame.data else batch.data
            return Batch(
                batch.sender, batch.incarnation, batch.counter, 1, batch.service, len(data).to_bytes(4, "little"), data
            )

    return token_site(setup, inbox=Short)


@mutant("packing_reorders", "token_site", AREA, "frames that wait are taken from the back")
def packing_reorders(setup: Setup) -> Stack:
    class Backwards(Outbox):
        def take(self, n: int) -> list[Frame]:
            return super().take(n)[::-1]

    return token_site(setup, outbox=Backwards)


@mutant("packing_forgets", "token_site", AREA, "when more frames wait than may go, one too many leaves the queue")
def packing_forgets(setup: Setup) -> Stack:
    class Forgets(Outbox):
        def take(self, n: int) -> list[Frame]:
            frames = super().take(n)
            if frames and self.waiting() and len(frames) == n and frames[-1].parts == 1:
                super().take(1)
            return frames

    return token_site(setup, outbox=Forgets)


@mutant("boundaries_lost", "token_site", AREA, "the messages of one frame are handed out as one")
def boundaries_lost(setup: Setup) -> Stack:
    class Joined(Inbox):
        def take(self, frame: Frame) -> Batch | None:
            batch = super().take(frame)
            if batch is None or batch.count == 1:
                return batch
            lengths = len(batch.data).to_bytes(4, "little")
            return Batch(
                batch.sender, batch.incarnation, batch.counter, 1, batch.service, lengths, batch.data, batch.groups
            )

    return token_site(setup, inbox=Joined)


@mutant("room_never_said", "token_site", AREA, "whoever was refused because the queue was full is never told to go on")
def room_never_said(setup: Setup) -> Stack:
    class Mute(Sender):
        def _room(self) -> list[Action]:
            return []

    return token_site(setup, sender=Mute)


@mutant("inbox_not_reset", "token_site", AREA, "fragments of an earlier view are kept")
def inbox_not_reset(setup: Setup) -> Stack:
    class Keeps(Inbox):
        def reset(self) -> None:
            pass

    return token_site(setup, inbox=Keeps)


@mutant("refuses_half", "token_site", AREA, "a refused submission uses up its numbers")
def refuses_half(setup: Setup) -> Stack:
    class Half(Sender):
        def _submit(self, now: Nanoseconds, event: Submit) -> list[Action]:
            if self._refusal(event.submission, event.control):
                self.outbox.counter += len(event.submission.payloads)
            return super()._submit(now, event)

    return token_site(setup, sender=Half)


@mutant(
    "leaves_at_once",
    "totem",
    AREA,
    "a member that leaves drops what it had accepted, and does not say so",
    scenario="unheard_leave",
)
def leaves_at_once(setup: Setup) -> Stack:
    class Rude(Sender):
        def settle(self, now: Nanoseconds) -> list[Action]:
            return self.go(now) if self.leaving else []

        def unsent(self, below: tuple[int, int] | None = None) -> tuple[int, int] | None:
            return None

    return totem(setup, sender=Rude)


@mutant(
    "leaves_when_all_is_sent",
    "totem",
    AREA,
    "a member leaves before it knows that what it sent has arrived",
    scenario="unheard_leave",
)
def leaves_when_all_is_sent(setup: Setup) -> Stack:
    stack = totem(setup)
    stack.nodes[-1].layer.sender._unsettled = list  # type: ignore[attr-defined]
    return stack


@mutant(
    "leaves_and_names_too_little",
    "totem",
    AREA,
    "who gives up waiting names only what was never sent",
    scenario="unheard_leave",
)
def leaves_and_names_too_little(setup: Setup) -> Stack:
    class Vague(Sender):
        def unsent(self, below: tuple[int, int] | None = None) -> tuple[int, int] | None:
            first = self.outbox.first()
            return (first, self.outbox.counter) if first else None

    return totem(setup, sender=Vague)

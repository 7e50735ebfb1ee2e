"""What the membership tells its owner: actions of their own kind, never passed on to the driver."""

from __future__ import annotations

from ordercast.contract import Action
from ordercast.types import Cause, Incarnation, MemberId, ViewId


class Decision(Action, frozen=True, gc=False):
    """Base of what only the owner of a Membership may see."""


class Gathering(Decision, frozen=True, gc=False):
    """The view (or an attempt at one) is given up; the owner falls back to the state of its installed view."""

    cause: Cause


class Committed(Decision, frozen=True, gc=False):
    """Every member of the new ring has written its entry: recovery (flush) begins."""

    ring_id: ViewId
    members: tuple[MemberId, ...]  # sorted: the ring order
    entries: tuple[bytes, ...]  # as the members' owners wrote them, in the order of `members`
    incarnations: tuple[Incarnation, ...]
    cause: Cause  # why this member left its last view
    primary: bool | None = None  # whether the view will be, where the policy asks for it


class Returned(Decision, frozen=True, gc=False):
    """The commit token came back for the third time: the representative sends the new ring's first token."""

    ring_id: ViewId


class Outdone(Decision, frozen=True, gc=False):
    """Another life of this id stays: this member ends at once, `why` is the sentence to end with."""

    why: str


class Parted(Decision, frozen=True, gc=False):
    """Leave was said twice; this member takes no further part."""

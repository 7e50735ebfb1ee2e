"""One member's part in the membership: the object an owner holds.  See the package's docstring for its use."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any

from ordercast.contract import Action, Packet
from ordercast.types import Cause, Identity, MemberId, Nanoseconds, NetId, Peer, ViewId


class State(Enum):
    OPERATIONAL = "Operational"
    GATHER = "Gather"
    COMMIT = "Commit"
    RECOVERY = "Recovery"  # of the layer: Flush
    PARTED = "Parted"


class Membership:
    """Evidence, rows, choice, Gather and Commit of one member.

    direct: the owner cannot do without direct links (the view-synchronous layer): suspicion by silence of any member of
    the view instead of token loss, and a common working view is no evidence of a link.
    entry: called when the commit entry is written; from then on the owner is frozen until the next install.
    packet_bytes: rows beyond it are spread over several packets.
    """

    def __init__(
        self,
        identity: Identity,
        timeout_ns: Nanoseconds,
        rng: random.Random,
        *,
        entry: Callable[[], bytes],
        direct: bool = False,
        net: NetId = 0,
        packet_bytes: int = 1400,
    ) -> None:
        raise NotImplementedError

    # what an owner may read
    state: State
    view: ViewId  # installed view; (0, 0) before the first
    members: tuple[MemberId, ...]  # of the installed view; empty before the first
    new_ring: ViewId | None  # being formed: set from Commit until installed or given up
    new_members: tuple[MemberId, ...]
    ring_seq: int  # on storage before any token carries it
    t_loss: Nanoseconds  # T_loss in force
    frozen: bool  # entry written since the last install
    paused: bool  # in this step it came out that this member itself had stood still
    cause: Cause  # why the installed view was left, or is being left

    # ------------------------------------------------------------------------------------ inputs passed on by the owner

    def start(self, now: Nanoseconds, stored: Mapping[str, tuple[int, bytes]]) -> list[Action]:
        """Begin in Gather; a view of one follows when nobody answers."""
        raise NotImplementedError

    def heard(self, now: Nanoseconds, peer: Peer) -> list[Action] | None:
        """A packet came straight from `peer`.  None: drop it (stranger, or earlier incarnation)."""
        raise NotImplementedError

    def receive(self, now: Nanoseconds, peer: Peer, packet: Packet) -> list[Action]:
        """A packet of PACKETS that `heard` has let pass."""
        raise NotImplementedError

    def timer(self, now: Nanoseconds, name: str, due: Nanoseconds) -> list[Action]:
        """A timer whose name starts with "m."."""
        raise NotImplementedError

    def stood_still(self, now: Nanoseconds, due: Nanoseconds) -> list[Action]:
        """Called first at the owner's own timers; sets `paused`."""
        raise NotImplementedError

    def stored(self, now: Nanoseconds, key: str, number: int) -> list[Action]:
        raise NotImplementedError

    def store_failed(self, now: Nanoseconds, key: str, number: int, why: str) -> list[Action]:
        raise NotImplementedError

    def unreachable(self, now: Nanoseconds, member: MemberId) -> list[Action]:
        """The port of `member` answered that nobody is there (crash hint)."""
        raise NotImplementedError

    def leave(self, now: Nanoseconds) -> list[Action]:
        """The owner has drained: say Leave twice, then Parted."""
        raise NotImplementedError

    # ----------------------------------------------------------------------------------------- what the owner tells it

    def token(self, now: Nanoseconds, ring_id: ViewId, number: int) -> list[Action]:
        """A regular token of my ring (installed or in recovery) was accepted; restarts T_loss, measures rotation."""
        raise NotImplementedError

    def pass_token(self, now: Nanoseconds, to: MemberId, packet: Packet, ring_id: ViewId, number: int) -> list[Action]:
        """Transmit a regular token (already naming `to`) and repeat it until it is known to have gone on."""
        raise NotImplementedError

    def went_on(self, now: Nanoseconds) -> list[Action]:
        """A sign that the token passed on is alive: a message of its ring with seq above the copy's."""
        raise NotImplementedError

    def foreign(self, now: Nanoseconds, peer: Peer, ring_id: ViewId) -> list[Action]:
        """A packet of another ring came straight from `peer`: if newer, and a member of mine, it has left my view."""
        raise NotImplementedError

    def suspect(self, now: Nanoseconds, cause: Cause, strike: Sequence[MemberId] = ()) -> list[Action]:
        """The owner gives the view (or attempt) up: stuck receiver or link, Flush too long; strikes whom it blames."""
        raise NotImplementedError

    def installed(self, now: Nanoseconds) -> list[Action]:
        """Recovery is over: new_ring and new_members are the view now, and it works."""
        raise NotImplementedError

    def status(self) -> dict[str, Any]:
        """State, view, T_loss, who hears whom, strikes and probations, refused Joins, and what it waits for."""
        raise NotImplementedError

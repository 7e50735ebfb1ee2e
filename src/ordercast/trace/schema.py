"""The trace: one schema for live and simulated runs.

Rows are sorted by (run, member, incarnation, index).  Member 0 is the launcher or the simulator itself (start, crash,
pause, fault, stable).  A column that does not apply is null.

What a row says beyond its columns' names:
- start, crash, pause, resume written by member 0: `sender`, `sender_incarnation` name whom it happened to (a member may
  write them about itself, too; then both are null);
- view: a transitional view has the id of the regular view that follows it, `previous` is the one it closes; detail has
  `cause` (words), `reason`, `components` ([[old view or null, members], ...]), `primary` (false when it is not);
- stable: `members` is who stays up and connected from this time on, detail has `delay_ns`, the bound on one hop;
- end: detail has `queues`, sizes by name; refuse: detail has `why`; note: detail has `name` and its fields;
- originate, deliver: detail `altered` is the counter of the first message that is not what its sender submitted.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from msgspec import Struct

SCHEMA_VERSION = 1


class Kind(IntEnum):
    """What happened.  The numbers are on disk: never change one."""

    SUBMIT = 1
    ORIGINATE = 2
    RECEIVE = 3
    DECIDE = 4
    DELIVER = 5
    VIEW = 6
    GROUP_VIEW = 7
    REFUSE = 8
    START = 9
    CRASH = 10
    LEAVE = 11
    PAUSE = 12
    RESUME = 13
    ABSENT = 14
    PRESENT = 15
    MODE = 16
    DROP = 17
    FAULT = 18
    STABLE = 19
    NOTE = 20
    END = 21

    @property
    def word(self) -> str:
        return self.name.lower()


class Level(IntEnum):
    """How much is written; each includes those before it."""

    OFF = 0
    DELIVER = 1  # submit, originate, deliver, view, life cycle
    FULL = 2  # also receive, decide, note, drop
    RECORD = 3  # also every input as the core got it


LEVEL_KINDS: dict[Level, frozenset[Kind]] = {
    Level.OFF: frozenset(),
    Level.DELIVER: frozenset(set(Kind) - {Kind.RECEIVE, Kind.DECIDE, Kind.NOTE, Kind.DROP}),
    Level.FULL: frozenset(Kind),
    Level.RECORD: frozenset(Kind),
}


class Row(Struct, frozen=True, gc=False):
    """One event.  `run` is the file's (or the group of rows'), so it is not repeated here."""

    member: int
    incarnation: int
    index: int  # gap-free from 1 per (member, incarnation)
    time_ns: int  # virtual time in simulation, monotonic clock live
    now_ns: int  # the value given to the core
    kind: int
    sender: int | None = None
    sender_incarnation: int | None = None
    counter: int | None = None
    count: int | None = None
    digest: int | None = None  # u64 of the frame's bytes
    position: int | None = None  # messages delivered here before this row, this incarnation
    order_epoch: int | None = None
    order_seq: int | None = None
    ring: int | None = None
    service: int | None = None
    groups: tuple[str, ...] | None = None
    view_seq: int | None = None  # deliver, originate: the view it happened in; view: the view installed
    view_rep: int | None = None
    view_kind: int | None = None
    members: tuple[int, ...] | None = None
    trans: tuple[int, ...] | None = None
    previous_seq: int | None = None
    previous_rep: int | None = None
    certainty: str | None = None
    detail: dict[str, Any] | None = None  # JSON in files


SUBMIT_COUNT_MAX = 1 << 20  # messages of one row; more can only be damage
FRAME_KINDS = (Kind.ORIGINATE, Kind.RECEIVE, Kind.DELIVER)  # whose rows have at most FRAME_MESSAGES_MAX

COLUMNS: tuple[str, ...] = Row.__struct_fields__


class Header(Struct):
    """What a run was: enough to judge it without the code that made it."""

    run: str
    protocol: str
    service: str
    members: tuple[int, ...]
    promises: tuple[str, ...]  # ids it is judged by
    level: str = "deliver"
    live: bool = False
    seed: int | None = None
    timeout_ns: int = 0
    options: dict[str, Any] = {}
    workload: dict[str, Any] = {}  # how payloads follow from (sender, incarnation, counter)
    versions: dict[str, str] = {}
    clock_offsets_ns: dict[str, int] = {}
    scenario: dict[str, Any] | None = None
    schema: int = SCHEMA_VERSION


class DatagramCounts(Struct, frozen=True):
    """What a driver counted over one incarnation: `detail["traffic"]` of its end row.  `measure` reads it."""

    transmitted: int = 0  # datagrams handed to the network; one for a multicast, one per receiver of a unicast fan-out
    transmitted_bytes: int = 0  # their payloads, our own header included
    received: int = 0
    received_bytes: int = 0
    delivered_bytes: int = 0  # of the messages given to the application

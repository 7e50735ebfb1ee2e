"""The trace: one schema for live and simulated runs.

Rows are sorted by (run, member, incarnation, index).  Member 0 is the launcher or the simulator itself (start, crash,
pause, fault, stable).  A column that does not apply is null.

What a row says beyond its columns' names:
- start, crash, pause, resume written by member 0: `sender`, `sender_incarnation` name whom it happened to (a member may
  write them about itself, too; then both are null);
- start: detail `wall_ns` is the wall clock at `time_ns`, the one place where a life tells both;
- view: a transitional view has the id of the regular view that follows it, `previous` is the one it closes; detail has
  `cause` (words), `reason`, `components` ([[old view or null, members], ...]), `primary` (where a policy says);
- stable: `members` is who stays up and connected from this time on, detail has `delay_ns`, the bound on one hop;
- mode: detail has `role` and `number`, how often it has changed; written when a member takes another role;
- end: detail has `queues`, sizes by name; refuse: detail has `why`; note: detail has `name` and its fields;
- originate, deliver: detail `altered` is the counter of the first message that is not what its sender submitted;
- deliver: detail `stamp` is the timestamp that a message has on all rings, where there are several.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated, Any, get_type_hints

from msgspec import Struct

from ordercast.types import ALL_CONTINUE

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


HEAD = -1  # the place of what a row file says once, in its head
NULL_INT, NULL_U32, NULL_U64 = -(2**63), 2**32 - 1, -1  # what means null in arrays


class Cell(Struct, frozen=True):
    """A column of fixed width: its place in a row file, and how arrays and Parquet hold it."""

    disk: str  # u1, u2, u4, u8 or i8; little endian in row files, the same in Parquet
    at: int  # byte in the row.  It is on disk: never change it
    null: int | None = None  # what means null in arrays; None: never null.  In row files null is a bit
    packing: str = "words"  # in Parquet: few different ones, `delta` where they grow, or `plain`
    unsigned: bool = False  # 64 bits are signed in arrays, unless so

    @property
    def memory(self) -> str:
        return "i8" if self.disk == "u8" and not self.unsigned else self.disk


class Aside(Struct, frozen=True):
    """A column without a fixed width, or of few rows: in the side file, and in arrays apart, by row number."""

    arrow: str  # its type in Parquet
    coded: bool = False  # few different ones: in arrays codes into a table
    pair: str = ""  # the name in the side file of two columns that are one there


class Row(Struct, frozen=True, gc=False):
    """One event.  `run` is the file's (or the group of rows'), so it is not repeated here.

    This is the one description of the trace: row files, arrays, Parquet and what the recorder writes follow from it.
    """

    member: Annotated[int, Cell("u4", HEAD)]
    incarnation: Annotated[int, Cell("u8", HEAD)]
    index: Annotated[int, Cell("u8", 112, packing="delta")]  # gap-free from 1 per (member, incarnation)
    time_ns: Annotated[int, Cell("i8", 0, packing="delta")]  # virtual time in simulation, monotonic clock live
    now_ns: Annotated[int, Cell("i8", 8, packing="delta")]  # the value given to the core
    kind: Annotated[int, Cell("u1", 103)]
    sender: Annotated[int | None, Cell("u4", 88, NULL_U32)] = None
    sender_incarnation: Annotated[int | None, Cell("u8", 16, NULL_U64)] = None
    counter: Annotated[int | None, Cell("u8", 24, NULL_U64, "delta")] = None
    count: Annotated[int | None, Cell("u4", 92, 0)] = None
    digest: Annotated[int | None, Cell("u8", 32, 0, "plain", unsigned=True)] = None  # u64 of the frame's bytes
    position: Annotated[int | None, Cell("i8", 40, NULL_INT, "delta")] = None  # messages this life delivered before
    order_epoch: Annotated[int | None, Cell("i8", 48, NULL_INT)] = None
    order_seq: Annotated[int | None, Cell("i8", 56, NULL_INT, "delta")] = None
    ring: Annotated[int | None, Cell("u2", 100, 2**16 - 1)] = None
    service: Annotated[int | None, Cell("u1", 102, 0)] = None
    groups: Annotated[tuple[str, ...] | None, Aside("list<string>", coded=True)] = None
    view_seq: Annotated[int | None, Cell("u8", 64, NULL_U64)] = None  # the view it happened in; view: the one installed
    view_rep: Annotated[int | None, Cell("u4", 96, NULL_U32)] = None
    view_kind: Annotated[int | None, Cell("u1", 104, 0)] = None
    members: Annotated[tuple[int, ...] | None, Aside("list<u4>")] = None
    trans: Annotated[tuple[int, ...] | None, Aside("list<u4>")] = None
    previous_seq: Annotated[int | None, Aside("u8", pair="previous")] = None
    previous_rep: Annotated[int | None, Aside("u4", pair="previous")] = None
    certainty: Annotated[str | None, Aside("word", coded=True)] = None
    detail: Annotated[dict[str, Any] | None, Aside("json")] = None


COLUMNS: tuple[str, ...] = Row.__struct_fields__
TYPES: dict[str, Any] = get_type_hints(Row)
_told = {name: hint.__metadata__[0] for name, hint in get_type_hints(Row, include_extras=True).items()}
CELLS: dict[str, Cell] = {name: of for name, of in _told.items() if isinstance(of, Cell)}
ASIDE: dict[str, Aside] = {name: of for name, of in _told.items() if isinstance(of, Aside)}
CODED = tuple(name for name, of in ASIDE.items() if of.coded)
SPARSE = tuple(name for name, of in ASIDE.items() if not of.coded)
NULLABLE = tuple(name for name, cell in CELLS.items() if cell.null is not None)  # bit k of a file's `null`: the kth

# what else a row of a file has: where in the side file the rest is, a word that is common, which columns are null
REST = {
    "side": Cell("u8", 72), "side_bytes": Cell("u4", 80), "side_crc": Cell("u4", 84), "certainty": Cell("u1", 105),
    "null": Cell("u2", 106), "unused": Cell("u4", 108),
}  # fmt: skip
LAYOUT: dict[str, Cell] = dict(
    sorted(((n, c) for n, c in (CELLS | REST).items() if c.at >= 0), key=lambda item: item[1].at)
)
CERTAINTIES = (None, "marked", "expired", "late", "dummy")  # in row files by number; others are in the side file

FRAME_KINDS = (Kind.ORIGINATE, Kind.RECEIVE, Kind.DELIVER)  # whose rows have at most FRAME_MESSAGES_MAX messages


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
    partition: str = ALL_CONTINUE  # the policy: what the parts of a split group may do
    workload: dict[str, Any] = {}  # how payloads follow from (sender, incarnation, counter)
    versions: dict[str, str] = {}
    clock_offsets_ns: dict[str, int] = {}
    scenario: dict[str, Any] | None = None
    walls_ns: dict[str, int] = {}  # MEMBER-INCARNATION -> wall clock less time_ns, where the start row may be gone
    gone: dict[str, str] = {}  # member -> the oldest of its files that is left, where older ones are no longer kept
    parameters: dict[str, Any] = {}  # of a sweep: axis -> value, as a person named it
    lost: tuple[tuple[int, int], ...] = ()  # lives of which rows were left out when it was read; 0: unknown
    schema: int = SCHEMA_VERSION


class DatagramCounts(Struct, frozen=True):
    """What a driver counted over one incarnation: `detail["traffic"]` of its end row.  `measure` reads it."""

    transmitted: int = 0  # datagrams handed to the network; one for a multicast, one per receiver of a unicast fan-out
    transmitted_bytes: int = 0  # their payloads, our own header included
    received: int = 0
    received_bytes: int = 0
    delivered_bytes: int = 0  # of the messages given to the application

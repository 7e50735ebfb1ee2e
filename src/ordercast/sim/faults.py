"""Faults as data: one struct per class, all of them fields of a Scenario and rows of its trace.

Times are milliseconds of virtual time.  A fault acts from `at_ms` until `until_ms`; without `until_ms` it lasts until
the scenario heals, or to the end.  A fault on links acts on every ordered pair of members unless it names some:
`pairs` holds "1>2" (from 1 to 2), "1-2" (both ways), and "*" for anybody on either side ("*>1": 1 is deaf);
`packets` names packet types, or the types of the bodies inside them; `cast` keeps to multicasts or unicasts.
With `down_ms` and `up_ms` a fault on links flaps: on for the one, off for the other, until it ends.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, get_args

from msgspec import Meta, Struct

from ordercast.sim.amounts import DAY_MS, AtLeastOne, Copies, Count, Id, Ms, Share, Size, Times, Us
from ordercast.sim.law import Delay


class Fault(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="fault"):
    """Base of all classes.  `family` is the word by which a protocol says that it survives the class."""

    family: ClassVar[str] = ""

    at_ms: Ms = 0.0
    until_ms: Ms | None = None

    @property
    def word(self) -> str:
        """The class name, as logged and counted."""
        return str(self.__struct_config__.tag)

    def named_members(self) -> tuple[int, ...]:
        """Members it names, so that a scenario can be checked."""
        return ()


# ----------------------------------------------------------------------------------------------------------- links


class LinkFault(Fault, frozen=True, kw_only=True):
    """What happens to datagrams on their way, per receiver."""

    pairs: tuple[str, ...] = ()
    net: Id | None = None
    cast: Literal["any", "unicast", "multicast"] = "any"
    packets: tuple[str, ...] = ()
    count: Count | None = None  # at most this many datagrams, then it stops
    down_ms: Ms = 0.0
    up_ms: Ms = 0.0
    lasting: bool = False  # stays on after the heal point: never among members of the core

    def named_members(self) -> tuple[int, ...]:
        return tuple(int(end) for pair in self.pairs for end in split_pair(pair)[:2] if end != "*")


def split_pair(pair: str) -> tuple[str, str, bool]:
    """(from, to, both ways) of "1>2" or "1-2"; raises ValueError for anything else."""
    for mark, both in ((">", False), ("-", True)):
        left, found, right = pair.partition(mark)
        if found:
            left, right = left.strip(), right.strip()
            if all(end == "*" or (end.isascii() and end.isdigit() and len(end) <= 10) for end in (left, right)):
                return left, right, both
    raise ValueError(pair)


class Loss(LinkFault, frozen=True, kw_only=True, tag="loss"):
    """Each datagram is lost with probability `p`, per receiver.  With `packets`: token loss, commit loss, ..."""

    family = "loss"
    p: Share = 1.0


class BurstLoss(LinkFault, frozen=True, kw_only=True, tag="burst_loss"):
    """Gilbert-Elliott: each link is good or bad; a datagram moves it and is lost by its state's probability."""

    family = "loss"
    to_bad: Share = 0.01
    to_good: Share = 0.2
    p_good: Share = 0.0
    p_bad: Share = 1.0


class Subset(LinkFault, frozen=True, kw_only=True, tag="subset"):
    """With probability `p` a multicast reaches only a random proper subset of its receivers."""

    family = "loss"
    p: Share = 1.0


class Mtu(LinkFault, frozen=True, kw_only=True, tag="mtu"):
    """Datagrams above `bytes` are lost."""

    family = "loss"
    bytes: Annotated[int, Meta(ge=0, le=65_535)] = 1472


class Duplication(LinkFault, frozen=True, kw_only=True, tag="duplication"):
    """With probability `p` a datagram comes again (`copies` times), each up to `within_ms` later."""

    family = "duplication"
    p: Share = 1.0
    copies: Copies = 1
    within_ms: Ms = 1.0


class Reordering(LinkFault, frozen=True, kw_only=True, tag="reordering"):
    """With probability `p` a datagram is held up to `within_ms`, so that later ones overtake it."""

    family = "reordering"
    p: Share = 0.5
    within_ms: Ms = 1.0


class Slowness(LinkFault, frozen=True, kw_only=True, tag="delay"):
    """With probability `p` a datagram takes longer by a draw of `law` (spikes: small p, long law)."""

    family = "delay"
    p: Share = 1.0
    law: Delay = Delay("exponential", mean_us=5000.0)


class Clog(LinkFault, frozen=True, kw_only=True, tag="clog"):
    """Datagrams are held and all released when it ends."""

    family = "clog"


class Swizzle(Fault, frozen=True, kw_only=True, tag="swizzle"):
    """Members (a random subset when none are named) are clogged one by one and unclogged in another order."""

    family = "clog"
    members: tuple[Id, ...] = ()

    def named_members(self) -> tuple[int, ...]:
        return self.members


class Corruption(LinkFault, frozen=True, kw_only=True, tag="corruption"):
    """With probability `p` a datagram's bytes are flipped (`bits` of them) or cut off; it must become loss."""

    family = "corruption"
    p: Share = 1.0
    how: Literal["flip", "truncate"] = "flip"
    bits: Annotated[int, Meta(ge=1, le=10_000)] = 1


class Version(LinkFault, frozen=True, kw_only=True, tag="version"):
    """Datagrams carry another version of the wire format (give `pairs = ["2>*"]`: member 2 runs another release)."""

    family = "version"
    version: Annotated[int, Meta(ge=0, le=255)] = 2


class Replay(LinkFault, frozen=True, kw_only=True, tag="replay"):
    """At `at_ms`, and each `every_ms` after it, `copies` datagrams sent more than `age_ms` ago come once more.

    With `packets = ["Token"]` a token of an earlier rotation, with ["Commit"] a stale commit token; with `age_ms` above
    the length of a view change or restart, packets of an earlier view or life.  They go to whom they once went to.
    """

    family = "replay"
    age_ms: Ms = 0.0
    every_ms: Ms = 0.0
    copies: Copies = 1
    keep: Annotated[int, Meta(ge=1, le=10**6)] = 4096  # how many datagrams are remembered


class Foreign(LinkFault, frozen=True, kw_only=True, tag="foreign"):
    """With probability `p` a datagram comes a second time, from somebody it should not come from: a stranger, whose id
    is not in the group, or a clone, a later life of the member that receives it."""

    family = "replay"
    p: Share = 1.0
    who: Literal["stranger", "clone"] = "stranger"


class Cut(LinkFault, frozen=True, kw_only=True, tag="cut"):
    """The links named by `pairs` carry nothing (of `cast` and `packets`).  `edges`: pairs are edges of a graph net."""

    family = "partition"
    edges: bool = False


class Partition(LinkFault, frozen=True, kw_only=True, tag="partition"):
    """A shape of cut; members are drawn where none are named.

    halves: `groups` (or two random halves) do not hear each other.  isolate: `member` and the rest.  split: each member
    goes to one of two or more random sides.  pair: one ordered pair.  bridge: two halves that meet only in `member`.
    ring: each member hears only those next to it on a circle, a different majority for each.  gateway: `member`, which
    sits on several nets or relays in a graph, is cut off from net `net` (all but the first when not given).
    `one_way`: of each cut pair only the direction towards later groups is cut ("out": from the member, "in": to it).
    """

    family = "partition"
    shape: Literal["halves", "isolate", "split", "pair", "bridge", "ring", "gateway"] = "halves"
    groups: tuple[tuple[Id, ...], ...] = ()
    member: Id | None = None
    one_way: Literal["", "in", "out"] = ""

    @property
    def word(self) -> str:
        return f"partition.{self.shape}"

    def named_members(self) -> tuple[int, ...]:
        named = tuple(m for group in self.groups for m in group) if self.shape != "gateway" else ()
        return named if self.member is None or self.shape == "gateway" else (*named, self.member)


# --------------------------------------------------------------------------------------------------------- process


class MemberFault(Fault, frozen=True, kw_only=True):
    """What happens to one member; a random one when none is named."""

    member: Id | None = None

    def named_members(self) -> tuple[int, ...]:
        return () if self.member is None else (self.member,)


class Crash(MemberFault, frozen=True, kw_only=True, tag="crash"):
    """The process dies at `at_ms`; it starts again after `down_ms`, with its disk or without, or never.

    Between handlers, unless `actions` is given: then in the next handler that causes more than so many actions, the
    first `actions` of which are carried out; or `on`: just before the `nth` Transmit of that packet type from then on.
    """

    family = "crash"
    down_ms: Ms | None = None
    disk: bool = True
    actions: Count | None = None
    on: str = ""
    nth: Annotated[int, Meta(ge=1, le=1_000_000)] = 1

    @property
    def word(self) -> str:
        return "crash.mid_handler" if self.actions is not None or self.on else "crash"


class Storm(MemberFault, frozen=True, kw_only=True, tag="storm"):
    """`times` crashes, `every_ms` apart, each followed by a restart after `down_ms`."""

    family = "crash"
    times: Copies = 5
    every_ms: Ms = 200.0
    down_ms: Ms = 20.0
    disk: bool = True


class OtherTimeout(MemberFault, frozen=True, kw_only=True, tag="other_timeout"):
    """The process is started again with `times` the timeout of the others, a mistake in its configuration; when the
    fault ends, once more with the right one.  In a scenario with this fault members tell each other their terms."""

    family = "crash"
    times: Times = 2.0


class Claimant(MemberFault, frozen=True, kw_only=True, tag="claimant"):
    """A second process says it is this member, on a machine of its own with an empty disk: multicasts reach both, what
    is sent to the member alone reaches the first.  It ends with the fault; a first one that gave way is started again
    then."""

    family = "crash"


class Pause(MemberFault, frozen=True, kw_only=True, tag="pause"):
    """The process stands still for `for_ms`; datagrams wait in its buffer.  `on`: from just before it next transmits
    a packet of that type (a token: while it holds it)."""

    family = "pause"
    for_ms: Ms = 100.0
    on: str = ""


class Leaving(MemberFault, frozen=True, kw_only=True, tag="leave"):
    """The member leaves in good order, at the latest `within_ms` after it was asked to; `away_ms` after that, and when
    it has left, it starts again, or never."""

    family = "leave"
    away_ms: Ms | None = None
    within_ms: Ms | None = None


class Regroup(MemberFault, frozen=True, kw_only=True, tag="regroup"):
    """The member leaves one of its process groups and joins it again after `away_ms`, or never."""

    family = "leave"
    away_ms: Ms | None = None


class Slow(MemberFault, frozen=True, kw_only=True, tag="slow"):
    """Every step takes `times` as long, and at least `times` x `step_us` where the host costs nothing."""

    family = "slow"
    times: Times = 10.0
    step_us: Us = 20.0


class Drift(MemberFault, frozen=True, kw_only=True, tag="drift"):
    """The member's monotonic clock runs fast or slow by `percent`, from -10 to 10; it never goes back."""

    family = "drift"
    percent: Annotated[float, Meta(ge=-10, le=10)] = 10.0


class ClockJump(MemberFault, frozen=True, kw_only=True, tag="clock"):
    """The wall clock jumps; only the numbers taken from it at a restart feel it."""

    family = "clock"
    by_ms: Annotated[float, Meta(ge=-DAY_MS, le=DAY_MS)] = 3_600_000.0


# ------------------------------------------------------------------------------------------------------------ disk


class DiskFault(MemberFault, frozen=True, kw_only=True, tag="disk"):
    """slow: `times` as long.  full, error: writes fail.  lost: what was written since `at_ms` is gone after a crash,
    though it was acknowledged.  torn: the write under way at a crash leaves any part of itself.  flip: at a crash each
    file has one of its bits turned, with even chance.  What the next life makes of it: `drivers/store.py`."""

    family = "disk"
    how: Literal["slow", "full", "error", "lost", "torn", "flip"] = "slow"
    times: Times = 100.0

    @property
    def word(self) -> str:
        return f"disk.{self.how}"


# -------------------------------------------------------------------------------------------------------- overload


class Burst(MemberFault, frozen=True, kw_only=True, tag="burst"):
    """The application submits `messages` more at once, of `size` bytes: giant ones, or thousands of tiny ones."""

    family = "overload"
    messages: Annotated[int, Meta(ge=0, le=10**6)] = 1000
    size: Size = 64
    batch: AtLeastOne = 100


class SmallBuffer(MemberFault, frozen=True, kw_only=True, tag="buffer"):
    """The receive buffer holds `packets` datagrams; what does not fit is lost and counted as drops."""

    family = "overload"
    packets: Count = 4


class Consumer(MemberFault, frozen=True, kw_only=True, tag="consumer"):
    """The application does not read: each delivered frame takes one of its `frames` places until it ends."""

    family = "overload"
    frames: Count = 32


AnyFault = (
    Loss | BurstLoss | Subset | Mtu | Duplication | Reordering | Slowness | Clog | Swizzle | Corruption | Version
    | Replay | Foreign | Cut | Partition | Crash | Storm | OtherTimeout | Claimant | Pause | Leaving | Regroup | Slow
    | Drift | ClockJump | DiskFault | Burst | SmallBuffer | Consumer
)  # fmt: skip
FAULTS: tuple[type[Fault], ...] = get_args(AnyFault)

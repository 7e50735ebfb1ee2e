"""What goes wrong in a swarm's run: for each family of faults, how one seed draws it.

A family is the word by which a protocol says what it survives (`ProtocolInfo.survives`); the faults are those of the
simulator (ordercast.sim.faults).  Strengths are log-uniform, so that the mild and the wild are equally likely.
Every fault ends with the heal point at the latest, but for `permanent` ones, which a run of their own is given to.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from math import exp, log

from msgspec import Struct

from ordercast.sim import faults as f
from ordercast.sim.law import Delay

BACK_MS = 0.05  # after a start, half way through its first write
PERMANENT = "permanent"  # lopsided cuts that never heal: one-way, bridged, ring-shaped


class Ground(Struct):
    """Where faults are drawn: the run they fall into."""

    random: random.Random
    ids: tuple[int, ...]
    packets: tuple[str, ...]  # names of packet types and of the bodies in them
    timeout_ms: float  # T
    warm_ms: float  # nothing happens before
    heal_ms: float
    datagram_bytes: int
    sizes: tuple[int, ...]
    groups: int = 0
    gateways: tuple[int, ...] = ()

    def member(self) -> int:
        return self.random.choice(self.ids)

    def chance(self, p: float) -> bool:
        return self.random.random() < p

    def strength(self, low: float, high: float) -> float:
        """Log-uniform, of three digits."""
        return short(exp(self.random.uniform(log(low), log(high))))

    def time(self) -> float:
        """Some moment of the fault phase."""
        return round(self.random.uniform(self.warm_ms, self.heal_ms), 1)

    def window(self, longest: float = 1e9) -> dict[str, float | None]:
        """When it acts: in two of five cases all the time until the heal point, else for a while (in units of T)."""
        if longest >= 1e9 and self.chance(0.4):
            return {"at_ms": self.warm_ms}
        at = self.time()
        length = self.strength(0.1, min(longest, max(0.2, (self.heal_ms - self.warm_ms) / self.timeout_ms)))
        return {"at_ms": at, "until_ms": round(min(self.heal_ms, at + length * self.timeout_ms), 1)}

    def pairs(self) -> tuple[str, ...]:
        """Mostly every pair; else one direction of one, all to one, or all from one."""
        if len(self.ids) < 2 or self.chance(0.6):
            return ()
        a, b = self.random.sample(self.ids, 2)
        return (self.random.choice((f"{a}>{b}", f"{a}-{b}", f"{a}>*", f"*>{b}")),)


def short(value: float) -> float:
    return float(f"{value:.3g}")


Maker = Callable[[Ground], list[f.AnyFault]]

# ----------------------------------------------------------------------------------------------------------- links


def loss(g: Ground) -> list[f.AnyFault]:
    kind = g.random.choices(("uniform", "burst", "subset", "typed", "mtu"), (4, 2, 2, 3, 1))[0]
    if kind == "burst":
        return [f.BurstLoss(to_bad=g.strength(0.002, 0.1), to_good=g.strength(0.05, 0.5), **g.window())]
    if kind == "subset":
        return [f.Subset(p=g.strength(0.01, 0.6), **g.window())]
    if kind == "typed":
        return [f.Loss(p=g.strength(0.05, 1.0), packets=(g.random.choice(g.packets),), pairs=g.pairs(), **g.window(6))]
    if kind == "mtu":
        return [f.Mtu(bytes=g.random.randint(100, g.datagram_bytes), **g.window(6))]
    return [f.Loss(p=g.strength(0.002, 0.6), pairs=g.pairs(), **g.window())]


def duplication(g: Ground) -> list[f.AnyFault]:
    within = short(g.strength(0.001, 3) * g.timeout_ms)
    return [f.Duplication(p=g.strength(0.01, 1.0), copies=g.random.randint(1, 3), within_ms=within, **g.window())]


def reordering(g: Ground) -> list[f.AnyFault]:
    within = short(g.strength(0.001, 1) * g.timeout_ms)
    return [f.Reordering(p=g.strength(0.01, 1.0), within_ms=within, pairs=g.pairs(), **g.window())]


def delay(g: Ground) -> list[f.AnyFault]:
    law = Delay("exponential", mean_us=short(g.strength(0.01, 2) * g.timeout_ms * 1000))
    return [f.Slowness(p=g.strength(0.005, 0.5), law=law, pairs=g.pairs(), **g.window())]


def clog(g: Ground) -> list[f.AnyFault]:
    if g.chance(0.4):
        return [f.Swizzle(**g.window(8))]
    return [f.Clog(pairs=g.pairs(), **g.window(4)) for _ in range(g.random.randint(1, 3))]


def corruption(g: Ground) -> list[f.AnyFault]:
    how = g.random.choice(("flip", "truncate"))
    return [f.Corruption(p=g.strength(0.005, 0.3), how=how, bits=g.random.choice((1, 2, 8)), **g.window())]


def version(g: Ground) -> list[f.AnyFault]:
    return [f.Version(pairs=(f"{g.member()}>*",), **g.window(6))]


def replay(g: Ground) -> list[f.AnyFault]:
    packets = (g.random.choice(g.packets),) if g.chance(0.5) else ()
    return [
        f.Replay(
            age_ms=short(g.strength(0.01, 10) * g.timeout_ms),
            every_ms=short(g.strength(0.05, 3) * g.timeout_ms),
            copies=g.random.randint(1, 8),
            packets=packets,
            **g.window(),
        )
    ]


def partition(g: Ground) -> list[f.AnyFault]:
    """One to three cuts, of any shape, that end; some flap, some concern one way or one kind of cast only."""
    if len(g.ids) < 2:
        return []
    return [_cut(g) for _ in range(g.random.randint(1, 3))]


def _cut(g: Ground) -> f.AnyFault:
    window = g.window(12)
    flap: dict[str, float] = {}
    if g.chance(0.2):
        down = short(g.strength(0.2, 3) * g.timeout_ms)
        flap = {"down_ms": down, "up_ms": short(g.strength(0.2, 6) * g.timeout_ms)}
    if g.chance(0.25):
        a, b = g.random.sample(g.ids, 2)
        cast = g.random.choice(("any", "unicast", "multicast"))
        return f.Cut(pairs=(g.random.choice((f"{a}>{b}", f"{a}-{b}")),), cast=cast, **window, **flap)
    if g.gateways and g.chance(0.4):
        return f.Partition(shape="gateway", member=g.random.choice(g.gateways), **window, **flap)
    shape = g.random.choice(("halves", "isolate", "split", "pair", "bridge", "ring"))
    one_way = g.random.choice(("", "", "in", "out"))
    return f.Partition(shape=shape, one_way=one_way, **window, **flap)


def permanent(g: Ground) -> list[f.AnyFault]:
    """A lopsided cut from some moment on, for ever: of a pair, around one member, a bridge, a ring of majorities; of
    everything, of one kind of cast, of one type of packet; steady, or coming and going."""
    lasting: dict[str, object] = {"at_ms": round(g.warm_ms, 1), "lasting": True}
    shape = g.random.choice(("pair", "cast", "typed", "flapping", "isolate", "bridge", "ring"))
    if shape == "bridge":
        return [f.Partition(shape="bridge", member=g.member(), **lasting)]  # type: ignore[arg-type]
    if shape == "ring":
        return [f.Partition(shape="ring", **lasting)]  # type: ignore[arg-type]
    if shape == "isolate":
        one_way = g.random.choice(("in", "out"))
        return [f.Partition(shape="isolate", member=g.member(), one_way=one_way, **lasting)]  # type: ignore[arg-type]
    a, b = g.random.sample(g.ids, 2)
    lasting["pairs"] = (g.random.choice((f"{a}>{b}", f"{a}-{b}")),)
    if shape == "cast":
        lasting["cast"] = g.random.choice(("unicast", "multicast"))
    elif shape == "typed":
        lasting["packets"] = (g.random.choice(g.packets),)
    elif shape == "flapping":
        length = short(g.strength(0.3, 4) * g.timeout_ms)
        lasting |= {"down_ms": length, "up_ms": length}
    return [f.Cut(**lasting)]  # type: ignore[arg-type]


# --------------------------------------------------------------------------------------------------------- process


def crash(g: Ground) -> list[f.AnyFault]:
    """Deaths, in mid-handler and between, with a return or without, with the disk or without; or a storm of them."""
    if g.chance(0.2):
        every, down = short(g.strength(0.2, 5) * g.timeout_ms), short(g.strength(0.01, 2) * g.timeout_ms)
        times = g.random.randint(2, 6)
        return [
            f.Storm(member=g.member(), at_ms=g.time(), times=times, every_ms=every, down_ms=down, disk=g.chance(0.6))
        ]
    return [_death(g) for _ in range(g.random.randint(1, 3))]


def _death(g: Ground) -> f.AnyFault:
    down = None if g.chance(0.3) else short(g.strength(0.01, 8) * g.timeout_ms)
    actions = g.random.randint(0, 6) if g.chance(0.3) else None
    on = g.random.choice(g.packets) if actions is None and g.chance(0.3) else ""
    return f.Crash(member=g.member(), at_ms=g.time(), down_ms=down, disk=g.chance(0.6), actions=actions, on=on)


def pause(g: Ground) -> list[f.AnyFault]:
    out: list[f.AnyFault] = []
    for _ in range(g.random.randint(1, 4)):
        on = g.random.choice(g.packets) if g.chance(0.3) else ""
        out.append(f.Pause(member=g.member(), at_ms=g.time(), for_ms=short(g.strength(0.05, 8) * g.timeout_ms), on=on))
    if g.chance(0.1):  # everybody at once, for the same time
        at, length = g.time(), short(g.strength(0.5, 4) * g.timeout_ms)
        out = [f.Pause(member=m, at_ms=at, for_ms=length) for m in g.ids]
    return out


def leave(g: Ground) -> list[f.AnyFault]:
    away = None if g.chance(0.4) else short(g.strength(0.1, 8) * g.timeout_ms)
    if g.groups > 1 and g.chance(0.5):
        return [f.Regroup(member=g.member(), at_ms=g.time(), away_ms=away) for _ in range(g.random.randint(1, 3))]
    return [f.Leaving(member=g.member(), at_ms=g.time(), away_ms=away)]


def slow(g: Ground) -> list[f.AnyFault]:
    return [f.Slow(member=g.member(), times=g.strength(2, 50), **g.window())]


def drift(g: Ground) -> list[f.AnyFault]:
    return [
        f.Drift(member=member, percent=round(g.random.uniform(-10, 10), 1), **g.window())
        for member in g.random.sample(g.ids, g.random.randint(1, len(g.ids)))
    ]


def clock(g: Ground) -> list[f.AnyFault]:
    return [f.ClockJump(member=g.member(), at_ms=g.time(), by_ms=g.random.choice((-1, 1)) * g.strength(1, 3_600_000))]


def disk(g: Ground) -> list[f.AnyFault]:
    how = g.random.choice(("slow", "full", "error", "lost", "torn", "flip"))
    return [f.DiskFault(member=g.member(), how=how, times=g.strength(2, 200), **g.window(10))]


def overload(g: Ground) -> list[f.AnyFault]:
    kind = g.random.choice(("burst", "buffer", "consumer"))
    if kind == "burst":
        messages = int(g.strength(10, 300))
        size = g.random.choice(g.sizes)
        messages = max(1, min(messages, 200_000 // (size + 1)))
        return [f.Burst(member=g.member(), at_ms=g.time(), messages=messages, size=size, batch=g.random.randint(1, 64))]
    if kind == "buffer":
        return [f.SmallBuffer(member=g.member(), packets=int(g.strength(1, 64)), **g.window())]
    return [f.Consumer(member=g.member(), frames=int(g.strength(1, 128)), **g.window())]


# ----------------------------------------------------------------------------------------------------- rarer, on top

RARELY = 0.3


def more(g: Ground, on: tuple[str, ...]) -> list[f.AnyFault]:
    """Situations that need two things at once, or come after the heal point; drawn on top of the families that are on.

    They have a generator of their own: what was drawn before they were thought of stays as it was.
    """
    if len(g.ids) < 2:
        return []
    makers: list[tuple[Maker, tuple[str, ...]]] = [
        (_foreign, ("replay",)), (_other_timeout, ("crash",)), (_ghost, ("crash", "replay")),
        (_late_loss, ("loss",)), (_regroup_at_merge, ("leave", "partition")), (_bad_start, ("crash", "disk")),
        (_hurried_leave, ("leave", "overload")), (_unheard_leave, ("leave", "loss")),
        (_claimant, ("crash",)),
    ]  # fmt: skip
    out: list[f.AnyFault] = []
    for maker, needs in makers:
        if g.chance(RARELY) and set(needs) <= set(on):
            out += maker(g)
    return out


def _foreign(g: Ground) -> list[f.AnyFault]:
    return [f.Foreign(p=g.strength(0.01, 0.5), who=g.random.choice(("stranger", "clone")), **g.window(6))]


def _other_timeout(g: Ground) -> list[f.AnyFault]:
    return [f.OtherTimeout(member=g.member(), times=g.random.choice((0.5, 2.0, 10.0)), **g.window(8))]


def _claimant(g: Ground) -> list[f.AnyFault]:
    return [f.Claimant(member=g.member(), **g.window(8))]


def _ghost(g: Ground) -> list[f.AnyFault]:
    """A member comes back, and what its former life said comes again."""
    member, at, down = g.member(), g.time(), short(g.strength(0.05, 2) * g.timeout_ms)
    age = short(g.strength(0.1, 4) * g.timeout_ms) + down
    again = round(min(g.heal_ms, at + down), 1)
    return [
        f.Crash(member=member, at_ms=at, down_ms=down),
        f.Replay(pairs=(f"{member}>*",), at_ms=again, age_ms=age, every_ms=short(g.timeout_ms / 4), copies=4),
    ]


def _late_loss(g: Ground) -> list[f.AnyFault]:
    """A frame or two, or a token, gets lost when all is well and the closing messages are sent: it costs no view."""
    a, b = g.random.sample(g.ids, 2)
    at = round(g.heal_ms + g.random.uniform(3.9, 4.1) * g.timeout_ms, 1)
    cast, count = g.random.choice((("multicast", 1), ("multicast", 2), ("unicast", 1)))
    return [f.Loss(pairs=(f"{a}>{b}",), cast=cast, count=count, at_ms=at, lasting=True)]


def _regroup_at_merge(g: Ground) -> list[f.AnyFault]:
    """A cut heals while a member leaves a process group and joins it again."""
    if g.groups < 2:
        return []
    at = g.time()
    until = round(min(g.heal_ms, at + g.strength(1.5, 6) * g.timeout_ms), 1)
    near = round(max(at, until + g.random.uniform(-0.1, 0.3) * g.timeout_ms), 1)
    away = short(g.strength(0.01, 0.5) * g.timeout_ms)
    return [
        f.Partition(shape="halves", at_ms=at, until_ms=until),
        *(f.Regroup(member=g.member(), at_ms=near, away_ms=away) for _ in range(g.random.randint(1, 3))),
    ]


def _bad_start(g: Ground) -> list[f.AnyFault]:
    """A disk's fault meets a start, where it shows: writes fail when a member has just come back and stores its first
    numbers; or it dies at such a moment, and what it finds then was torn, lost, or has turned."""
    at = g.time()
    length, down = (round(g.strength(0.1, 2) * g.timeout_ms, 3) for _ in range(2))
    fault = f.DiskFault(
        member=g.member(), how=g.random.choice(("full", "error", "lost", "torn", "flip")), at_ms=at,
        until_ms=round(min(g.heal_ms, at + length + down), 1),
    )  # fmt: skip
    if fault.how in ("full", "error"):
        return [f.Crash(member=fault.member, at_ms=round(max(0, at - down - BACK_MS), 3), down_ms=down), fault]
    return [fault, f.Storm(member=fault.member, at_ms=at, times=2, every_ms=round(down + BACK_MS, 3), down_ms=down)]


def _hurried_leave(g: Ground) -> list[f.AnyFault]:
    """A member that has much to say leaves, and may not take long."""
    member, at, size = g.member(), g.time(), g.random.choice(g.sizes)
    messages = max(1, min(int(g.strength(10, 300)), 200_000 // (size + 1)))
    return [
        f.Burst(member=member, at_ms=at, messages=messages, size=size, batch=g.random.randint(1, 16)),
        _leaving(g, member, at),
    ]


def _unheard_leave(g: Ground) -> list[f.AnyFault]:
    """A member leaves, and hardly anybody hears it."""
    member, at = g.member(), g.time()
    until = round(min(g.heal_ms, at + g.strength(0.5, 4) * g.timeout_ms), 1)
    lost = f.Loss(p=g.strength(0.2, 1.0), pairs=(f"{member}>*",), cast="multicast", at_ms=at, until_ms=until)
    return [lost, _leaving(g, member, at)]


def _leaving(g: Ground, member: int, at: float) -> f.AnyFault:
    away = None if g.chance(0.4) else short(g.strength(0.1, 8) * g.timeout_ms)
    within = None if g.chance(0.3) else short(g.strength(0.01, 4) * g.timeout_ms)
    return f.Leaving(member=member, at_ms=at, away_ms=away, within_ms=within)


MAKERS: dict[str, Maker] = {
    "loss": loss, "duplication": duplication, "reordering": reordering, "delay": delay, "clog": clog,
    "corruption": corruption, "version": version, "replay": replay, "partition": partition, "crash": crash,
    "pause": pause, "leave": leave, "slow": slow, "drift": drift, "clock": clock, "disk": disk, "overload": overload,
    PERMANENT: permanent,
}  # fmt: skip
FAMILIES: tuple[str, ...] = tuple(MAKERS)

"""What a partition policy must not mind: parts that form views and leave them, some members sooner than others.

Drawn on top of the families of trouble.py where a seed has a policy and is partitioned.  The primary record
(membership/primary.py) is there for these: a view that one member installed and another only finished counts against
whoever goes on without the first.
"""

from __future__ import annotations

from ordercast.sim import faults as f
from ordercast.sim.law import Delay
from ordercast.swarm.trouble import Ground, short


def apart_again(g: Ground, on: tuple[str, ...]) -> list[f.AnyFault]:
    """Ever other majorities are cut off, each about when the one before forms a view, and tokens may be slow meanwhile:
    views are installed by some of those who agreed on them, and left by others.  For policies that must not mind."""
    at = begin = g.time()
    out: list[f.AnyFault] = []
    for _ in range(g.random.randint(2, 8)):
        until = round(min(g.heal_ms, at + g.random.uniform(1.1, 2.2) * g.timeout_ms), 3)
        some = g.random.sample(g.ids, g.random.randint(len(g.ids) // 2 + 1, len(g.ids)))
        rest = tuple(member for member in g.ids if member not in some)
        if rest and until > at:
            out.append(f.Partition(groups=(tuple(sorted(some)), rest), at_ms=at, until_ms=until))
        at = until
    tokens = tuple(name for name in g.packets if name.endswith("Token"))
    law = Delay("exponential", mean_us=short(g.strength(0.2, 1) * g.timeout_ms * 1000 / (8 * len(g.ids))))
    slow = f.Slowness(law=law, packets=tokens, at_ms=begin, until_ms=at)
    return [*out, slow] if "delay" in on else out


def half_installed(g: Ground) -> list[f.AnyFault]:
    """The group shrinks to three, then to two, of whom the first dies when it passes a token on, as like as not when it
    has installed the view and the other has not; the other meets the third.  For policies that must not mind."""
    step, at = short(g.random.uniform(2.5, 4) * g.timeout_ms), g.warm_ms
    here, sizes = list(g.ids), [len(g.ids)]
    while sizes[-1] > 2:
        sizes.append(max(2, sizes[-1] // 2 + 1) if sizes[-1] != 3 else 2)
    tokens = [name for name in g.packets if name.endswith("Token") and name != "CommitToken"]
    if len(g.ids) < 3 or not tokens or at + (len(sizes) + 1) * step > g.heal_ms:
        return []
    out: list[f.AnyFault] = []
    for size in sizes[1:]:
        there, here = here, sorted(g.random.sample(here, size))
        out.append(_cut(g, here, at, at + step))
        at = round(at + step, 1)
    dies, third = here[0], g.random.choice([member for member in there if member not in here])
    when, nth = round(at - step, 1), g.random.choice((1, 2, 2, 2, 3))
    out.append(f.Crash(member=dies, at_ms=when, on=g.random.choice(tokens), nth=nth, down_ms=short(3 * step)))
    return [*out, _cut(g, [here[1], third], at, at + step)]


def _cut(g: Ground, here: list[int], at: float, until: float) -> f.AnyFault:
    rest = tuple(member for member in g.ids if member not in here)
    return f.Partition(groups=(tuple(sorted(here)), rest), at_ms=round(at, 1), until_ms=round(until, 1))

"""Golden kinds of ToTo: causal DAGs through reception and ballots; the install of a view through the whole core."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

from ordercast.conformance.golden import Case, differ
from ordercast.contract import Action, Crash, Event, Flush, Frozen, Ordered, Received, Setup, Up, ViewChange
from ordercast.protocols.toto.ballots import Ballots, Key, Vector
from ordercast.protocols.toto.core import Sent, Toto
from ordercast.seam import Seam
from ordercast.transis.exchange import bounds
from ordercast.transis.install import closing, insertion
from ordercast.transis.packets import Data
from ordercast.transis.plan import Plan
from ordercast.transis.reception import Reception
from ordercast.types import Frame, Identity, Service, View, ViewId, ViewKind

Dag = dict[str, tuple[Key, Vector, bool]]  # name -> key, vector, whether it is agreed


def key_of(name: str) -> Key:
    return ord(name[0]) - ord("a"), int(name[1:])


def name_of(key: Key) -> str:
    return f"{chr(ord('a') + key[0])}{key[1]}"


def dag_of(n: int, messages: Iterable[Any]) -> Dag:
    """[name, direct acks, class] in causal order -> the vectors of their pasts."""
    dag: Dag = {}
    newest: list[Vector] = [(0,) * n] * n
    for name, acks, kind in messages:
        rank, seq = key_of(name)
        pasts = [newest[rank], *(dag[ack][1] for ack in acks)]
        vec = [*map(max, *pasts)] if len(pasts) > 1 else [*pasts[0]]
        vec[rank] = seq
        newest[rank] = tuple(vec)
        dag[name] = (rank, seq), newest[rank], kind == "agreed"
    return dag


def dag(case: Case) -> list[str]:
    """What each order of arrivals delivers, after every event, by the strict and by the relaxed rule."""
    n = case["n"]
    messages = dag_of(n, case["messages"])
    for number, run in enumerate(case["runs"]):
        for strict in (True, False):
            expected = run["out"] if strict else run.get("out_relaxed", run["out"])
            got = walk(n, case["Q"], strict, messages, run["order"])
            found = differ(f"run {number}, {'strict' if strict else 'relaxed'}", expected, got)
            if not found and strict and len(run["order"]) == len(messages) + len(case["crash"]):
                found = differ(f"run {number}, total", case["total"], [names for _, names in got])
            if found:
                return found
    return []


def walk(
    n: int, quorum: int, strict: bool, messages: Dag, order: Iterable[str], form: type[Ballots] = Ballots
) -> list[Any]:
    """[index of the event, the set it delivered], for arrivals in any order."""
    reception: Reception[bool] = Reception(n)
    ballots = form(n, quorum, strict)
    vectors = {key: vec for key, vec, _ in messages.values()}
    out: list[Any] = []
    for index, event in enumerate(order):
        if event.startswith("crash:"):
            ballots.crash(key_of(event[6:] + "0")[0])
        else:
            key, vec, agreed = messages[event]
            for rank, seq, item in reception.offer(*key, vec, agreed) or ():
                ballots.insert(rank, seq, vectors[rank, seq], item)
                while keys := ballots.activate():
                    out.append([index, [name_of(each) for each in keys]])
        while keys := ballots.activate():
            out.append([index, [name_of(each) for each in keys]])
    return out


# ------------------------------------------------------------------------------------------------------------- install

OLD, NEW = ViewId(4, 0), ViewId(8, 0)
SECOND = 10**9


class _Member:
    """The core and the seam above it, in an old view of n."""

    def __init__(self, me: int, n: int, quorum: int) -> None:
        members = tuple(range(n))
        setup = Setup(Identity(me, 1, members), SECOND, None, 1_000, random.Random(0))
        self.core, self.seam, self.me = Toto(setup, lambda size: quorum if size == n else size), Seam(), me
        self.say(ViewChange(View(OLD, ViewKind.REGULAR, members)))

    def say(self, event: Event) -> list[Any]:
        """What the layer below says; what goes up of it."""
        said = [action.event for action in self.core.up(0, event, 0) if isinstance(action, Up)]
        up = [action.event for each in said for action in self.seam.up(0, each, 0) if isinstance(action, Up)]
        return [_item(each.frame) for each in up if isinstance(each, Ordered)]

    def tell(self, actions: Iterable[Action]) -> list[Any]:
        return [item for action in actions if isinstance(action, Up) for item in self.say(action.event)]


def _item(frame: Frame) -> list[Any]:
    return [Service(frame.service).word, frame.sender, frame.counter]


def install(case: Case) -> list[str]:
    """What each of T has handed up, inserts at the install, and hands up before and after the transitional view."""
    n, together = case["n"], tuple(case["T"])
    messages = {(sender, seq): _data(sender, seq, vec, word) for sender, seq, vec, word in case["messages"]}
    haves = {int(member): tuple(entry["have"]) for member, entry in case["entries"].items()}
    cut = bounds(haves).cut
    closers = [[p, cut[p] + 1, [k + (q == p) for q, k in enumerate(cut)]] for p in together]
    found = differ("cut", case["cut"], list(cut)) + differ("closing", case["closing"], closers)
    group = {member: _Member(member, n, case["quorum"]) for member in together}
    for member, each in group.items():
        found += _before(each, messages, haves[member], case["entries"][str(member)], case["result"][str(member)])
    states = tuple(each.seam.flush_state() for each in group.values())
    for member, each in group.items():
        found += _install(each, messages, haves[member], Plan(NEW, together, cut, {}, states), case)
    return found[:1]


def _data(sender: int, seq: int, vec: list[int], word: str) -> Data[Sent]:
    frame = Frame(sender, 1, seq, 1, Service[word.upper()], bytes(4), b"")
    return Data(OLD, seq, tuple(vec), 64, Sent(frame))


def _before(
    member: _Member, messages: dict[Key, Data[Sent]], have: Vector, entry: dict[str, Any], expected: dict[str, Any]
) -> list[str]:
    held = {key: data for key, data in messages.items() if key[1] <= have[key[0]]}
    up: list[Any] = []
    for rank, seq, data in insertion((0,) * len(have), held, True):
        up += member.say(Received(rank, seq, data.body, data.vec))
    upcalled = [max((k for word, r, k in up if word == "causal" and r == q), default=0) for q in range(len(have))]
    return [
        *_same(f"member {member.me}, before", expected["before"], up),
        *differ(f"member {member.me}, delivered", entry["delivered"], sum(word == "agreed" for word, _, _ in up)),
        *differ(f"member {member.me}, upcalled", entry["upcalled"], upcalled),
    ]


def _install(member: _Member, messages: dict[Key, Data[Sent]], have: Vector, plan: Plan, case: Case) -> list[str]:
    missing = {key: data for key, data in messages.items() if have[key[0]] < key[1] <= plan.cut[key[0]]}
    whole = Plan(plan.ring_id, plan.together, plan.cut, missing, plan.states)
    member.say(Frozen())
    actions, _ = closing(OLD, tuple(range(len(have))), have, whole, True)
    said = [action.event for action in actions if isinstance(action, Up)]
    regular = member.tell(actions)
    view = View(NEW, ViewKind.TRANSITIONAL, plan.together)
    transitional = member.say(ViewChange(view))
    expected, who = case["result"][str(member.me)], f"member {member.me}, "
    assert isinstance(said[-1], Flush)
    return [
        *differ(who + "insert", expected["insert"], [[e.sender, e.seq] for e in said if isinstance(e, Received)]),
        *differ(who + "crash", case["crash"], [e.member for e in said if isinstance(e, Crash)]),
        *_same(who + "regular", expected["regular"], regular),
        *_same(who + "transitional", expected["transitional"], transitional),
    ]


def _same(what: str, expected: list[Any], got: list[Any]) -> list[str]:
    """Agreed ones in their order; the others as a set."""
    ordered = [[item for item in items if item[0] == "agreed"] for items in (expected, got)]
    return differ(what, *ordered) + differ(what + ", as a set", sorted(expected), sorted(got))


KINDS = {"dag": dag, "install": install}

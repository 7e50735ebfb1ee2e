"""View changes of the layer, by the names of their scenarios, V1 to V20, and smallest counterexamples, F1 to F14."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from vs_world import CHANGES, ONSET, T_MS, Struck, delivered_in, hurt, link_of, scenario, wrong

from ordercast import registry
from ordercast.conformance.script import Script
from ordercast.contract import Multicast, Note
from ordercast.protocols.causal import Sent
from ordercast.sim.faults import BurstLoss, Consumer, Crash, Cut, Duplication, Loss, Pause, Reordering
from ordercast.sim.scenario import Load
from ordercast.sim.world import run
from ordercast.swarm.judge import judge_outcome
from ordercast.trace.schema import Kind
from ordercast.types import Frame, ViewId, ViewKind

LAYER = "the view-synchronous layer"
PROTOCOLS = (*(p for p in registry.names() if LAYER in registry.get(p).needs), "tests.conformance.sequencer:sequencer")
ANSWERING = "tests.transis.answering:answering"


def script(*lines: str) -> Script:
    made = Script()
    for line in lines:
        made.run(line)
    return made


def told(made: Script, member: int) -> list[str]:
    """What a member was told, since `out` was last emptied."""
    return [line.removeprefix(f"{member}: ") for line in made.out if line.startswith(f"{member}: ")]


def three(*lines: str) -> Script:
    """Three members under causal order, in a view; then the lines, and what they answer."""
    made = script("members 3 protocol=causal", "run 30ms")
    assert told(made, 1)[-1] == "view 8.1 of 1 2 3"
    made.out = []
    for line in lines:
        made.run(line)
    return made


def views(outcome: Any, member: int, since: float = ONSET) -> list[tuple[int, ...]]:
    """The regular views that a member installed from then on."""
    return [
        row.members
        for row in outcome.trace.rows
        if row.kind == Kind.VIEW and row.view_kind == ViewKind.REGULAR and row.member == member
        and row.time_ns >= since * T_MS * 1_000_000
    ]  # fmt: skip


# --------------------------------------------------------------------------------------------- what becomes of messages


def test_V1_the_last_message_reached_one() -> None:
    made = three("submit 3 c service=causal", "drop 3 2", "pass 3 1", "crash 3", "run 120ms")
    for member in (1, 2):
        assert told(made, member) == [
            "deliver 3.1 'c'", "transitional view 12.1 of 1 2", "view 12.1 of 1 2",
        ]  # fmt: skip


def test_V2_a_message_whose_predecessor_is_nowhere_is_lost() -> None:
    made = three(
        "submit 3 c1 service=causal", "drop 3 1", "drop 3 2",
        "submit 3 c2 service=causal", "drop 3 2", "pass 3 1", "status 1 link.held", "crash 3", "run 120ms",
    )  # fmt: skip
    assert "1: link.held = 1" in made.out
    for member in (1, 2):
        assert not made.members[member].log
        assert told(made, member)[-1] == "view 12.1 of 1 2"


def test_V3_a_held_message_above_the_cut_stays_out() -> None:
    made = three(
        "submit 3 c1 service=causal", "drop 3 2", "pass 3 1",
        "submit 3 c2 service=causal", "drop 3 1", "pass 3 2", "status 2 link.held", "crash 3",
        "unreachable 1 3", "unreachable 2 3", "run 120ms",
    )  # fmt: skip
    assert "2: link.held = 1" in made.out
    assert made.members[1].log == made.members[2].log == ["3.1"]


def test_a_member_that_leaves_waits_until_all_have_the_ticket_of_what_it_sent() -> None:
    """2 has the frame, not its ticket: if 1 left, and 3, who gave it, died, 2 would not deliver what 1 did."""
    made = script("members 3 protocol=token_site", "run 30ms", "submit 1 m", "pass 1 2", "pass 1 3", "pass 3 1")
    assert made.members[1].log == ["1.1"]
    for line in ("leave 1", "drop 3 2", "advance 2ms", "pass 2 1", "pass 1 2", "crash 3", "drop 3 2", "run 200ms"):
        made.run(line)
    assert "1: left" in made.out
    assert made.members[2].log == ["1.1"], "what 1 sent and delivered in its last view"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_V4_what_is_submitted_during_a_change_is_originated_in_the_new_view(protocol: str) -> None:
    service = registry.get(protocol).default_service.word
    made = script(f"members 3 protocol={protocol}", "run 30ms", "crash 3")
    sent = 0
    for state in slowly(made, 1, 60):
        if state and sent < 40:
            sent += 1
            made.run(f"submit 1 m{sent} service={service}")
            made.run(f"submit 2 m{sent} service={service}")
    made.run("run 200ms")
    assert sent > 10
    for member in (1, 2):
        for sender in (1, 2):
            mine = [name for name in made.members[member].log if name.startswith(f"{sender}.")]
            assert mine == [f"{sender}.{k}" for k in range(1, sent + 1)]


def slowly(made: Script, member: int, ms: int) -> Iterator[str]:
    """Let time pass packet by packet: the states of a member's membership while it leaves a view for another."""
    seen, end = set(), made.now + ms * 1_000_000
    while made.now < end:
        waiting = next((pair for pair in sorted(made.channels) if made.channels[pair]), None)
        if waiting is None:
            made.run("advance 200us")
        else:
            made._hand_over(*waiting, 1)
        state = made.members[member].stack.status()["link"]["membership"]["state"]
        seen.add(state)
        yield state if state != "Operational" else ""
    assert seen >= {"Gather", "Commit", "Recovery"}


@pytest.mark.parametrize("after", range(1, 16))
def test_V5_the_representative_dies_in_any_rotation(after: int) -> None:
    world = Struck(
        scenario(4, "causal", CHANGES["crash of the last"](4)), after, lambda w: w.crash(1, down=None),
        packets=("CommitToken", "FlushToken"),
    )  # fmt: skip
    assert hurt(world) == []


@pytest.mark.parametrize("n", [3, 4, 5, 6])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_V6_the_first_that_installs_is_cut_off(n: int, protocol: str) -> None:
    """The others keep the plan: they deliver the same list, though they go elsewhere."""
    cut: list[int] = []
    world = Struck(
        scenario(n, protocol, CHANGES["crash of the last"](n)),
        note=("install", lambda w, who: (cut.append(who), w.isolate(who, 4.0))[0]),
    )
    outcome = world.run()
    assert wrong(world, outcome) == []
    (first,) = cut
    lists: dict[Any, list[Any]] = {}
    old = next(view for view, lives in sorted(delivered_in(outcome.trace).items()) if len(lives) == n)
    for (member, _), (messages, then) in delivered_in(outcome.trace)[old].items():
        if then is not None:
            lists[member] = messages if "S17" in outcome.trace.header.promises else sorted(messages)
    assert first in lists and len(lists) == n - 1
    assert all(messages == lists[first] for messages in lists.values())
    assert n == 3 or outcome.notes["plan kept"], "with two survivors there may be nobody left to keep it"


def test_V7_a_plan_that_somebody_left_undone_is_dead() -> None:
    """2 and 3 are done, 1 never gets what it lacks: it leaves, the plan is dropped, nobody passes through a view."""
    world = Struck(
        scenario(4, "token_site", CHANGES["crash of the last"](4)), 1,
        lambda w: w.lose(lambda source, to, packet: to == 1 and type(packet).__name__.startswith("FlushState"), 6.0),
    )  # fmt: skip
    outcome = world.run()
    assert wrong(world, outcome) == []
    assert outcome.notes["plan dropped"] >= 1 and not outcome.notes["intermediate view"]


def _returns_with_a_message(world: Struck, after: float) -> None:
    """1 alone has a message, and stands still; the tokens of the others are lost until it is back."""
    world.lose(lambda source, to, packet: source == 1 and type(packet).__name__ in ("Data", "Retrans"), after)
    world.pause(1, after)
    world.lose(lambda source, to, packet: type(packet).__name__ == "FlushToken" and 1 not in (source, to), after + 0.3)


@pytest.mark.parametrize("after", [1.6, 2.0, 2.5])
@pytest.mark.parametrize("protocol", ["causal", "token_site", "toto"])
def test_V8_F2b_one_returns_while_the_others_are_done_without_it(protocol: str, after: float) -> None:
    world = Struck(scenario(3, protocol))
    world.schedule.later(round(ONSET * world.t_ns), lambda a, b: _returns_with_a_message(world, after), None, None)
    outcome = world.run()
    assert wrong(world, outcome) == []
    assert (1,) in views(outcome, 1) or outcome.notes["intermediate view"], "1 comes from a view of its own"


@pytest.mark.parametrize("after", range(1, 13, 2))
def test_V9_the_departed_returns_during_the_flush(after: int) -> None:
    world = Struck(
        scenario(3, "token_site", CHANGES["crash of the last"](3)), after,
        lambda w: w.later(0, lambda: w.lives.restart(w.hosts[3])),
    )  # fmt: skip
    assert hurt(world) == []


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_V10_two_views_with_unstable_messages_merge(protocol: str) -> None:
    """Each flushes alone; one new view."""
    faults = (*CHANGES["merge"](4), Loss(at_ms=(ONSET - 3) * T_MS, until_ms=(ONSET + 1) * T_MS, p=1.0,
                                        packets=("Status",)))  # fmt: skip
    world = Struck(scenario(4, protocol, faults))
    outcome = world.run()
    assert wrong(world, outcome) == []
    assert views(outcome, 1)[:1] == [(1, 2, 3, 4)], "one change"
    merged = [row for row in outcome.trace.rows if row.kind == Kind.VIEW and row.members == (1, 2, 3, 4)][-1]
    assert sorted(members for _, members in merged.detail["components"]) == [[1, 2], [3, 4]]


# ------------------------------------------------------------------------------------------ pauses, loss, back-pressure


@pytest.mark.parametrize(
    "who, length, changes", [((2,), 0.5, 0), ((2,), 2.0, 2), ((1, 2, 3), 3.0, 0)], ids=["short", "long", "all, F14"]
)
def test_V13_F14_pauses(who: tuple[int, ...], length: float, changes: int) -> None:
    faults = tuple(Pause(at_ms=ONSET * T_MS, member=m, for_ms=length * T_MS) for m in who)
    world = Struck(scenario(3, "causal", faults))
    outcome = world.run()
    assert wrong(world, outcome) == []
    assert len(views(outcome, 1)) == changes


@pytest.mark.parametrize(
    ("protocol", "service"),
    [
        *((protocol, service) for protocol in ("allack", "toto") for service in ("agreed", "safe")),
        *((protocol, "agreed") for protocol in ("abcast", "tomp", "token_site", "symmetric", "hybrid")),
    ],
)
def test_V14_one_talks_and_the_others_are_silent(protocol: str, service: str) -> None:
    """It is delivered by all within T_ack + n T_stagger, two hops, and what one message of everybody costs."""
    n, hop_ms = 5, 0.6
    load, calm = Load(regime="poisson", rate=40.0), {"heal_ms": None, "closing": 0}
    outcome = Struck(scenario(n, protocol, (), service=service, senders=(2,), load=load, **calm)).run()
    limit_ns = (0.002 + n * 0.003) * T_MS * 1e6 + 3 * hop_ms * 1e6
    sent: dict[int, int] = {}
    late = []
    for row in sorted(outcome.trace.rows, key=lambda row: row.time_ns):
        if row.kind == Kind.ORIGINATE:
            sent[row.counter] = row.time_ns
        elif row.kind == Kind.DELIVER and row.time_ns - sent[row.counter] > limit_ns:
            late.append((row.member, row.counter, row.time_ns - sent[row.counter]))
    assert len(sent) >= 100 and late == []


@pytest.mark.parametrize("protocol", [*PROTOCOLS, ANSWERING])
def test_V15_loss_bursts_disorder_and_copies_are_repaired(protocol: str) -> None:
    when = {"at_ms": 2 * T_MS, "until_ms": 20 * T_MS}
    faults = (
        Loss(p=0.3, **when), BurstLoss(to_bad=0.02, to_good=0.2, **when), Duplication(p=0.3, copies=2, **when),
        Reordering(p=0.3, within_ms=5.0, **when),
    )  # fmt: skip
    world = Struck(scenario(4, protocol, faults))
    outcome = world.run()
    assert wrong(world, outcome) == []
    assert all(not any(host.stack.queues().values()) for host in world.hosts.values() if host.stack)
    assert outcome.notes["retransmit"] and outcome.notes["hold"]


def test_V16_who_does_not_read_slows_the_senders() -> None:
    faults = (Consumer(member=2, frames=6, at_ms=ONSET * T_MS, until_ms=(ONSET + 8) * T_MS),)
    load = Load(regime="poisson", rate=1000.0, start_ms=2 * T_MS)
    world = Struck(scenario(3, "causal", faults, load=load, messages=3_000, sizes=(1000,), datagram_bytes=1472))
    outcome = world.run()
    assert not [b for b in judge_outcome(outcome).breaks if b.promise.startswith("S")]
    calm, blocked, later = (
        sum(r.count for r in outcome.trace.rows if r.kind == Kind.DELIVER and r.member == 1
            and low <= r.time_ns / T_MS / 1e6 < low + 4)
        for low in (ONSET - 4, ONSET + 4, ONSET + 8.5)
    )  # fmt: skip
    assert blocked < calm / 10 and later > calm / 2
    assert outcome.notes["window"] and len(views(outcome, 1)) == 0


# ---------------------------------------------------------------------------------------------- lives, runs, one member


@pytest.mark.parametrize("disk", [True, False])
def test_V17_a_restart_has_a_new_life_and_a_later_number(disk: bool) -> None:
    faults = (Crash(at_ms=ONSET * T_MS, member=2, down_ms=2 * T_MS, disk=disk),)
    world = Struck(scenario(3, "causal", faults))
    outcome = world.run()
    assert wrong(world, outcome) == []
    ids = {(row.view_seq, row.view_rep, row.members) for row in outcome.trace.rows
           if row.kind == Kind.VIEW and row.view_kind == ViewKind.REGULAR}  # fmt: skip
    assert len({id[:2] for id in ids}) == len(ids), "an id twice"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_V18_the_same_seed_gives_the_same_run(protocol: str) -> None:
    made = scenario(4, protocol, (*CHANGES["split"](4), Loss(p=0.1, until_ms=20 * T_MS)))
    assert run(made).digest == run(made, level="full").digest


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_V20_alone(protocol: str) -> None:
    service = registry.get(protocol).default_service.word
    made = script(f"members 1 protocol={protocol}", "run 60ms")
    made.out = []
    made.run(f"submit 1 a b service={service}")
    assert made.out == ["1: accepted 1..2", "1: deliver 1.1 1.2 'a' 'b'"]


# ------------------------------------------------------------------------------------------------------ counterexamples


def test_F1_the_transitional_set_is_the_component_not_T() -> None:
    """1 installs and is cut off; 2 and 3 keep the plan of 1, 2 and 3, and come to the next view without 1."""
    world = Struck(
        scenario(4, "causal", CHANGES["crash of the last"](4)),
        note=("install", lambda w, who: w.isolate(who, 1.2)),
    )
    outcome = world.run()
    assert wrong(world, outcome) == []
    assert outcome.notes["plan kept"] >= 2
    sets = {row.members for row in outcome.trace.rows
            if row.kind == Kind.VIEW and row.view_kind == ViewKind.TRANSITIONAL and row.previous_seq}  # fmt: skip
    assert any(len(members) == 2 for members in sets)


def test_F6_what_was_said_in_an_earlier_view_is_discarded() -> None:
    made = three()
    link = link_of(made.members[1])  # type: ignore[arg-type]
    before = list(link.talk.traffic.have)
    said = Multicast(Sent(Frame(1, 1, 9, 1, 2, b"\x01\0\0\0", b"x")), ViewId(4, 1))
    assert link.down(made.now, said) == [Note("discard", {"body": "Sent"})]
    assert link.talk.traffic.have == before


def test_F6_what_is_said_while_frozen_is_discarded() -> None:
    """Whatever a protocol says between its entry and its next view."""
    made = three("crash 3")
    link = link_of(made.members[1])  # type: ignore[arg-type]
    for _ in slowly(made, 1, 60):
        if link.standing.frozen:
            break
    said = Multicast(Sent(Frame(1, 1, 9, 1, 2, b"\x01\0\0\0", b"x")), link.talk.id)
    assert link.standing.frozen and link.down(made.now, said) == [Note("discard", {"body": "Sent"})]


@pytest.mark.parametrize("n", [2, 3, 5])
def test_F10_who_shows_a_newer_view_has_left_mine(n: int) -> None:
    """A quick restart, with the disk lost: back within T."""
    world = Struck(scenario(n, "causal", (Crash(at_ms=ONSET * T_MS, member=1, down_ms=0.2 * T_MS, disk=False),)))
    outcome = world.run()
    assert wrong(world, outcome) == []
    back = [row.time_ns for row in outcome.trace.rows if row.kind == Kind.VIEW and row.members == tuple(range(1, n + 1))
            and row.time_ns > ONSET * T_MS * 1e6 and row.view_kind == ViewKind.REGULAR]  # fmt: skip
    assert back and max(back[:n]) < (ONSET + 1.2) * T_MS * 1e6


def test_F12_a_broken_unicast_path_costs_no_view() -> None:
    faults = (Cut(pairs=("1>2",), cast="unicast", at_ms=2 * T_MS, lasting=True),)
    world = Struck(scenario(3, ANSWERING, faults, heal_ms=None, closing=0, limit_ms=60 * T_MS))
    outcome = world.run()
    assert not judge_outcome(outcome).breaks
    assert views(outcome, 1, since=2) == views(outcome, 2, since=2) == []
    assert outcome.notes["unicast again"] > 10


@pytest.mark.parametrize(("protocol", "until"), [("causal", 300), *((p, 60) for p in PROTOCOLS if p != "causal")])
def test_F13_a_debt_in_a_flush_is_blamed(protocol: str, until: int) -> None:
    """Data and FlushData from 1 do not reach 2, which lacks a message: they part in the end, and go on."""
    faults = (Cut(pairs=("1>2",), packets=("Data", "FlushData", "Retrans"), at_ms=ONSET * T_MS, lasting=True),)
    world = Struck(scenario(2, protocol, faults, heal_ms=None, closing=0, limit_ms=until * T_MS, messages=2 * until))
    hint = ("unreachable", 0, 1)  # 2 leaves the view, 1 contradicts, and both come to the flush of one old view
    world.schedule.later(round((ONSET + 1.5) * world.t_ns), world.driver.give, world.hosts[2], hint)
    outcome = world.run()
    assert not [b for b in judge_outcome(outcome).breaks if b.promise.startswith("S")]
    assert outcome.notes["contradiction"] >= 1 and outcome.notes["flush blamed"] >= 1
    assert (1,) in views(outcome, 1) and (2,) in views(outcome, 2)
    assert len(views(outcome, 2)) <= 17


def test_a_stuck_link_is_left() -> None:
    """F11, as far as it needs no acknowledgements above: all that carries messages from 1 to 2 is lost, nobody is
    silent."""
    faults = (Cut(pairs=("1>2",), packets=("Data", "Retrans", "FlushData"), at_ms=ONSET * T_MS, lasting=True),)
    world = Struck(scenario(2, "causal", faults, heal_ms=None, closing=0, limit_ms=60 * T_MS))
    outcome = world.run()
    assert outcome.notes["stuck link"] >= 1
    assert not [b for b in judge_outcome(outcome).breaks if b.promise.startswith("S")]

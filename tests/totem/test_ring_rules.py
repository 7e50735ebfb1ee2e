"""Sentences of the papers about token visits, each on the ring's own state."""

from __future__ import annotations

import random

import pytest

from ordercast.conformance.script import Script
from ordercast.outbox import Outbox
from ordercast.protocols.totem.flow import Limits, allowance, least_room
from ordercast.protocols.totem.options import TotemOptions
from ordercast.protocols.totem.packets import Data, RingEntry, Token
from ordercast.protocols.totem.recovery import recovery_plan
from ordercast.protocols.totem.ring import Ring, Stamped
from ordercast.types import Frame, Service, ViewId

RING = ViewId(8, 1)
WIDE = Limits(1000, 10**6, buffer_frames=10**6)


def frame(sender: int, n: int, service: Service = Service.AGREED) -> Frame:
    return Frame(sender, 1, n, 1, service, b"\0\0\0\0", b"")


def outbox(me: int, n: int) -> Outbox:
    box = Outbox(me, 1, 8)
    for _ in range(n):
        box.put([bytes(4)], Service.AGREED)
    return box


def pair(limits: Limits = WIDE, **options: object) -> tuple[Ring, Ring]:
    return Ring(RING, 1, (1, 2), limits, **options), Ring(RING, 2, (1, 2), limits, **options)  # type: ignore[arg-type]


def test_only_the_one_who_lowered_aru_raises_it() -> None:
    one, two = pair()
    token = one.visit(Token(RING, 1, 0, 0, 0), outbox(1, 3)).token
    token = two.visit(token, outbox(2, 0)).token  # received nothing
    assert (token.aru, token.aru_id, token.rtr) == (0, 2, (1, 2, 3))
    visit = one.visit(token, outbox(1, 0))
    assert [d.seq for d in visit.resent] == [1, 2, 3]
    assert (visit.token.aru, visit.token.aru_id) == (0, 2), "member 1 has everything and may not raise it"
    for data in visit.resent:
        two.receive(data)
    assert two.visit(visit.token, outbox(2, 0)).token.aru == 3


def test_a_frame_is_kept_until_it_is_safe_and_delivered() -> None:
    one, two = pair()
    visit = one.visit(Token(RING, 1, 0, 0, 0), outbox(1, 1))
    one.deliver()
    one.release()
    assert list(one.store) == [1], "delivered, not yet safe"
    two.receive(visit.new[0])
    token = two.visit(visit.token, outbox(2, 0)).token
    one.visit(token, outbox(1, 0))
    one.release()
    assert not one.store


def test_requests_for_safe_frames_leave_the_token() -> None:
    one, _ = pair()
    for n in (1, 2, 3):
        one.receive(Data(RING, n, frame(2, n)))
    one.last_aru = 3
    visit = one.visit(Token(RING, 1, 0, 3, 3, None, (2,)), outbox(1, 0))
    one.deliver()
    one.release()
    assert [d.seq for d in visit.resent] == [2] and one.released == 3
    assert one.visit(Token(RING, 1, 2, 3, 3, None, (2,)), outbox(1, 0)).token.rtr == ()


def test_a_lone_sender_does_not_alternate_between_full_and_empty_visits() -> None:
    limits = Limits(10, 10)
    one, two = pair(limits)
    mine, sent, token = outbox(1, 100), [], Token(RING, 1, 0, 0, 0)
    for _ in range(5):
        visit = one.visit(token, mine)
        sent.append(len(visit.new))
        for data in visit.new:
            two.receive(data)
        token = two.visit(visit.token, outbox(2, 0)).token
    assert sent == [10] * 5


def test_a_short_queue_does_not_starve_beside_a_long_one() -> None:
    assert allowance(Limits(50, 20), 20, fcc=0, my_trc=0, backlog=1000, my_backlog=1, my_pbl=0) == 1


def test_no_new_frames_while_the_store_is_full() -> None:
    one, _ = pair(Limits(100, 100, buffer_frames=7))
    assert len(one.visit(Token(RING, 1, 0, 0, 0), outbox(1, 50)).new) == 7
    assert one.visit(Token(RING, 1, 2, 7, 0, 2), outbox(1, 50)).new == []


def test_room_is_lowered_by_anybody_and_raised_by_its_owner_alone() -> None:
    assert least_room(None, None, 1, None, 64) == (None, None)
    assert least_room(None, None, 1, 100, 64) == (None, None)
    assert least_room(None, None, 1, 5, 64) == (5, 1)
    assert least_room(5, 1, 2, 20, 64) == (5, 1)
    assert least_room(5, 1, 2, 3, 64) == (3, 2)
    assert least_room(3, 2, 1, 60, 64) == (3, 2)
    assert least_room(3, 2, 2, 60, 64) == (60, 2)
    assert least_room(3, 2, 2, 65, 64) == (None, None)
    assert least_room(3, 2, 2, None, 64) == (None, None)


def test_a_reader_without_room_stops_new_frames_but_not_repairs() -> None:
    one, two = pair()
    first = one.visit(Token(RING, 1, 0, 0, 0), outbox(1, 2))
    two.room = 0
    token = two.visit(first.token, outbox(2, 1)).token
    assert (token.room, token.room_id, token.rtr) == (0, 2, (1, 2))
    visit = one.visit(token, outbox(1, 5))
    assert (len(visit.resent), len(visit.new)) == (2, 0)


def test_a_request_served_in_vain_is_left_to_another() -> None:
    """Member 2's multicasts do not reach 1, which asks for 2's frame; 3 has it too."""
    rings = {me: Ring(RING, me, (1, 2, 3), WIDE) for me in (1, 2, 3)}
    served, token = [], Token(RING, 1, 0, 0, 0)
    for turn in range(9):
        me = turn % 3 + 1
        visit = rings[me].visit(token, outbox(me, 1 if turn == 1 else 0))
        served += [(me, held.seq) for held in visit.resent]
        for data in visit.new + visit.resent:
            for other in {1, 2, 3} - {me, 1 if me == 2 else me}:
                rings[other].receive(data)
        token = visit.token
    assert served == [(2, 1), (3, 1)] and not token.rtr and rings[1].my_aru == 1


@pytest.mark.parametrize("more", [0, 40])
def test_who_serves_in_vain_leaves_the_window_to_another(more: int) -> None:
    """Member 3's multicasts do not reach 1, which asks for more of 3's frames than the window has room for."""
    members = (1, 2, 3, 4)
    rings = {me: Ring(RING, me, members, Limits(7, 7)) for me in members}
    token, box = Token(RING, 1, 0, 0, 0), outbox(3, 14 + more)
    for turn in range(4 * (12 + more)):
        me = turn % 4 + 1
        visit = rings[me].visit(token, box if me == 3 else outbox(me, 0))
        for data in visit.new + visit.resent:
            for other in set(members) - {me, 1 if me == 3 else me}:
                rings[other].receive(data)
        token = visit.token
    assert not token.rtr and rings[1].my_aru == token.seq == 14 + more


def test_frames_sent_early_count_at_the_visit_that_ends_it() -> None:
    """One visit that lasts is the same as one that does everything at its end."""
    token = Token(RING, 1, 4, 0, 0, fcc=2, backlog=3)
    limits = Limits(4, 6)
    (short, _), (long, _) = pair(limits), pair(limits)
    box = outbox(1, 1)
    first = long.early(token, box)
    for _ in range(2):
        box.put([bytes(4)], Service.AGREED)
    second = long.early(token, box)
    at_once, at_end = short.visit(token, outbox(1, 3)), long.visit(token, box)
    assert [d.seq for d in first + second + at_end.new] == [d.seq for d in at_once.new] == [1, 2, 3]
    assert at_end.token == at_once.token
    assert (long.my_aru, long.my_trc, long.ahead) == (3, 3, 0)


def test_early_frames_stay_within_the_windows() -> None:
    token = Token(RING, 1, 4, 0, 0)
    ring, _ = pair(Limits(4, 6))
    sent = [len(ring.early(token, outbox(1, 3))), len(ring.early(token, outbox(1, 3)))]
    assert sent == [3, 1] and ring.accepts(token), "a visit sends at most four frames"
    assert not ring.visit(token, outbox(1, 3)).new
    ring, _ = pair()
    assert not ring.early(Token(RING, 1, 4, 0, 0, room=0, room_id=2), outbox(1, 3)), "somebody does not read"


def test_accelerated_a_hole_of_this_round_is_not_asked_for() -> None:
    one, two = pair(request_lag=1)
    token = one.visit(Token(RING, 1, 0, 0, 0), outbox(1, 2)).token
    token = two.visit(token, outbox(2, 0)).token
    assert token.rtr == (), "the frames may follow the token"
    token = one.visit(token, outbox(1, 0)).token
    assert two.visit(token, outbox(2, 0)).token.rtr == (1, 2)


def test_stamps_grow_along_the_ring_and_the_token_is_stamped_last() -> None:
    one, two = pair(stamps=True, source=3)
    visit = one.visit(Token(RING, 1, 0, 0, 0, timestamp=10), outbox(1, 2))
    assert [(d.stamp, d.source) for d in visit.new if type(d) is Data] == [(11, 3), (12, 3)]
    assert visit.token.timestamp == 13
    for data in visit.new:
        two.receive(data)
    assert two.clock == 13

    class Given:
        def waiting(self) -> int:
            return 1

        def take(self, n: int) -> list[Stamped]:
            return [Stamped(frame(9, 1), 5, 7)]

    given = two.visit(visit.token, Given()).new[0]
    assert type(given) is Data and (given.stamp, given.source) == (5, 7), "a gateway's frame keeps its place"


def test_without_hold_safe_the_layer_above_decides() -> None:
    _, two = pair(hold_safe=False)
    two.receive(Data(RING, 1, frame(1, 1, Service.SAFE)))
    assert [d.seq for d in two.deliver()] == [1] and two.safe_upto == 0


@pytest.mark.parametrize("seed", range(30))
def test_random_walks_keep_the_invariants(seed: int) -> None:
    """P1 to P6 are asserted in the ring; random losses, windows and sizes try to break them, and all is delivered."""
    r = random.Random(seed)
    ids = tuple(range(1, r.randint(2, 6)))
    limits = Limits(
        r.randint(1, 8), r.choice([1, 5, 20, 100]), r.choice([1, 3, 30]), r.random() < 0.7, r.choice([8, 500])
    )
    start = r.choice([0, 2**31 - 7, 2**32 - 7, 2**62])
    rings = {m: Ring(RING, m, ids, limits, first_seq=start, request_lag=r.choice([0, 1, 3])) for m in ids}
    boxes = {m: outbox(m, r.randint(0, 40)) for m in ids}
    total = sum(box.waiting() for box in boxes.values())
    logs: dict[int, list[tuple[int, int]]] = {m: [] for m in ids}
    token, loss = Token(RING, 1, 0, start, start), r.choice([0, 0.1, 0.4])
    names: dict[int, int] = {}
    for _ in range(4000):
        ring = rings[token.to]
        assert ring.accepts(token)
        visit = ring.visit(token, boxes[ring.me])
        assert not ring.accepts(token), "P1: the same token twice"
        for data in visit.resent + visit.new:
            assert names.setdefault(data.seq, id(data)) == id(data), "P2"
            for other in rings.values():
                if other is not ring and r.random() >= loss:
                    other.receive(data)
        logs[ring.me] += [(d.seq, d.frame.sender) for d in ring.deliver() if type(d) is Data]
        ring.release()
        token = visit.token
        if all(len(log) == total for log in logs.values()) and not any(x.store for x in rings.values()):
            break
    assert all(log == logs[1] for log in logs.values()) and len(logs[1]) == total
    assert [seq for seq, _ in logs[1]] == list(range(start + 1, start + total + 1))


def test_short_visits_leave_room_for_others_in_a_rotation() -> None:
    assert TotemOptions(max_messages=1).limits(1000).window_size == 3
    assert TotemOptions(max_messages=64).limits(1000).window_size == 96


def test_a_further_exchange_voids_the_earlier_one_but_not_its_obligations() -> None:
    old = ViewId(8, 1)
    finished = RingEntry(old, 9, 5, 5, True, (1, 2, 4))
    void = RingEntry(old, 9, 5, 5, False, (1, 2, 4))
    plan = recovery_plan(old, {1: finished, 2: finished}, [7, 10], 10)
    assert not plan.exchange and plan.obligation == (1, 2, 4)
    plan = recovery_plan(old, {1: void, 2: finished}, [7, 10], 10)
    assert plan.exchange and plan.rebroadcast == (10,)
    assert plan.obligation == (1, 2, 4), "member 4 may have installed on them"


def test_a_token_that_knows_less_than_was_numbered_is_not_taken() -> None:
    one, _ = pair()
    one.receive(Data(RING, 7, frame(2, 7)))
    assert not one.accepts(Token(RING, 1, 5, 6, 6)) and one.accepts(Token(RING, 1, 5, 7, 6))


def test_early_frames_are_stamped_after_the_token_that_stays() -> None:
    ring, _ = pair(stamps=True)
    token = Token(RING, 1, 4, 0, 0, timestamp=10)
    early = ring.early(token, outbox(1, 2))
    assert [d.stamp for d in early if type(d) is Data] == [11, 12], "others know that nothing up to 10 is missing"
    assert ring.visit(token, outbox(1, 0)).token.timestamp == 13


def test_a_frame_numbered_beyond_all_reason_is_dropped_and_noted() -> None:
    """No member of a ring gets so far ahead of what is safe: it comes from somebody who is none."""
    script = Script()
    for line in ("members 2 protocol=totem", "run 5ms", "show note"):
        script.run(line)
    ring = script.members[2].stack.nodes[-1].layer.rings.ring  # type: ignore[attr-defined]
    last = ring.released + 4 * ring.limits.buffer_frames
    for seq, dropped in ((last + 1, True), (last, False)):
        script.out.clear()
        script.channels[1, 2].clear()
        script.channels[1, 2].append((0, Data(ring.id, seq, frame(1, 1))))
        script.run("pass 1 2")
        assert (f"2: note drop reason=number seq={seq}" in script.out) is dropped

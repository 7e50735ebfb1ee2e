"""Terms: who is let in by them, what is said to whom and how often, and what both sides then know."""

from __future__ import annotations

import random

import msgspec
import pytest

from ordercast import registry
from ordercast.contract import Packet
from ordercast.drivers import terms
from ordercast.drivers.admission import Admission
from ordercast.drivers.incoming import Incoming
from ordercast.drivers.terms import Agreement, Other, Terms, terms_of
from ordercast.limits import MEMBERS_MAX
from ordercast.sim.faults import Loss, OtherTimeout
from ordercast.sim.scenario import Scenario
from ordercast.sim.world import run
from ordercast.trace.schema import Kind
from ordercast.types import Identity, Peer
from ordercast.wire.codec import Codec

T = 40_000_000
MEMBERS = (1, 2, 3)
A, B, C = Peer(1, 100), Peer(2, 200), Peer(3, 300)


def values(**other: str) -> dict[str, str]:
    own = {"version": "1", "protocol": "totem", "timeout_ms": "40", "members": "1, 2, 3", "options.window": "4"}
    return own | other


def made(me: Peer, found: list[Other] | None = None, **other: str) -> Agreement:
    return Agreement(me, MEMBERS, values(**other), T, (found if found is not None else []).append)


def test_terms_of_a_member() -> None:
    options = registry.get("totem").options
    said = terms_of("totem", options(), 200_000_000, (3, 1, 2), "evs-all-continue")
    assert (said["protocol"], said["timeout_ms"], said["members"]) == ("totem", "200", "1, 2, 3")
    assert {f"options.{name}" for name in options.__struct_fields__} <= set(said)
    other = terms_of("totem", options(window_size=9), 200_000_000, (3, 1, 2), "evs-all-continue")
    assert [d.term for d in terms.differences(said, other)] == ["options.window_size"]
    other = terms_of("totem", options(), 200_000_000, (3, 1, 2), "primary-majority")
    assert [d.term for d in terms.differences(said, other)] == ["partition"]


def test_a_large_group_with_large_ids_says_its_terms_in_bounds() -> None:
    ids = [2**32 - 1 - k for k in range(MEMBERS_MAX)]
    options = msgspec.defstruct("Options", [("text", str)])
    said, other = (terms_of("totem", options("x" * 5_000 + end), T, ids, "") for end in "ab")
    assert terms.decode(msgspec.msgpack.encode(Terms(said))) == Terms(said)
    assert [d.term for d in terms.differences(said, other)] == ["options.text"]


def test_the_same_terms_let_in_and_are_answered_once_per_T() -> None:
    a, b = made(A), made(B)
    assert not a.same(B) and not b.same(A)
    answer = a.heard(0, B, b.first())
    assert a.same(B) and answer == Terms(values(), asks=False)
    assert a.heard(T - 1, B, b.first()) is None and a.heard(T, B, b.first()) is not None
    assert b.heard(0, A, answer) is None and b.same(A)
    assert a.others == {} and a.words() == []


@pytest.mark.parametrize(
    ("term", "there", "said"),
    [
        ("timeout_ms", "500", "member 2 has timeout_ms 500, here it is 40"),
        ("protocol", "token_site", "member 2 has protocol token_site, here it is totem"),
        ("options.window", "8", "member 2 has options.window 8, here it is 4"),
        ("members", "1, 2", "member 2 has members '1, 2', here it is '1, 2, 3'"),
        ("later", "yes", "member 2 has later yes, here it is nothing"),
    ],
)
def test_both_sides_know_what_differs_and_who_has_it(term: str, there: str, said: str) -> None:
    found_a: list[Other] = []
    found_b: list[Other] = []
    a, b = made(A, found_a), made(B, found_b, **{term: there})
    answer = a.heard(0, B, b.first())
    assert answer is not None and answer.asks
    b.heard(0, A, answer)
    assert not a.same(B) and not b.same(A) and [str(other) for other in found_a] == [said] == a.words()
    assert [(d.term, d.there, d.here) for d in found_b[0].differences] == [(term, values().get(term, "nothing"), there)]
    assert a.status(5_000_000) == [
        {"member": 2, "term": term, "here": terms.short(values().get(term, "nothing")), "there": terms.short(there),
         "since_ms": 5}
    ]  # fmt: skip


def test_what_is_not_used_of_the_own_group_is_lost() -> None:
    """A core that infers from silence that nothing was said must hear of it: others may have let that life in."""
    identity, heard = Identity(A.id, A.incarnation, MEMBERS, "ordercast", 0), []
    agreement = made(A)
    incoming = Incoming(
        Codec(registry.get("totem").packets), Admission(identity, False, True), 6, lambda: 0,
        lambda now, net, peer, packet, drops, body: heard.append((peer, drops)), lambda now, why: None, agreement,
    )  # fmt: skip
    agreement.heard(0, C, made(C).first())
    for peer in (B, B, Peer(9, 1), A, C, C):
        incoming.decoded(0, peer, Packet(), 0)
    assert heard == [(C, 2), (C, 0)]


def test_who_differs_is_told_at_most_once_per_T_and_noted_once() -> None:
    found: list[Other] = []
    a, other = made(A, found), Terms(values(timeout_ms="80"))
    told = [now for now in range(0, 10 * T, T // 8) if a.heard(now, B, other) or a.tell(now, B)]
    assert told == list(range(0, 10 * T, T)) and len(found) == 1


def test_a_forged_datagram_puts_nobody_out_and_the_next_answer_undoes_it() -> None:
    a, forged = made(A), Terms(values(timeout_ms="1"))
    a.heard(0, B, forged)
    assert not a.same(B) and a.others
    asked = a.tell(T, B)
    assert asked is not None and asked.asks
    answer = made(B).heard(T, A, asked)
    assert answer is not None and a.heard(T, B, answer) is None
    assert a.same(B) and a.others == {}
    a.heard(2 * T, B, forged)
    assert a.same(B) and a.others == {}


def test_strangers_and_lives_without_end_take_no_memory() -> None:
    found: list[Other] = []
    a = made(A, found)
    for k in range(5_000):
        a.heard(k, Peer(1_000 + k, 1), Terms(values(members="9")))
        a.heard(k, Peer(2, k), Terms(values()))
    assert len(found) == 1 and len(a._same) <= 4 * MEMBERS_MAX and len(a._told) <= len(MEMBERS) + 1
    for k in range(200):
        a.heard(k * T, Peer(10_000 + k, 1), Terms(values(members="9")))
    assert len(a.others) <= MEMBERS_MAX


def test_any_bytes_are_terms_or_not() -> None:
    rng, whole = random.Random(5), msgspec.msgpack.encode(Terms(values()))
    assert terms.decode(whole) is not None
    for _ in range(2_000):
        data = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        terms.decode(bytes(data[: rng.randint(0, len(data))]))


# ----------------------------------------------------------------------------------------------------- simulated


@pytest.mark.parametrize("lossy", [False, True])
@pytest.mark.parametrize("wire", [False, True])
def test_a_member_with_another_timeout_is_never_in_a_view_with_the_others(lossy: bool, wire: bool) -> None:
    """And is let in again once its terms are the same."""
    faults = (OtherTimeout(member=3, at_ms=300, until_ms=1_500, times=3.0), *([Loss(p=0.3)] if lossy else []))
    scenario = Scenario(protocol="totem", members=3, messages=300, faults=faults, heal_ms=1_800, closing=3, wire=wire)
    outcome = run(scenario, level="full")
    (_, wrong, right) = [r.sender_incarnation for r in outcome.trace.rows if r.kind == Kind.START and r.sender == 3]
    views = [row for row in outcome.trace.rows if row.kind == Kind.VIEW]
    assert {row.members for row in views if row.incarnation == wrong} == {(3,)}
    assert outcome.drops["terms"] and views[-1].members == (1, 2, 3)
    assert any(row.members == (1, 2, 3) for row in views if row.incarnation == right)
    assert all("terms" not in status for status in outcome.status.values())


def test_both_sides_of_a_simulated_group_say_what_differs() -> None:
    fault = OtherTimeout(member=3, at_ms=100, times=3.0)
    outcome = run(Scenario(protocol="totem", members=3, messages=300, faults=(fault,)))
    said = {member: status["terms"]["waits"] for member, status in outcome.status.items()}
    assert said == {
        1: "member 3 has timeout_ms 120, here it is 40",
        2: "member 3 has timeout_ms 120, here it is 40",
        3: "member 1 has timeout_ms 40, here it is 120; member 2 has timeout_ms 40, here it is 120",
    }

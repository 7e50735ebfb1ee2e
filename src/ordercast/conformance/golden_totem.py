"""Worked examples of the token ring, replayed through the ring's own code."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ordercast.lab.latency import echo_latency
from ordercast.outbox import Outbox
from ordercast.protocols.totem.flow import Limits
from ordercast.protocols.totem.packets import Data, RingEntry, Token
from ordercast.protocols.totem.recovery import install_plan, recovery_plan
from ordercast.protocols.totem.ring import Held, Ring, Visit
from ordercast.types import Frame, Service, ViewId

Case = dict[str, Any]
_PAYLOAD = bytes(4)  # with its length it fills a frame: one message per frame, as the papers count
_TOKEN_FIELDS = ("token_seq", "seq", "aru", "aru_id", "rtr", "fcc", "backlog")


def _outbox(me: int, services: Iterable[Service]) -> Outbox:
    outbox = Outbox(me, 1, 8)
    for service in services:
        outbox.put([_PAYLOAD], service)
    return outbox


def _numbers(held: Iterable[Held]) -> list[int]:
    return [data.seq for data in held]


def _token(fields: Case, ring: ViewId, to: int) -> Token:
    plain = {key: fields[key] for key in _TOKEN_FIELDS if key != "rtr"}
    return Token(ring, to, rtr=tuple(fields["rtr"]), **plain)


def _compare(want: Case, got: Case, where: str = "") -> list[str]:
    return [f"{where}{key}: {got[key]} instead of {want[key]}" for key in got if key in want and got[key] != want[key]]


def token_visit(case: Case) -> list[str]:
    before, after, id = case["before"], case["after"], ViewId(*case["ring_id"])
    me, released = before["me"], before["released_upto"]
    limits = Limits(before["max_messages"], before["window_size"], before["rtr_max"], before["fair"], 10**9)
    ring = Ring(id, me, (me, me + 1), limits, first_seq=released, request_lag=1 if before["accelerated"] else 0)
    if before["accelerated"]:
        ring.lag.append(before["prev_round_seq"])
    safe = set(before["safe_requested"])
    for seq in before["received"]:
        service = Service.SAFE if seq in safe else Service.AGREED
        ring.receive(Data(id, seq, Frame(me + 1, 1, seq, 1, service, b"", b"")))
    ring.my_token_seq, ring.last_aru = before["my_token_seq"], before["last_forwarded_aru"]
    ring.my_trc, ring.my_pbl = before["my_trc"], before["my_pbl"]
    token = _token(case["token_in"], id, me)
    if not ring.accepts(token):
        return [] if after.get("discarded") else ["the token was discarded"]
    if after.get("discarded"):
        return ["the token was not discarded"]
    visit = ring.visit(token, _outbox(me, [Service.AGREED] * before["queue"]))
    delivered = _numbers(ring.deliver())
    ring.release()
    got = {
        "rebroadcast": _numbers(visit.resent), "new": _numbers(visit.new), "my_aru": ring.my_aru,
        "safe_upto": ring.safe_upto, "delivered": delivered, "released_upto": ring.released,
    }  # fmt: skip
    return _compare(after, got) + _compare(after["token"], _fields(visit), "token ")


def _fields(visit: Visit) -> Case:
    return {
        key: list(value) if isinstance(value := getattr(visit.token, key), tuple) else value for key in _TOKEN_FIELDS
    }


def ring_walk(case: Case) -> list[str]:
    ids, id = tuple(case["ids"]), ViewId(4, case["ids"][0])
    limits = Limits(case["max_messages"], case["window_size"], 30, True, 10**9)
    rings = {me: Ring(id, me, ids, limits) for me in ids}
    safe = {tuple(pair) for pair in case["safe"]}
    lost = {tuple(pair) for pair in case["lost"]}
    outboxes = {
        me: _outbox(me, [Service.SAFE if (me, k) in safe else Service.AGREED for k in range(queued)])
        for me, queued in zip(ids, case["queued"], strict=True)
    }
    token = Token(id, ids[0], 0, 0, 0)
    differences: list[str] = []
    for step in case["steps"]:
        me = token.to
        ring = rings[me]
        if not ring.accepts(token):
            return [*differences, f"visit {step['visit']}: the token was discarded"]
        visit = ring.visit(token, outboxes[me])
        for other in ids:
            for data in visit.resent:
                rings[other].receive(data)
            for data in visit.new:
                if (data.seq, other) not in lost:
                    rings[other].receive(data)
        got = {
            **_fields(visit), "me": me, "rebroadcast": _numbers(visit.resent), "new": _numbers(visit.new),
            "safe_upto": ring.safe_upto, "delivered_at_me": _numbers(ring.deliver()),
        }  # fmt: skip
        ring.release()
        differences += _compare(step, got, f"visit {step['visit']} ")
        token = visit.token
    return differences


def packing(case: Case) -> list[str]:
    outbox = Outbox(1, 1, case["limit"], case["sep"])
    outbox.put([bytes(size) for size in case["sizes"]], Service.AGREED)
    got: list[Any] = []
    for frame in outbox.take(10**9):
        first = frame.counter - 1
        if frame.whole:
            got.append(list(range(first, first + frame.count)))
        else:
            got.append([[first, frame.part, len(frame.data), frame.last]])
    return [] if got == case["packets"] else [f"packets {got} instead of {case['packets']}"]


def recovery(case: Case) -> list[str]:
    entries = {
        int(member): RingEntry(
            ViewId(*e["ring"]), e["aru"], e["high_delivered"], e["safe_upto"], e["received"], tuple(e["oblig"])
        )
        for member, e in case["entries"].items()
    }
    plan = recovery_plan(ViewId(*case["my_ring"]), entries, case["held"], case["high_seq"])
    got = {
        "transitional": list(plan.transitional), "low_ring_aru": plan.low_ring_aru,
        "high_ring_delivered": plan.high_ring_delivered, "high_ring_safe": plan.high_ring_safe,
        "obligation": list(plan.obligation), "exchange": plan.exchange, "rebroadcast": list(plan.rebroadcast),
    }  # fmt: skip
    return _compare(case["plan"], got)


def install(case: Case) -> list[str]:
    frames = {int(seq): (sender, bool(safe)) for seq, (sender, safe) in case["msgs"].items()}
    plan = install_plan(frames, case["high_seq"], case["delivered"], case["known_safe"], case["obligation"])
    got = {"regular": plan.regular, "transitional": plan.transitional, "discarded": plan.discarded}
    return _compare(case["plan"], got)


def latency(case: Case) -> list[str]:
    got = echo_latency(case["T1"], case["T2"], case["T3"], case["T4"])
    return [] if abs(got - case["L"]) < 1e-9 else [f"L {got} instead of {case['L']}"]


KINDS: dict[str, Callable[[Case], list[str]]] = {
    "token_visit": token_visit,
    "ring_walk": ring_walk,
    "packing": packing,
    "recovery_plan": recovery,
    "install_plan": install,
    "latency": latency,
}

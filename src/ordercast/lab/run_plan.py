"""What `ordercast run` is asked for, and whether that can be done: judged before anything is made."""

from __future__ import annotations

from typing import Any

import msgspec

from ordercast import registry
from ordercast.contract import TAGGER
from ordercast.errors import UsageError
from ordercast.lab.bench import needs_tagger
from ordercast.lab.rings import Rings, check_rings
from ordercast.registry import ProtocolInfo
from ordercast.types import ALL_CONTINUE, MemberId


class Fault(msgspec.Struct, frozen=True):
    """`--kill 2@1.5`: at that many seconds after the start of the load."""

    kind: str  # kill, restart, pause, resume
    member: MemberId
    at: float


class RunPlan(msgspec.Struct, kw_only=True):
    """What to run."""

    protocol: str
    members: int = 4
    messages: int = 1000
    size: int = 100
    senders: int = 0  # 0: all
    service: str = ""
    rate: float = 0.0  # messages per second of all senders together; 0: as fast as the group takes them
    faults: tuple[Fault, ...] = ()
    mode: str = "multicast"
    level: str = "deliver"
    options: dict[str, Any] = {}
    timeout_ms: int = 0
    rings: Rings = ()  # none: one network
    partition: str = ALL_CONTINUE


def check(plan: RunPlan) -> RunPlan:
    """Everything that can be wrong with a plan, before anything is made."""
    info = registry.get(plan.protocol)
    senders = plan.senders or plan.members
    if senders > plan.members:
        raise UsageError(f"--senders {senders}: expected at most the {plan.members} members")
    service = plan.service or info.default_service.word
    words = [s.word for s in info.provides]
    if service not in words:
        raise UsageError(f"--service {service}: {plan.protocol} provides {', '.join(words)}")
    check_rings(plan.rings, plan.members, info)
    if wrong := info.without(plan.partition):
        raise UsageError(f"--partition {wrong}")
    _check_faults(plan, info)
    return msgspec.structs.replace(plan, senders=senders, service=service)


def _check_faults(plan: RunPlan, info: ProtocolInfo) -> None:
    """Each fault must be possible when its time comes."""
    needed = {"kill": "up", "restart": "dead", "pause": "up", "resume": "paused"}
    after = {"kill": "dead", "restart": "up", "pause": "paused", "resume": "up"}
    state = dict.fromkeys(range(1, plan.members + 1), "up")
    if tagger := needs_tagger(info, plan.options):
        state[TAGGER] = "up"
    for fault in sorted(plan.faults, key=lambda f: f.at):
        kind, member = fault.kind, fault.member
        if kind in ("kill", "restart") and "crash" not in info.survives:
            raise UsageError(f"--{kind} {member}: {plan.protocol} has no view changes and survives no crash")
        if member not in state:
            words = ", or 0, the tagger" if tagger else ""
            raise UsageError(f"--{kind} {member}: expected a member from 1 to {plan.members}{words}")
        if state[member] != needed[kind]:
            raise UsageError(f"--{kind} {member}@{fault.at:g}: member {member} is {state[member]} then")
        state[member] = after[kind]
    if "paused" in state.values():
        raise UsageError("--pause: every paused member must be resumed before the end; expected a --resume for it")
    if "up" not in [state[member] for member in state if member != TAGGER]:
        raise UsageError("--kill: no member would be left at the end; expected at least one")

"""What a replica says of itself: to callers, in the status, to the record, and in the trace, for those who judge it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ordercast.contract import Action, Down, Note
from ordercast.membership.primary import Knows
from ordercast.state.machine import UNDECIDED
from ordercast.state.packets import Without, say
from ordercast.state.recovery import Recovered
from ordercast.state.replica import Phase, Replica, guarded
from ordercast.types import PRIMARY_MAJORITY, MemberId, View

if TYPE_CHECKING:
    from ordercast.state.layer import State


def note(replica: Replica, what: str, **fields: Any) -> Action:
    """For the trace: where a state stands, as a view begins, is decided, or ends."""
    history = replica.history
    known = str(replica.knows.view) if replica.knows is not None else None
    own = {"what": what, "n": history.n, "h": history.h.hex(), "regular": history.regular, "knows": known}
    return Note("state", {**own, "epoch": str(replica.epoch), **fields})


def entered(replica: Replica, members: tuple[MemberId, ...]) -> Action:
    """Where it stands as a view begins, how large its state is, and whether it could be merged with another."""
    size = guarded("the size of the state", replica.machine.size)
    return note(replica, "view", members=list(members), bytes=size, merges=replica.machine.merges)


def found(replica: Replica, files: Recovered | None) -> list[Action]:
    """What a life begins with, where there is a disk."""
    if files is None:
        return []
    told = [Note("state damaged", {"files": list(files.damaged)})] if files.damaged else []
    return [note(replica, "found", **files.fields), *told]


def recorded(layer: State) -> list[Action]:
    """What is known of decisions, for the record of primary views; never of a group with other members."""
    knows = layer.replica.knows if layer.policy == PRIMARY_MAJORITY else None
    return [Down(Knows(*knows.parts))] if knows is not None and knows.view.rep in layer.members else []


def closed(layer: State) -> str:
    """Why no call is taken, or nothing."""
    if layer.phase is Phase.ENDED:
        return "ended"
    if layer.leaving:
        return "closed"
    return "no view" if layer.view is None else "not primary" if layer.phase is Phase.AWAY else ""


def without(view: View | None, why: str) -> list[Action]:
    """To the others, wherever they may hear it: no replica any more."""
    if view is None or view.primary is False:
        return []
    return [say(Without(view.id, why[:1_000]), ahead=True)]


def status(layer: State) -> dict[str, Any]:
    replica, moving = layer.replica, layer.moving
    n, h = replica.history.place
    return {
        "standing": layer.phase.value, "n": n, "h": h.hex(), "epoch": str(replica.epoch),
        "behind": sorted(moving.lacking) if moving is not None else [], "waits": _waits(layer),
        "queues": {"held": len(replica.held) + len(replica.due), "calls": len(layer.answers)},
    }  # fmt: skip


def _waits(layer: State) -> str:
    if layer.council is not None:
        return f"what members {layer.council.missing()} offer as their state"
    if layer.meeting is not None:
        return f"all states to be merged; members {sorted(layer.meeting.ready)} have them"
    arriving = layer.moving.arriving if layer.moving is not None else None
    if arriving is not None:
        return f"the state, which comes from member {arriving.source}: {arriving.bytes} bytes so far"
    return f"a member that has {layer.why}" if layer.phase.value == UNDECIDED and layer.why else ""

"""One step of a change of keys, asked of a running member: said to the group until every member of the view took it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from typing import Any

import msgspec

from ordercast.drivers.rotation import Name, Step
from ordercast.live.node import Node
from ordercast.live.talk import Talk
from ordercast.types import MemberId

PATIENCE_SECONDS = 10.0
AGAIN_SECONDS = 0.1


class Wanted(msgspec.Struct, frozen=True):
    """An order."""

    key: Step
    name: Name


async def change(node: Node, words: dict[str, Any]) -> dict[str, Any]:
    """{"key": "add" | "use" | "drop", "name": of the key}; the answer has "done", or "refused" and why."""
    sealing = node.talk.sealing
    if sealing is None:
        return {"refused": "this group has no key: it is insecure"}
    try:
        wanted = msgspec.convert(words, Wanted)
    except msgspec.ValidationError as fault:
        return {"refused": f"expected a step and a key's name: {fault}"}
    step, name = wanted.key, wanted.name
    others = {member for member in _company(node) if member != node.identity.me}
    if why := await _prepared(node.talk, step, name, others):
        return {"refused": why}
    number = sealing.ring.number + (step == "use" and sealing.ring.sends.name != name)
    if why := sealing.rotation.take(step, name, number):
        return {"refused": f"this member {why}"}
    missing = await _until_taken(node.talk, step, name, others)
    done = {"done": step, "key": name, "members": sorted({node.identity.me, *others} - missing.keys())}
    return done | ({"missing": {str(member): why for member, why in missing.items()}} if missing else {})


def _company(node: Node) -> Collection[MemberId]:
    """Who must follow: the view's members; without views, all that were heard."""
    return node.view.members if node.view is not None else node.incoming.admission.last


async def _prepared(talk: Talk, step: Step, name: str, others: Collection[MemberId]) -> str:
    """Why a step may not be taken: somebody lacks the key to be used, or still speaks with the one to be dropped."""
    assert talk.sealing is not None
    rotation, ring = talk.sealing.rotation, talk.sealing.ring
    if step == "use":
        if why := rotation.take("add", name, 0):
            return f"this member {why}"
        missing = await _until_taken(talk, "add", name, others)
        return "; ".join(f"member {member} {why}" for member, why in missing.items())
    if step == "drop" and ring.sends.name != name:
        missing = await _until_taken(talk, "use", ring.sends.name, others)
        return "; ".join(f"member {member} {why}" for member, why in missing.items())
    return ""


async def _until_taken(talk: Talk, step: Step, name: str, others: Collection[MemberId]) -> dict[MemberId, str]:
    """Say a step until all have taken it; who has not, and why, after a while."""
    assert talk.sealing is not None
    rotation = talk.sealing.rotation
    for member in others:
        rotation.others.pop(member, None)
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        talk.say_all(rotation.say(step, name))
        await asyncio.sleep(AGAIN_SECONDS)
        missing = rotation.missing(step, name, others)
        told = [member for member in missing if (said := rotation.others.get(member)) is not None and said.why]
        if not missing or len(told) == len(missing) or time.monotonic() > until:
            return missing

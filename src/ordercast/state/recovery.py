"""What a life finds on disk of the state that an earlier one left: the newest snapshot, and the steps after it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from ordercast.state.history import History, following
from ordercast.state.packets import decode_step
from ordercast.state.records import (
    LOG,
    SNAPSHOT,
    AnyRecord,
    Beginning,
    Decided,
    Heard,
    HistoryPiece,
    Offered,
    StatePiece,
    Stepped,
    numbers,
    records,
    whole,
)
from ordercast.state.replica import Entry, Replica, guarded


class Recovered(Struct, frozen=True):
    """What was there, for whoever runs the member."""

    steps: int
    bytes: int  # of the logs that were read
    damaged: tuple[str, ...]  # snapshots that were passed over, and logs that were not read to their end

    @property
    def fields(self) -> dict[str, Any]:
        return {"steps": self.steps, "damaged": list(self.damaged)}


def recover(replica: Replica, found: Mapping[str, bytes]) -> Recovered:
    """Bring a new replica to where its files end; raises `Failed` where its machine does."""
    base, damaged = 0, []
    for k in reversed(numbers(found, SNAPSHOT)):
        name = f"{SNAPSHOT}{k}"
        read = whole(found[name])
        if read is not None and _restore(replica, read):
            base = k
            break
        damaged.append(name)
    steps = size = 0
    for k in numbers(found, LOG):
        if k < base:
            continue
        faults: list[int] = []
        data = found[f"{LOG}{k}"]
        size += len(data)
        for record in records(data, faults):
            if not _again(replica, record):
                break
            steps += isinstance(record, Stepped)
        damaged += [f"{LOG}{k}"] if faults else []
        replica.short = replica.short or bool(faults)
    return Recovered(steps, size, tuple(damaged))


def _restore(replica: Replica, read: list[AnyRecord]) -> bool:
    """From a snapshot; whether it holds what it should."""
    first, machine = read[0], replica.machine
    assert isinstance(first, Beginning)
    try:
        history = History.of(machine.digest, [record.data for record in read if isinstance(record, HistoryPiece)])
    except msgspec.MsgspecError:
        return False
    restoring = guarded("restore", machine.restore)
    for record in read:
        if isinstance(record, StatePiece):
            guarded("restore", restoring.feed, record.data)
    guarded("restore", restoring.finish)
    history.irregular = first.irregular
    replica.history, replica.epoch, replica.within = history, first.epoch, first.within
    if first.knows is not None:
        replica.learn(first.knows)
    return True


def _again(replica: Replica, record: AnyRecord) -> bool:
    """Take a step of the log; whether what follows may go on from there."""
    history = replica.history
    if isinstance(record, Stepped):
        if record.n <= history.n:
            return True  # older than the snapshot, or written twice
        said = decode_step(record.raw)
        entry = Entry(record.caller, said, record.raw, record.irregular)
        if (record.n, record.h) != following(history.place, entry.caller, entry.count, entry.raw):
            return False
        replica.apply(entry)
    elif isinstance(record, Decided):
        if record.mark.place != history.place:
            return record.mark.n < history.n
        replica.decided(record.mark, record.members)
        replica.within = ()
        replica.learn(record.mark)
    elif isinstance(record, Offered):
        replica.enter(record.view)
    elif isinstance(record, Heard):
        replica.learn(record.mark)
        if record.decided:
            replica.within = ()
    return True

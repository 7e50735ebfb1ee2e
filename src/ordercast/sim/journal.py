"""What the trace says of a simulated run: the simulator's own rows, the members' recorders, and what was lost where."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from ordercast.contract import TAGGER, Packet, Setup
from ordercast.sim.host import Host
from ordercast.sim.schedule import Schedule
from ordercast.trace.record import RecordWriter, recorded
from ordercast.trace.recorder import Recorder
from ordercast.trace.schema import Header, Kind, Level
from ordercast.trace.trace import MemorySink
from ordercast.workload.payload import matches


class Journal:
    """Member 0 writes what no member knows; a member's own rows go through its recorder."""

    def __init__(self, schedule: Schedule, header: Header, level: Level, record: Path | None) -> None:
        self.schedule, self.header, self.level = schedule, header, level
        self.record = record if level >= Level.RECORD else None  # where inputs are kept, if anywhere
        self.sink = MemorySink()
        self.drops: Counter[str] = Counter()  # datagrams and records, by reason
        self.effects: Counter[str] = Counter()  # datagrams that a fault of this class touched
        self._log = Recorder(self.sink, 0, 1, level)

    def recorder(self, host: Host, setup: Setup) -> Recorder:
        """For a new life of a member."""
        if host.id == TAGGER:
            return Recorder(MemorySink(), host.id, host.incarnation, Level.OFF)
        log = RecordWriter(self.record, recorded(self.header, setup)) if self.record is not None else None
        return Recorder(self.sink, host.id, host.incarnation, self.level, matches, log)

    def event(self, kind: Kind, **fields: Any) -> None:
        time = self.schedule.time
        self._log.event(time, time, kind, **fields)

    def life(self, host: Host, kind: Kind, **detail: Any) -> None:
        """About a member's process; of the tagger's nobody judges anything."""
        if host.id == TAGGER:
            if self.level >= Level.FULL:
                self.event(Kind.NOTE, name="tagger", state=kind.word)
            return
        self.event(kind, sender=host.id, sender_incarnation=host.incarnation, **detail)

    def lost(self, source: int, to: int, packet: Packet, reason: str) -> None:
        """A datagram was lost on its way: the simulator's own row."""
        self.drops[reason] += 1
        if self.level >= Level.FULL:
            self.event(Kind.DROP, sender=source, reason=reason, to=to, packet=type(packet).__name__)

    def refused(self, host: Host, reason: str, **fields: Any) -> None:
        """Something was refused by its receiver: that member's row."""
        self.drops[reason] += 1
        if host.up:
            time = self.schedule.time
            host.recorder.event(time, host.clock.now(time), Kind.DROP, reason=reason, **fields)

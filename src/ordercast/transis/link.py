"""Reliable causal multicast inside a view: the Transis layer, on a fixed view.

Paper: the Transis layer of "Total ordering of messages in broadcast domains" (ToTo), made exact for lossy datagrams.
Provides: reliable, FIFO, causal multicast; own messages come back; nothing is delivered twice.  Needs: datagrams.
The view is the configured member list, delivered as (1, smallest id) at start; it survives loss, duplication,
reordering and pauses, but no crash and no permanent cut: of a member that is silent for long it says Absent.

Differs from the paper:
  D1  Vectors instead of direct acknowledgements (reception.py).
  D2  Status reports, never sequenced and never votes, find lost tails and stability; a member that received a quarter
      of a window without sending reports at once, so that windows stay open.
  D3  The window also falls with the room at the receiver's application (back-pressure).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ordercast.contract import (
    ALL,
    Action,
    Body,
    CancelTimer,
    Down,
    Event,
    FreeSpace,
    Layer,
    Leave,
    Left,
    Multicast,
    Note,
    Packet,
    Received,
    SetTimer,
    Setup,
    Transmit,
    Up,
    ViewChange,
    Window,
    dropped,
)
from ordercast.limits import UNSTABLE_FRAMES_MAX
from ordercast.transis.packets import Data, Nack, Retrans, Status
from ordercast.transis.reception import Reception
from ordercast.transis.repair import Repair
from ordercast.transis.silence import Silence
from ordercast.transis.stability import Stability
from ordercast.types import Cause, Identity, MemberId, Nanoseconds, NetId, Peer, View, ViewId, ViewKind

RETRANS_BYTES_MAX = 2**20  # answered to one Nack; the rest is asked for again
WINDOW_BYTES = 2**20  # of one sender's unstable frames, so that four senders fit a receive buffer
WINDOW_FRAMES = (4, 64)


def window_frames(frame_bytes: int) -> int:
    """The largest window: small frames count, large ones weigh."""
    least, most = WINDOW_FRAMES
    return max(least, min(most, WINDOW_BYTES // frame_bytes))


def unstable_frames(n: int) -> int:
    """What may exist of one sender that is not stable: a window, and an answer to each message of the others'."""
    return min(UNSTABLE_FRAMES_MAX, WINDOW_FRAMES[1] * (n + 1))


class Link(Layer):
    """One member's end of the reliable causal multicast."""

    name = "link"

    def __init__(self, setup: Setup) -> None:
        identity, timeout_ns = setup.identity, setup.timeout_ns
        members = tuple(sorted(identity.members))
        self.timeout_ns, self.window_max = timeout_ns, window_frames(setup.frame_bytes)
        self.status_ns, self.heartbeat_ns = timeout_ns // 20, timeout_ns // 5  # T_status, T_hb
        self.me, self.members, self.n = identity.me, members, len(members)
        self.rank_of = {member: rank for rank, member in enumerate(members)}
        self.rank = self.rank_of[identity.me]
        self.view = View(ViewId(1, members[0]), ViewKind.REGULAR, members, members, cause=Cause("start"))
        self.incarnations: dict[MemberId, int] = {identity.me: identity.incarnation}
        self.unstable_max, self.frame_bytes = unstable_frames(self.n), setup.frame_bytes
        self.reception: Reception[Data[Body]] = Reception(self.n, self.rank, self.unstable_max)
        self.stability: Stability[Data[Body]] = Stability(self.n)
        self.repair = Repair(self.rank, self.n, self.timeout_ns)
        self.windows = [self.window_max] * self.n  # last heard from each
        self.full: dict[int, Nanoseconds] = {}  # whose application takes nothing, and since when
        self.told = 0  # highest own number that the layer above was told it may use
        self.reported = 0  # messages inserted since others last learnt our `have`
        self.dirty = False  # acknowledgements came since stability was last computed
        self.nack_at: Nanoseconds | None = None
        self.status_at: Nanoseconds | None = None
        self.asked: dict[tuple[int, int], tuple[Nanoseconds, MemberId]] = {}  # last asker of a retransmission
        self.silence = Silence(self.members, self.rank)
        self.leaving = self.left = False
        self.owed = 0  # leaving: the last own number that everybody must have first

    def start(self, now: Nanoseconds, identity: Identity, stored: Mapping[str, tuple[int, bytes]]) -> list[Action]:
        return [Up(ViewChange(self.view)), *self._window(), SetTimer("heartbeat", now + self.heartbeat_ns)]

    # ----------------------------------------------------------------------------------------------------- sending

    @property
    def shut(self) -> bool:
        """The layer above has used up what it was told it may send."""
        return self.reception.have[self.rank] >= self.told

    def _window(self) -> list[Action]:
        """Tell the layer above how much it may send now, if it has used up what it was told, or was told too much."""
        sent = self.reception.have[self.rank]
        limit = min(self.windows) + self.stability.stable[self.rank]
        if limit <= sent >= self.told and self.dirty:  # acknowledgements are added up when it matters
            self._advance()
            limit = min(self.windows) + self.stability.stable[self.rank]
        limit = max(limit, sent)
        if limit == self.told or (limit > self.told > sent):
            return []
        self.told = limit
        return [Up(Window(limit - sent))]

    def _takes(self, now: Nanoseconds, rank: int, window: int) -> None:
        """How much a member takes; nothing, while its application does not read."""
        self.windows[rank] = window
        if window:
            self.full.pop(rank, None)
        else:
            self.full.setdefault(rank, now)

    def down(self, now: Nanoseconds, event: Event) -> list[Action]:
        if type(event) is Multicast:
            return self._multicast(event.body)
        if type(event) is FreeSpace:
            return self._room(now, event.frames)
        if type(event) is Leave:
            if not self.leaving:
                self.leaving, self.owed = True, self.reception.have[self.rank]
            until = now + self.timeout_ns if event.until is None else event.until
            return [SetTimer("leave", until), *self._drain_out(now)]
        return [Down(event)]

    def _multicast(self, body: Body) -> list[Action]:
        have = self.reception.have
        seq = have[self.rank] + 1
        have[self.rank] = seq
        vec = tuple(have)
        data = Data(self.view.id, seq, vec, self.windows[self.rank], body)
        self.stability.insert(self.rank, seq, vec, data)
        self.reported = 0
        if self.n == 1:
            self._advance()
        out: list[Action] = [Transmit(0, ALL, data), Up(Received(self.me, seq, body, vec))]
        return out + self._window() if seq >= self.told else out

    # --------------------------------------------------------------------------------------------------- receiving

    def receive(self, now: Nanoseconds, net: NetId, source: Peer, packet: Packet, drops: int) -> list[Action]:
        if self.incarnations.get(source.id) != source.incarnation:
            why = self._stranger(source)
            if why:
                return [dropped(why, member=source.id)]
        rank = self.rank_of[source.id]
        self.silence.heard(rank)
        kind = type(packet)
        if kind is Data:
            return self._data(now, rank, rank, packet)  # type: ignore[arg-type]
        if kind is Status:
            return self._status(now, rank, packet)  # type: ignore[arg-type]
        if kind is Nack:
            return self._nack(now, source.id, packet)  # type: ignore[arg-type]
        assert type(packet) is Retrans
        if packet.rank == self.rank:  # nobody writes my line but me
            return [] if packet.data.seq <= self.reception.have[self.rank] else [dropped("own line")]
        return self._data(now, packet.rank, rank, packet.data)

    def _stranger(self, source: Peer) -> str:
        """Learn a member's incarnation; a fixed view knows one life of each."""
        if source.id not in self.rank_of:
            return "not a member"
        known = self.incarnations.setdefault(source.id, source.incarnation)
        if source.incarnation < known:
            return "earlier incarnation"
        return "restarted in a fixed view" if source.incarnation > known else ""

    def _data(self, now: Nanoseconds, rank: int, transmitter: int, data: Data[Body]) -> list[Action]:
        reception = self.reception
        if data.view != self.view.id:
            return [dropped("view")]
        seq, vec = data.seq, data.vec
        if len(vec) != self.n or vec[rank] != seq:
            return [dropped("vector")]
        out: list[Action] = []
        if rank == transmitter and self.windows[rank] != data.window:
            self._takes(now, rank, data.window)
            out += self._window()
        if seq > self.stability.stable[rank] + self.window_max and self._too_much(rank, data):
            return [*out, dropped("unstable")]
        if reception.held and reception.held.get((rank, seq), (vec,))[0] != vec:
            out.append(dropped("two vectors"))
        inserted = reception.offer(rank, seq, vec, data)
        if inserted is None:
            return [*out, dropped("too far ahead")] if reception.beyond(vec) else out
        if not inserted:
            self.repair.close((rank, seq))
            out.append(Note("hold", {"sender": self.members[rank], "seq": seq}))
            return out + self._gaps(now, transmitter) if reception.learn(vec) else out
        self.dirty = True
        self.reported += len(inserted)
        insert, gaps, members = self.stability.insert, self.repair.gaps, self.members
        for q, k, item in inserted:
            if gaps:
                gaps.pop((q, k), None)
            insert(q, k, item.vec, item)
            out.append(Up(Received(members[q], k, item.body, item.vec)))
        if self.status_at is None:
            self.status_at = now + self.status_ns
            out.append(SetTimer("status", self.status_at))
        return out

    def _too_much(self, rank: int, data: Data[Body]) -> bool:
        """Whether a sender has more unstable than it may: in all, or, beyond a window, in frames larger than mine."""
        if self.dirty:
            self._advance()
        ahead = data.seq - self.stability.stable[rank]
        frame = getattr(data.body, "frame", None)
        large = frame is not None and len(frame.data) > self.frame_bytes
        return ahead > (self.window_max if large else self.unstable_max)

    def _status(self, now: Nanoseconds, rank: int, status: Status) -> list[Action]:
        if status.view != self.view.id or len(status.have) != self.n:
            return [dropped("view")]
        if self.reception.beyond(status.have):
            return [dropped("too far ahead")]
        self.stability.report(rank, status.have)
        self.dirty = True
        out: list[Action] = []
        if self.windows[rank] != status.window:
            self._takes(now, rank, status.window)
            out += self._window()
        return out + self._gaps(now, rank) if self.reception.learn(status.have) else out

    # ------------------------------------------------------------------------------------------------------ repair

    def _gaps(self, now: Nanoseconds, revealer: int) -> list[Action]:
        """Open what is newly missing and see to the timer."""
        self.repair.open(now, self.reception.gaps(), revealer)
        return self._set_nack(now)

    def _set_nack(self, now: Nanoseconds) -> list[Action]:
        due = self.repair.next_due()
        if due is None or (self.nack_at is not None and self.nack_at <= due):
            return []
        self.nack_at = due
        return [SetTimer("nack", due)]

    def _ask(self, now: Nanoseconds) -> list[Action]:
        self.nack_at = None
        holders = {key: self.stability.holders(*key) for key, gap in self.repair.gaps.items() if gap.due <= now}
        out: list[Action] = []
        for rank, ranges in self.repair.due(now, holders):
            to = ALL if rank is None else self.members[rank]
            out.append(Note("nack", {"to": to, "ranges": len(ranges)}))
            out.append(Transmit(0, to, Nack(self.view.id, ranges, again=rank is None)))
        return out + self._set_nack(now)

    def _nack(self, now: Nanoseconds, asker: MemberId, nack: Nack) -> list[Action]:
        """Answer from the buffer: to the asker, or to all when two asked, or the direct way failed."""
        if nack.view != self.view.id:
            return [dropped("view")]
        self.repair.heard(now, nack.ranges)
        out: list[Action] = []
        budget = RETRANS_BYTES_MAX
        for q, first, last in nack.ranges:
            if q >= self.n:
                continue
            for k in range(max(first, self.stability.stable[q] + 1), min(last, self.reception.have[q]) + 1):
                data = self.stability.buffer.get((q, k))
                if data is None or budget <= 0:
                    continue
                frame = getattr(data.body, "frame", None)
                budget -= 64 + (len(frame.data) if frame is not None else 0)
                at, who = self.asked.get((q, k), (0, asker))
                both = who != asker and now - at <= self.repair.nack_ns
                self.asked[q, k] = (now, asker)
                out.append(Transmit(0, ALL if nack.again or both else asker, Retrans(q, data)))
        if out:
            out.insert(0, Note("retransmit", {"to": asker, "frames": len(out), "again": nack.again}))
        return out

    # --------------------------------------------------------------------------------------------- stability, pace

    def _advance(self) -> None:
        self.dirty = False
        stability = self.stability
        stability.report(self.rank, self.reception.have)
        for key in stability.advance():
            if self.asked:
                self.asked.pop(key, None)

    def drained(self, now: Nanoseconds, net: NetId) -> list[Action]:
        out: list[Action] = []
        if self.reported * 4 >= self.window_max:
            out += self._report()
        if self.dirty and (self.shut or self.leaving or len(self.stability.buffer) > 2 * self.window_max):
            self._advance()
            out += self._window()
        if self.leaving:
            out += self._drain_out(now)
        return out

    def _report(self) -> list[Action]:
        self.reported = 0
        return [Transmit(0, ALL, Status(self.view.id, tuple(self.reception.have), self.windows[self.rank]))]

    def _room(self, now: Nanoseconds, frames: int) -> list[Action]:
        """The application can take this many frames more: each sender gets its share."""
        before = self.windows[self.rank]
        self._takes(now, self.rank, max(0, min(self.window_max, frames // self.n)))
        if before == self.windows[self.rank]:
            return []
        out: list[Action] = [Note("window", {"frames": self.windows[self.rank]})]
        if before == 0 or self.windows[self.rank] == 0:
            out += self._report()
        return out + self._window()

    # ------------------------------------------------------------------------------------------------------ timers

    def timer(self, now: Nanoseconds, name: str, due: Nanoseconds) -> list[Action]:
        if self.left:
            return []
        if name == "nack":
            return self._ask(now)
        if name == "leave":
            return self._go("not everybody confirmed in time")
        if name == "status":
            self.status_at = None
            out = self._report() if self.reported else []
        else:
            assert name == "heartbeat"
            out = [*self._report(), *self.silence.beat(), SetTimer("heartbeat", now + self.heartbeat_ns)]
        if self.dirty and (name == "heartbeat" or self.shut):
            self._advance()
            out += self._window()
        if self.leaving:
            out += self._drain_out(now)
        return out

    # ----------------------------------------------------------------------------------------------------- leaving

    def _drain_out(self, now: Nanoseconds) -> list[Action]:
        """Go when everybody has what we sent; who sent the rest keeps it until then, too."""
        if self.left:
            return []
        self._advance()
        return self._go("") if self.stability.stable[self.rank] >= self.owed else []

    def _go(self, why: str) -> list[Action]:
        if self.left:
            return []
        self.left = True
        names = ("heartbeat", "status", "nack", "leave")
        said = self._report() if self.n > 1 else []  # the others' last chance to hear what we have
        return [Note("left", {"why": why}), *said, *map(CancelTimer, names), Up(Left(self._unsent()))]

    def _unsent(self) -> tuple[int, int] | None:
        """Own messages that somebody is not known to have."""
        mine = (getattr(data.body, "frame", None) for (q, _), data in self.stability.buffer.items() if q == self.rank)
        counters = [frame.counter for frame in mine if frame is not None and not frame.control]
        return (min(counters), max(counters)) if counters else None

    def status(self) -> dict[str, Any]:
        gaps = self.repair.gaps
        lagging = [m for r, m in enumerate(self.members) if self.stability.acked(r) < self.reception.have]
        waits, since = "", None
        if self.silence.absent:
            waits = f"members {list(self.silence.absent)}, which are silent: this view cannot change"
        elif self.full:
            rank, since = min(self.full.items(), key=lambda item: item[1])
            waits = f"the application of member {self.members[rank]}, which does not read what it was delivered"
        elif gaps:
            (q, k), *_ = gaps
            waits = f"message {k} of member {self.members[q]}, which is missing"
        elif self.stability.buffer:
            waits = f"acknowledgements of members {lagging}"
        return {
            "view": str(self.view.id),
            "members": list(self.members),
            "have": list(self.reception.have),
            "unstable": len(self.stability.buffer),
            "held": len(self.reception.held),
            "gaps": len(gaps),
            "windows": list(self.windows),
            "queues": {"unstable": len(self.stability.buffer), "held": len(self.reception.held), "gaps": len(gaps)},
            "waits": waits,
            "waits_since_ns": since,
            "repeated": {self.members[rank]: n for rank, n in sorted(self.repair.repeated.items())},
        }

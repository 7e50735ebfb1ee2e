"""The multicast of one view: sending, reception, repair, stability, pace.  A new view begins with a new one.

Paper: the Transis layer of "Total ordering of messages in broadcast domains" (ToTo), made exact for lossy datagrams.
Provides, while the view lasts: reliable, FIFO, causal multicast; own messages come back; nothing comes twice.

Differs from the paper:
  D1  Vectors instead of direct acknowledgements (reception.py).
  D2  Status reports, never sequenced and never votes, find lost tails and stability; a member that received a quarter
      of a window without sending reports at once, so that windows stay open.  An idle group sends none: who waits for
      acknowledgements that do not come asks for them.  A member that shows no progress is sent an empty UAck, too, so
      that the port of a dead one can say so; twice, as a path that passes unicasts alone must not look like a link.
  D3  The window also falls with the room at the receiver's application (back-pressure).
  D4  It counts frames.  What a protocol says beside them answers frames of others, which their windows bound; were it
      counted, a sequencer far away could not send its own.
"""

from __future__ import annotations

from collections import deque
from operator import le
from typing import Any

from ordercast.contract import ALL, Action, Body, CancelTimer, Note, Received, SetTimer, Transmit, Up, Window, dropped
from ordercast.limits import UNSTABLE_FRAMES_MAX
from ordercast.transis.packets import Data, Nack, Retrans, Status, UAck
from ordercast.transis.reception import Reception
from ordercast.transis.repair import Repair
from ordercast.transis.stability import Stability
from ordercast.types import MemberId, Nanoseconds, ViewId

RETRANS_BYTES_MAX = 2**20  # answered to one Nack; the rest is asked for again
WINDOW_BYTES = 2**20  # of one sender's unstable frames, so that four senders fit a receive buffer
WINDOW_FRAMES = (4, 64)
KNOCKS = 2
NACK, STATUS, HEARTBEAT = "nack", "status", "heartbeat"  # timers


def window_frames(frame_bytes: int) -> int:
    """The largest window: small frames count, large ones weigh."""
    least, most = WINDOW_FRAMES
    return max(least, min(most, WINDOW_BYTES // frame_bytes))


def unstable_frames(n: int) -> int:
    """What may exist of one sender that is not stable: a window, and an answer to each message of the others'."""
    return min(UNSTABLE_FRAMES_MAX, WINDOW_FRAMES[1] * (n + 1))


class Traffic:
    """One member's end of it."""

    def __init__(
        self,
        me: MemberId,
        id: ViewId,
        members: tuple[MemberId, ...],
        *,
        timeout_ns: Nanoseconds,
        frame_bytes: int,
        causal: bool,
    ) -> None:
        self.me, self.id, self.members, self.n = me, id, members, len(members)
        self.frame_bytes = frame_bytes
        self.window_max, self.unstable_max = window_frames(frame_bytes), unstable_frames(self.n)
        self.status_ns, self.heartbeat_ns = timeout_ns // 20, timeout_ns // 5  # T_status, T_hb
        self.rank_of = {member: rank for rank, member in enumerate(members)}
        self.rank = self.rank_of[me]
        self.causal = causal
        self.reception: Reception[Data[Any]] = Reception(self.n, self.rank, self.unstable_max, causal)
        self.stability: Stability[Data[Any]] = Stability(self.n)
        self.repair = Repair(self.rank, self.n, timeout_ns)
        self.windows = [self.window_max] * self.n  # last heard from each
        self.full: dict[int, Nanoseconds] = {}  # whose application takes nothing, and since when
        self.open = False  # the view works: new messages may leave
        self.told = 0  # highest own number that the layer above was told it may use
        self.bare: deque[int] = deque()  # own numbers that are not stable and carry no frame: no window counts them
        self.reported = 0  # messages inserted since others last learnt our `have`
        self.asked_for = False  # somebody wants to know our `have`
        self.dirty = False  # acknowledgements came since stability was last computed
        self.seen = [0] * self.n  # how much each had acknowledged at the last heartbeat
        self.still = [0] * self.n  # heartbeats since which it owes something and shows no progress
        self.armed: dict[str, Nanoseconds] = {}  # timers
        self.asked: dict[tuple[int, int], tuple[Nanoseconds, MemberId]] = {}  # last asker of a retransmission
        self.owed: tuple[int, ...] = ()  # leaving: what was here then, and gave what we sent its place
        self.u_in: tuple[int, ...] = ()  # unicasts that came, for the next Status
        self.flushed: set[tuple[int, int]] = set()  # what came in a flush, in whichever attempt: its reception was told

    @property
    def have(self) -> list[int]:
        """How much of each rank was inserted."""
        return self.reception.have

    @property
    def settled(self) -> bool:
        """Everybody has what we sent, and what we owe."""
        stable = self.stability.stable
        return stable[self.rank] >= self.have[self.rank] and all(map(le, self.owed, stable))

    def _arm(self, name: str, at: Nanoseconds) -> Action:
        self.armed[name] = at
        return SetTimer(name, at)

    def end(self) -> list[Action]:
        """The view is over."""
        return list(map(CancelTimer, self.armed))

    # --------------------------------------------------------------------------------------------------------- sending

    def start(self) -> list[Action]:
        """The view works."""
        self.open = True
        return self.window()

    def stop(self) -> list[Action]:
        """The view is being left: no new messages."""
        self.open = False
        sent = self.have[self.rank]
        if self.told <= sent:
            return []
        self.told = sent
        return [Up(Window(0))]

    @property
    def shut(self) -> bool:
        """The layer above has used up what it was told it may send."""
        return self.open and self.have[self.rank] >= self.told

    def window(self) -> list[Action]:
        """Tell the layer above how much it may send now, if it has used up what it was told, or was told too much."""
        if not self.open:
            return []
        sent = self.have[self.rank]
        limit = self._limit()
        if limit <= sent >= self.told and self.dirty:  # acknowledgements are added up when it matters
            self.advance()
            limit = self._limit()
        limit = max(limit, sent)
        if limit == self.told or (limit > self.told > sent):
            return []
        self.told = limit
        return [Up(Window(limit - sent))]

    def _limit(self) -> int:
        stable, bare = self.stability.stable[self.rank], self.bare
        while bare and bare[0] <= stable:
            bare.popleft()
        return min(self.windows) + stable + len(bare)

    def multicast(self, now: Nanoseconds, body: Body) -> list[Action]:
        have = self.have
        seq = have[self.rank] + 1
        have[self.rank] = seq
        vec = tuple(have)
        data = Data(self.id, seq, vec, self.windows[self.rank], body)
        if getattr(body, "frame", None) is None:
            self.bare.append(seq)
            self.told += 1
        self.stability.insert(self.rank, seq, vec, data)
        self.reported = 0
        out: list[Action] = [Transmit(0, ALL, data), Up(Received(self.me, seq, body, vec))]
        if self.n == 1:
            self.advance()
            del out[0]
        elif HEARTBEAT not in self.armed:
            out.append(self._arm(HEARTBEAT, now + self.heartbeat_ns))
        return out + self.window() if seq >= self.told else out

    def _takes(self, now: Nanoseconds, rank: int, window: int) -> None:
        """How much a member takes; nothing, while its application does not read."""
        self.windows[rank] = window
        if window:
            self.full.pop(rank, None)
        else:
            self.full.setdefault(rank, now)

    def room(self, now: Nanoseconds, frames: int) -> list[Action]:
        """The application can take this many frames more: each sender gets its share."""
        before = self.windows[self.rank]
        share = max(0, min(self.window_max, frames // self.n))
        self._takes(now, self.rank, share)
        if before == share:
            return []
        out: list[Action] = [Note("window", {"frames": share})]
        if (before == 0 or share == 0) and self.open:
            out += self.report()
        return out + self.window()

    # ------------------------------------------------------------------------------------------------------- receiving

    def data(self, now: Nanoseconds, rank: int, transmitter: int, data: Data[Any], out: list[Action]) -> None:
        reception = self.reception
        seq, vec = data.seq, data.vec
        if len(vec) != self.n or vec[rank] != seq:
            out.append(dropped("vector"))
            return
        if rank == transmitter and self.windows[rank] != data.window:
            self._takes(now, rank, data.window)
            out += self.window()
        if seq > self.stability.stable[rank] + self.window_max and self._too_much(rank, data):
            out.append(dropped("unstable"))
            return
        if reception.held and reception.held.get((rank, seq), (vec,))[0] != vec:
            out.append(dropped("two vectors"))
        inserted = reception.offer(rank, seq, vec, data)
        if inserted is None:
            if reception.beyond(vec):
                out.append(dropped("too far ahead"))
            return
        if not inserted:
            self.repair.close((rank, seq))
            out.append(Note("hold", {"sender": self.members[rank], "seq": seq}))
            if reception.learn(vec):
                out += self._gaps(now, transmitter)
            return
        self.dirty = True
        self.reported += len(inserted)
        insert, gaps, members = self.stability.insert, self.repair.gaps, self.members
        for q, k, item in inserted:
            if gaps:
                gaps.pop((q, k), None)
            insert(q, k, item.vec, item)
            out.append(Up(Received(members[q], k, item.body, item.vec)))
        if not self.causal and not all(map(le, vec, reception.have)) and reception.learn(vec):
            out += self._gaps(now, transmitter)
        armed = self.armed
        if STATUS not in armed:
            out.append(self._arm(STATUS, now + self.status_ns))
        if HEARTBEAT not in armed:
            out.append(self._arm(HEARTBEAT, now + self.heartbeat_ns))

    def again(self, now: Nanoseconds, transmitter: int, packet: Retrans[Any], out: list[Action]) -> None:
        """A message from whoever still has it."""
        if packet.rank >= self.n:
            out.append(dropped("vector"))
        elif packet.rank != self.rank:
            self.data(now, packet.rank, transmitter, packet.data, out)
        elif packet.data.seq > self.have[self.rank]:  # nobody writes my line but me
            out.append(dropped("own line"))

    def _too_much(self, rank: int, data: Data[Any]) -> bool:
        """Whether a sender has more unstable than it may: in all, or, beyond a window, in frames larger than mine."""
        if self.dirty:
            self.advance()
        ahead = data.seq - self.stability.stable[rank]
        frame = getattr(data.body, "frame", None)
        large = frame is not None and len(frame.data) > self.frame_bytes
        return ahead > (self.window_max if large else self.unstable_max)

    def status(self, now: Nanoseconds, rank: int, status: Status) -> list[Action]:
        if len(status.have) != self.n:
            return [dropped("vector")]
        if self.reception.beyond(status.have):
            return [dropped("too far ahead")]
        self.stability.report(rank, status.have)
        self.dirty = True
        out: list[Action] = []
        if self.windows[rank] != status.window:
            self._takes(now, rank, status.window)
            out += self.window()
        if status.wants:
            self.asked_for = True
            if STATUS not in self.armed:
                out.append(self._arm(STATUS, now + self.status_ns))
        return out + self._gaps(now, rank) if self.reception.learn(status.have) else out

    # ---------------------------------------------------------------------------------------------------------- repair

    def _gaps(self, now: Nanoseconds, revealer: int) -> list[Action]:
        """Open what is newly missing and see to the timer."""
        self.repair.open(now, self.reception.gaps(), revealer)
        return self._set_nack()

    def _set_nack(self) -> list[Action]:
        due = self.repair.next_due()
        if due is None or self.armed.get(NACK, due + 1) <= due:
            return []
        return [self._arm(NACK, due)]

    def ask(self, now: Nanoseconds) -> list[Action]:
        """The timer of the gaps."""
        self.armed.pop(NACK, None)
        holders = {key: self.stability.holders(*key) for key, gap in self.repair.gaps.items() if gap.due <= now}
        out: list[Action] = []
        for rank, ranges in self.repair.due(now, holders):
            to = ALL if rank is None else self.members[rank]
            out.append(Note("nack", {"to": to, "ranges": len(ranges)}))
            out.append(Transmit(0, to, Nack(self.id, ranges, again=rank is None)))
        return out + self._set_nack()

    def nack(self, now: Nanoseconds, asker: MemberId, nack: Nack) -> list[Action]:
        """Answer from the buffer: to the asker, or to all when two asked, or the direct way failed."""
        if nack.ranges[-1][0] >= self.n:  # ranges ascend
            return [dropped("range")]
        self.repair.heard(now, nack.ranges)
        out: list[Action] = []
        budget = RETRANS_BYTES_MAX
        for q, first, last in nack.ranges:
            for k in range(max(first, self.stability.stable[q] + 1), min(last, self.have[q]) + 1):
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

    # ------------------------------------------------------------------------------------------------- stability, pace

    def advance(self) -> None:
        """Release what everybody has."""
        self.dirty = False
        stability = self.stability
        stability.report(self.rank, self.have)
        for key in stability.advance():
            if self.asked:
                self.asked.pop(key, None)

    def drained(self, now: Nanoseconds) -> list[Action]:
        out: list[Action] = []
        if self.reported * 4 >= self.window_max:
            out += self.report()
        if self.dirty and (self.shut or len(self.stability.buffer) > 2 * self.window_max):
            self.advance()
            out += self.window()
        return out

    def report(self) -> list[Action]:
        return [Transmit(0, ALL, self._status())]

    def _status(self, wants: bool = False) -> Status:
        self.reported, self.asked_for = 0, False
        return Status(self.id, tuple(self.have), self.windows[self.rank], self.u_in, wants)

    def status_due(self, now: Nanoseconds) -> list[Action]:
        """The timer of the reports: what came is told, unless something else told it."""
        self.armed.pop(STATUS, None)
        out = self.report() if self.reported or self.asked_for else []
        if self.dirty and self.shut:
            self.advance()
            out += self.window()
        return out

    def beat(self, now: Nanoseconds) -> list[Action]:
        """The heartbeat, while anything is unstable; an idle group needs none."""
        self.armed.pop(HEARTBEAT, None)
        self.advance()
        mine, before = sum(self.have), self.seen
        self.seen = [sum(self.stability.acked(p)) for p in range(self.n)]
        for p, seen in enumerate(self.seen):
            self.still[p] = self.still[p] + 1 if p != self.rank and before[p] == seen < mine else 0
        if not self.stability.buffer:
            return self.window()
        out: list[Action] = [Transmit(0, ALL, self._status(wants=any(self.still)))]
        knocks = [self.members[p] for p, still in enumerate(self.still) if 0 < still <= KNOCKS]
        out += [Transmit(0, member, UAck(self.id, member, 0)) for member in knocks]
        out.append(self._arm(HEARTBEAT, now + self.heartbeat_ns))
        return out + self.window()

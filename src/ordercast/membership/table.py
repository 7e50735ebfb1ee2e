"""The table: the newest row of every member, who hears whom, relayed in every Hello and Join.

Rows are relayed, so all members connected in any way come to hold the same table; (incarnation, version) orders the
rows of one member and the newer wins.  Only its owner writes a row, with one exception: a crash hint lets another write
q's row as gone with the next version.  Who finds itself described so contradicts with a higher version, so nobody is
declared gone against its will.  A row of mine with *my* version but other content is contradicted as well: a hint may
have used the same number as I did in the same moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ordercast.membership.choose import NO_VIEW, Row
from ordercast.membership.packets import PackedRow, PackedRows
from ordercast.types import Incarnation, MemberId, Nanoseconds, ViewId

NOBODY: frozenset[MemberId] = frozenset()
HELLO_BYTES = 40  # of a Hello, beside its rows: at most
PACKED_BYTES, ROW_BYTES = 10, 6  # of the lists that rows are packed in; of a row without its numbers and its bitmap


class Table:
    """Rows of the configured members; those of strangers are not taken."""

    __slots__ = ("_unheard", "allowed", "me", "moved", "rows", "shown")

    def __init__(self, me: MemberId, incarnation: Incarnation, allowed: Iterable[MemberId], now: Nanoseconds) -> None:
        self.me = me
        self.allowed = frozenset(allowed) | {me}
        self.rows: dict[MemberId, Row] = {me: Row(me, incarnation, 1, NO_VIEW, False, frozenset({me}))}
        self.moved: Nanoseconds = now  # when the `hears` of any row last changed
        self.shown: Nanoseconds = now  # when the view of any row last changed, or began or ceased to work
        self._unheard: dict[MemberId, Nanoseconds] = {}  # since when nobody hears it

    @property
    def own(self) -> Row:
        return self.rows[self.me]

    def write(self, now: Nanoseconds, view: ViewId, working: bool, hears: frozenset[MemberId]) -> bool:
        """Set the own row.  True if it changed: then it has a new version and must be announced."""
        own = self.own
        if (own.view, own.working, own.hears) == (view, working, hears):
            return False
        self._put(now, Row(self.me, own.incarnation, own.version + 1, view, working, hears))
        return True

    def take(self, now: Nanoseconds, row: Row) -> bool:
        """Take a row from the network.  True if the table changed."""
        if row.id not in self.allowed:
            return False
        old = self.rows.get(row.id)
        if row.id == self.me:
            return self._contradict(now, row)
        if old is not None and (row.incarnation, row.version) <= (old.incarnation, old.version):
            return False
        self._put(now, row)
        return True

    def gone(self, now: Nanoseconds, q: MemberId) -> bool:
        """A hint says that q is gone: write its row so.  True if that is news."""
        old = self.rows.get(q)
        if old is None or not old.hears:
            return False
        self._put(now, Row(q, old.incarnation, old.version + 1, old.view, False, NOBODY))
        return True

    def void(self, now: Nanoseconds, q: MemberId, incarnation: Incarnation) -> None:
        """A new life of q exists: what its former one said is void until the new one speaks."""
        old = self.rows.get(q)
        if old is not None and old.incarnation < incarnation:
            del self.rows[q]
            self.moved = now

    def forget(self, now: Nanoseconds, q: MemberId) -> None:
        """The life of q that the row is of counts no more."""
        if self.rows.pop(q, None) is not None:
            self.moved = now

    def _contradict(self, now: Nanoseconds, row: Row) -> bool:
        own = self.own
        if row.incarnation != own.incarnation or row.version < own.version or row == own:
            return False
        self._put(now, Row(self.me, own.incarnation, row.version + 1, own.view, own.working, own.hears))
        return True

    def _put(self, now: Nanoseconds, row: Row) -> None:
        old = self.rows.get(row.id)
        assert old is None or (row.incarnation, row.version) > (old.incarnation, old.version), "versions grow"
        if old is None or old.hears != row.hears:
            self.moved = now
        if old is None or (old.view, old.working) != (row.view, row.working):
            self.shown = now
        self.rows[row.id] = row

    def worth_relaying(self, q: MemberId) -> bool:
        """News of q is passed on at once if somebody else does not hear q itself."""
        return any(q not in row.hears for r, row in self.rows.items() if row.hears and r not in (self.me, q))

    # -------------------------------------------------------------------------------------------------------- packets

    def relayed(self, now: Nanoseconds, keep_ns: Nanoseconds) -> list[Row]:
        """The rows to send: the own one first; without those of members nobody has heard for `keep_ns`."""
        heard = set().union(*(row.hears - {row.id} for row in self.rows.values()))
        out = [self.own]
        for q in sorted(self.rows):
            if q == self.me:
                continue
            if q in heard:
                self._unheard.pop(q, None)
            elif now - self._unheard.setdefault(q, now) > keep_ns:
                continue
            out.append(self.rows[q])
        return out


class _Part:
    """The rows of one packet, and how many bytes they take."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.named: set[MemberId] = set()
        self.views: set[ViewId] = set()
        self.size = PACKED_BYTES  # but for the bitmaps

    def bytes_with(self, row: Row) -> int:
        """How many there would be with this row, too."""
        names = len(self.named.union(row.hears, (row.id,)))
        return self.size + self._more(row) + (len(self.rows) + 1) * ((names + 7) // 8)

    def _more(self, row: Row) -> int:
        view = () if row.view in self.views else (row.view.seq, row.view.rep)
        numbers = (row.incarnation, row.version, *view, *({row.id, *row.hears} - self.named))
        return ROW_BYTES + len(view) // 2 + sum(map(number_bytes, numbers))

    def add(self, row: Row) -> None:
        self.size += self._more(row)
        self.named.update(row.hears, (row.id,))
        self.views.add(row.view)
        self.rows.append(row)


def pack(rows: list[Row], packet_bytes: int, head_bytes: int = HELLO_BYTES) -> Iterator[PackedRows]:
    """Rows for as few packets as hold them, beside `head_bytes` that are no rows; each packet can be read alone."""
    part = _Part()
    for row in rows:
        if part.rows and head_bytes + part.bytes_with(row) > packet_bytes:
            yield _pack(part.rows)
            part = _Part()
        part.add(row)
    yield _pack(part.rows)


def number_bytes(number: int) -> int:
    """What a number takes in MessagePack."""
    if number < 2**7:
        return 1
    if number < 2**8:
        return 2
    return 3 if number < 2**16 else 5 if number < 2**32 else 9


def _pack(rows: list[Row]) -> PackedRows:
    ids = sorted({row.id for row in rows}.union(*(row.hears for row in rows)))
    views = sorted({row.view for row in rows})
    bit = {q: index for index, q in enumerate(ids)}
    view_at = {view: index for index, view in enumerate(views)}
    size = (len(ids) + 7) // 8
    packed = []
    for row in rows:
        hears = sum(1 << bit[q] for q in row.hears).to_bytes(size, "little")
        packed.append(PackedRow(bit[row.id], row.incarnation, row.version, view_at[row.view], row.working, hears))
    return PackedRows(tuple(ids), tuple(views), tuple(packed))


def unpack(packed: PackedRows) -> Iterator[Row]:
    """The rows of a packet that passed its check."""
    ids = packed.ids
    for row in packed.rows:
        mask = int.from_bytes(row.hears, "little")
        hears = frozenset(q for index, q in enumerate(ids) if mask >> index & 1)
        yield Row(ids[row.member], row.incarnation, row.version, packed.views[row.view], row.working, hears)

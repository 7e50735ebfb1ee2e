"""A queue that is the same at every member: each item is given out once, or again when who took it is gone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from ordercast.replica.pieces import chunked
from ordercast.replica.replica import Replica, ordered
from ordercast.replica.shapes import encode
from ordercast.types import Peer

T = TypeVar("T")

FIELDS = {b"N": "_next", b"B": "_back", b"L": "_lent", b"I": "_items"}  # what a piece of a snapshot holds
SLACK = 1_024  # places of items given out that are kept before the list is cut


class Item(Struct, Generic[T], frozen=True):
    """What `take` gave: `done(number)` when it is dealt with."""

    number: int
    value: T


class Queue(Replica, Generic[T]):
    """First in, first out.  `get` hands an item out for good; `take` lends it until `done`, and gives it to another if
    its borrower leaves the group first."""

    _next: int = 1  # the number of the item to come
    _items: list[tuple[int, T]] = []  # noqa: RUF012 - a new one for each object
    _first: int = 0  # where the list begins; what is before was given out
    _back: list[tuple[int, T]] = []  # noqa: RUF012 - a new one for each object; given back, before all others, the oldest last
    _lent: dict[int, tuple[Peer, T, int]] = {}  # noqa: RUF012 - a new one for each object; to whom, what, its ticket

    # -------------------------------------------------------------------------------------------------------- reading

    def __len__(self) -> int:
        """Items that wait."""
        return len(self._items) - self._first + len(self._back)

    def lent(self) -> dict[int, int]:
        """Number of each item that was taken and is not done, and the member that has it."""
        return {number: peer.id for number, (peer, _, _) in self._lent.items()}

    # ------------------------------------------------------------------------------------------------------- changing

    @ordered
    def put(self, item: T) -> int:
        """At the end; its number."""
        self._items.append((self._next, item))
        self._next += 1
        return self._next - 1

    @ordered
    def get_nowait(self) -> Item[T] | None:
        """The first item, for good; None if there is none."""
        found = self._pop()
        return None if found is None else Item(*found)

    @ordered
    def take_nowait(self) -> Item[T] | None:
        """The first item, until it is done; None if there is none."""
        return self._lend(0)

    @ordered
    def _take(self, ticket: int) -> Item[T] | None:
        """As `take_nowait`, under a number by which it can be given back by who does not know what it got."""
        return self._lend(ticket)

    @ordered
    def _return(self, ticket: int) -> bool:
        """What was taken under this number goes to the front again; whether something was."""
        gone = [number for number, (peer, _, own) in self._lent.items() if (peer, own) == (self.caller, ticket)]
        self._give_back(gone)
        return bool(gone)

    def _lend(self, ticket: int) -> Item[T] | None:
        found = self._pop()
        if found is None:
            return None
        number, value = found
        self._lent[number] = self.caller, value, ticket
        return Item(number, value)

    @ordered
    def done(self, number: int) -> bool:
        """An item that was taken is dealt with; false if it was given to another meanwhile."""
        if number not in self._lent or self._lent[number][0] != self.caller:
            return False
        del self._lent[number]
        return True

    def left(self, peers: Sequence[Peer]) -> None:
        self._give_back([number for number, (peer, *_) in self._lent.items() if peer in peers])

    def _give_back(self, numbers: list[int]) -> None:
        self._back += [(number, self._lent.pop(number)[1]) for number in numbers]
        self._back.sort(key=lambda each: each[0], reverse=True)

    def _pop(self) -> tuple[int, T] | None:
        if self._back:
            return self._back.pop()
        if self._first == len(self._items):
            return None
        found = self._items[self._first]
        self._first += 1
        if self._first >= SLACK and 2 * self._first >= len(self._items):
            self._items = self._items[self._first :]
            self._first = 0
        return found

    # ------------------------------------------------------------------------------------------------------- waiting

    async def get(self, timeout: float | None = None) -> T:
        """The first item, for good; waits for one.  If its fate is unknown, so is the item's."""
        left = self._door("get").patience(timeout)
        while True:
            found = await self.get_nowait()
            if found is not None:
                return found.value
            await self.until(lambda: True if len(self) else None, left())

    async def take(self, timeout: float | None = None) -> Item[T]:
        """The first item, until it is done; waits for one.  Who is cancelled, or is not told what became of the call,
        has borrowed nothing."""
        ticket, left = self._door("take").ticket(), self._door("take").patience(timeout)
        while True:
            try:
                found = await self._take(ticket)
            except BaseException:
                self._surely(lambda: self._return(ticket))
                raise
            if found is not None:
                return found
            await self.until(lambda: True if len(self) else None, left())

    # ----------------------------------------------------------------------------------------------------- snapshots

    def snapshot(self) -> list[bytes]:
        return list(self._chunks(self._items[self._first :]))

    def _freeze(self) -> Iterator[bytes] | None:
        if self._here is None or self._methods.keys() != Queue._methods.keys():
            return None
        chunks = self._chunks(self._items[self._first :])
        head = next(chunks)
        return (chunk for part in ([head], chunks) for chunk in part)

    def _chunks(self, items: list[tuple[int, T]]) -> Iterator[bytes]:
        """Items never change, so a list of them is a copy."""
        head = [kind + encode(getattr(self, name)) for kind, name in FIELDS.items() if name != "_items"]
        yield from head
        yield from chunked(len(items), lambda a, b: b"I" + encode(items[a:b]))

    def restore(self, piece: bytes) -> None:
        name = FIELDS[piece[:1]]
        value = self._shape.readers[name](piece[1:])
        if name == "_items":
            self._items += value
        else:
            setattr(self, name, value)

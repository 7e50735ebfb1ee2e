"""A dictionary that is the same at every member."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, TypeVar
from weakref import ref

from msgspec import Struct

from ordercast.replica.pieces import chunked
from ordercast.replica.replica import Replica, ordered
from ordercast.replica.shapes import ATOMS, encode

K = TypeVar("K")
V = TypeVar("V")

_ABSENT: Any = object()


class Change(Struct, frozen=True):
    """A key has another value; None: it is, or was, not there."""

    key: Any
    before: Any
    after: Any


class Dict(Replica, Generic[K, V]):
    """Reads are local; `set`, `delete`, `update`, `compare_and_set` are ordered.  None is no value."""

    _items: dict[K, V] = {}  # noqa: RUF012 - a new one for each object

    # -------------------------------------------------------------------------------------------------------- reading

    def get(self, key: K, default: V | None = None) -> V | None:
        value = self._items.get(key, _ABSENT)
        return default if value is _ABSENT else self._copied(key, value)

    def __getitem__(self, key: K) -> V:
        value: V = self._copied(key, self._items[key])
        return value

    def __contains__(self, key: object) -> bool:
        return key in self._items

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[K]:
        return iter(list(self._items))

    def items(self) -> dict[K, V]:
        """All of it, as an ordinary dictionary of the caller's own."""
        return {key: self._copied(key, value) for key, value in self._items.items()}

    def watch(self, key: K | None = None) -> Any:
        """`async for change in d.watch()`: every change from now on, or those of one key, once and in order.  After
        another state took this one's place, what differs comes as changes."""
        return self.told(lambda change: key is None or change.key == key)

    # -------------------------------------------------------------------------------------------------------- changing

    @ordered
    def set(self, key: K, value: V) -> None:
        self._put(key, value)

    @ordered
    def update(self, items: dict[K, V]) -> None:
        """Several keys at once: nobody sees some without the others."""
        for key, value in items.items():
            self._put(key, value)

    @ordered
    def delete(self, key: K) -> bool:
        """Whether it was there."""
        found = key in self._items
        if found:
            self._put(key, None)
        return found

    @ordered
    def compare_and_set(self, key: K, expected: V | None, value: V | None) -> bool:
        """Set it if its value is as expected, and tell whether it was.  None: not there, and to be deleted."""
        if self._items.get(key) != expected:
            return False
        self._put(key, value)
        return True

    def _put(self, key: K, value: V | None) -> None:
        here = self._here
        assert here is not None
        if here.frozen:
            self._save(key)
        if here.listeners:
            self.tell(Change(key, self._copied(key, self._items.get(key)), self._copied(key, value)))
        if value is None:
            self._items.pop(key, None)
        else:
            self._items[key] = value

    def _copied(self, key: K, value: Any) -> Any:
        """What leaves the object may be changed by who gets it."""
        return value if type(value) in ATOMS else self._shape.readers["_items"](encode({key: value}))[key]

    # ----------------------------------------------------------------------------------------------------- snapshots

    def snapshot(self) -> list[bytes]:
        return list(_Old(self._items).chunks())

    def restore(self, piece: bytes) -> None:
        self._items.update(self._shape.readers["_items"](piece))

    def _freeze(self) -> Iterator[bytes] | None:
        here = self._here
        if here is None or self._methods.keys() != Dict._methods.keys():
            return None  # a class with methods of its own may change a value in place
        old = _Old(self._items)
        here.frozen.append(ref(old))
        return old.chunks()

    def _save(self, key: K) -> None:
        """It is about to change: snapshots that have not come to it keep what it was."""
        here = self._here
        assert here is not None
        alive = [(each, old) for each in here.frozen if (old := each()) is not None and not old.done]
        for _, old in alive:
            old.saved.setdefault(key, self._items.get(key, _ABSENT))
        here.frozen = [each for each, _ in alive]

    def _taken_over(self, old: Dict[K, V]) -> None:
        before, after = old._items, self._items
        differ = [key for key, value in before.items() if after.get(key, _ABSENT) != value]
        for key in differ + [key for key in after if key not in before]:
            self.tell(Change(key, self._copied(key, before.get(key)), self._copied(key, after.get(key))))

    def _bytes_held(self) -> int:
        return 64 * len(self._items)


class _Old:
    """A dictionary as it was, read slowly while it changes."""

    __slots__ = ("__weakref__", "_items", "_keys", "done", "saved")

    def __init__(self, items: dict[Any, Any]) -> None:
        self._items, self._keys = items, list(items)
        self.saved: dict[Any, Any] = {}  # what was changed since
        self.done = False

    def chunks(self) -> Iterator[bytes]:
        items, saved, keys = self._items, self.saved, self._keys

        def encoded(a: int, b: int) -> bytes:
            return encode({key: saved[key] if key in saved else items[key] for key in keys[a:b]})

        yield from chunked(len(keys), encoded)
        self.done = True

"""The keys a member has: at most two that it opens datagrams with, one of which it seals its own with."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ordercast.limits import KEYS_MAX
from ordercast.wire.seal import CHACHA, GroupKey


class KeyRing:
    """`number` says how often the group has changed the key it speaks with, as far as this member knows."""

    def __init__(self, keys: Sequence[GroupKey], sends: str, number: int = 0) -> None:
        assert 1 <= len(keys) <= KEYS_MAX and sends in [key.name for key in keys]
        self._keys = {key.id: key for key in keys}
        assert len(self._keys) == len(keys)
        self.sends = next(key for key in keys if key.name == sends)
        self.number = number
        self.used: Callable[[GroupKey], None] = lambda key: None  # another one is to be spoken with
        self.dropped: Callable[[GroupKey], None] = lambda key: None

    def find(self, key_id: int) -> GroupKey | None:
        """The key that a header names."""
        return self._keys.get(key_id & ~CHACHA)

    def named(self, name: str) -> GroupKey | None:
        return next((key for key in self._keys.values() if key.name == name), None)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted(key.name for key in self._keys.values()))

    def add(self, key: GroupKey) -> str:
        """Open datagrams with this one as well; why not, or nothing."""
        if self.named(key.name) is not None:
            return ""
        if key.id in self._keys:
            return f"key {key.name} looks like {self._keys[key.id].name} in a datagram's header: make another one"
        if len(self._keys) >= KEYS_MAX:
            return f"holds {' and '.join(self.names)} already: drop one first"
        self._keys[key.id] = key
        return ""

    def use(self, name: str, number: int) -> str:
        key = self.named(name)
        if key is None:
            return f"lacks key {name}"
        self.number = max(self.number, number)
        if key is not self.sends:
            self.sends = key
            self.used(key)
        return ""

    def drop(self, name: str) -> str:
        key = self.named(name)
        if key is None:
            return ""
        if key is self.sends:
            return f"speaks with key {name}: use another one first"
        del self._keys[key.id]
        self.dropped(key)
        return ""

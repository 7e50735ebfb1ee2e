"""How one member's datagrams are sealed and opened: its keys, the guard at its door, other keys while it runs."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ordercast import keyfiles
from ordercast.drivers.guard import Guard
from ordercast.drivers.keyring import KeyRing
from ordercast.drivers.rotation import Rotation
from ordercast.errors import UsageError
from ordercast.live.storage import Storage
from ordercast.types import Identity, MemberId, Nanoseconds, Peer
from ordercast.wire.seal import GroupKey, Sealer

if TYPE_CHECKING:
    from ordercast.drivers.incoming import Incoming
    from ordercast.live.outgoing import Outgoing

STORED = "keys"  # the driver's own key of what is stored: which keys this member has, by name
LACKED_NS = 60_000_000_000  # so long it is told that somebody speaks with a key that is not here
_logger = logging.getLogger("ordercast")


class Kept(msgspec.Struct, frozen=True, array_like=True):
    """What is stored of a rotation; the bytes of keys never are."""

    holds: tuple[str, ...]
    sends: str
    dropped: tuple[str, ...] = ()


class Sealing:
    """Of one life of a member.  `file` is the key of its configuration; others are looked for beside it."""

    def __init__(
        self,
        file: Path,
        identity: Identity,
        storage: Storage,
        hears_self: bool,
        hosts: Mapping[MemberId, Collection[str]],
    ) -> None:
        self._file, self._storage = file, storage
        self._group, self._me = identity.group, Peer(identity.me, identity.incarnation)
        self._kept, number = _kept(storage)
        self.ring = _ring(file, self._kept.holds, self._kept.sends, self._kept.dropped, number)
        self.guard = Guard(self.ring, identity, hears_self, hosts)
        self.rotation = Rotation(self.ring, self._find, self._changed)
        self._chacha = not _has_aes()

    def attach(self, incoming: Incoming, outgoing: Outgoing) -> None:
        """Seal what goes out, and follow the ring when it changes."""

        def used(key: GroupKey) -> None:
            outgoing.flush()
            outgoing.sealer = Sealer(key, self._group, self._me, self._chacha)

        def dropped(key: GroupKey) -> None:
            self.guard.forget_key(key.id)
            incoming.admission.forget_key(key.id)

        self.ring.used, self.ring.dropped = used, dropped
        used(self.ring.sends)

    def _find(self, name: str) -> GroupKey | str:
        found = keyfiles.beside(self._file).get(name)
        return found if found is not None else f"has no file *.key with key {name} beside its configuration"

    def _changed(self) -> None:
        ring, gone = self.ring, set(self._kept.holds) | set(self._kept.dropped)
        self._kept = Kept(ring.names, ring.sends.name, tuple(sorted(gone - set(ring.names)))[-8:])
        self._storage.write_later(STORED, ring.number, msgspec.msgpack.encode(self._kept), _stored)

    # --------------------------------------------------------------------------------------------------------- status

    def status(self) -> dict[str, Any]:
        return {"sends": self.ring.sends.name, "holds": list(self.ring.names), "changes": self.ring.number}

    def waits(self, now: Nanoseconds) -> list[str]:
        """Which keys this member lacks, in words."""
        if self.rotation.lacks:
            return [f"key: {self.rotation.lacks}, with which others speak: expected its file beside group.toml"]
        recent = [str(id) for id, at in sorted(self.guard.lacks.items()) if now - at < LACKED_NS]
        if not recent:
            return []
        what = f"somebody speaks with a key that is not here (its id is {', '.join(recent)})"
        return [f"key: {what}: if the group's key was changed, its file is expected here"]


def _kept(storage: Storage) -> tuple[Kept, int]:
    number, data = storage.store.stored.pop(STORED, (0, b""))
    try:
        return msgspec.msgpack.decode(data, type=Kept), number
    except msgspec.MsgspecError:
        return Kept((), ""), 0


def _stored(key: str, number: int, why: str) -> None:
    if why:
        _logger.warning("ordercast: which keys are in use cannot be stored: %s", why)


def _ring(file: Path, holds: tuple[str, ...], sends: str, dropped: tuple[str, ...], number: int) -> KeyRing:
    """The keys a member starts with: that of its configuration, or those it had when the group last changed them.

    What was stored counts as long as the file is one of those it tells of; another file is the operator's word.
    """
    own = keyfiles.read(file)
    if own.name not in (*holds, *dropped):
        return KeyRing([own], own.name)
    known = keyfiles.beside(file)
    if sends not in known:
        raise UsageError(f"{file}: the group speaks with key {sends} by now: expected its file beside {file.name}")
    return KeyRing([known[name] for name in holds if name in known], sends, number)


def _has_aes() -> bool:
    """Whether this machine's processor knows AES; in doubt it does."""
    try:
        words = Path("/proc/cpuinfo").read_text().split()
    except OSError:
        return True
    return "aes" in words or not {"flags", "Features"} & set(words)

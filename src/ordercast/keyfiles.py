"""Files of keys: 32 random bytes that only their owner may read.  What is wrong with one is told, its content never."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from ordercast.errors import UsageError
from ordercast.limits import KEY_BYTES

if TYPE_CHECKING:
    from ordercast.wire.seal import GroupKey

SUFFIX = ".key"
TRIES = 1_000  # there are 127 ids
MAKE = "`ordercast keygen {}` makes one"


def write(path: Path, force: bool = False) -> GroupKey:
    """A new key into a new file; its id in headers is none of those beside it, which it may have to follow."""
    if path.is_dir():
        raise UsageError(f"{path}: is a directory: expected a file such as {path / 'group.key'}")
    taken = {key.id for key in beside(path).values()}
    secret = secrets.token_bytes(KEY_BYTES)
    for _ in range(TRIES):
        if _key(secret).id not in taken:
            break
        secret = secrets.token_bytes(KEY_BYTES)
    try:
        if force:
            path.unlink(missing_ok=True)
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise UsageError(f"{path}: is there already: expected a new name; whoever has the old key needs it") from None
    except OSError as why:
        raise UsageError(f"{path}: cannot be written ({(why.strerror or '').lower()})") from None
    try:
        with open(number, "wb") as file:
            os.fchmod(number, 0o600)
            file.write(secret)
            file.flush()
            os.fsync(number)
    except OSError as why:
        path.unlink(missing_ok=True)  # half a key would be in the way of a whole one
        raise UsageError(f"{path}: cannot be written ({(why.strerror or '').lower()})") from None
    return _key(secret)


def fault(path: Path) -> str:
    """What is wrong with a file of a key, or nothing."""
    found = _read(path)
    return found if isinstance(found, str) else ""


def read(path: Path) -> GroupKey:
    found = _read(path)
    if isinstance(found, str):
        raise UsageError(f"{path}: {found}")
    return _key(found)


def _read(path: Path) -> bytes | str:
    try:
        number = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return f"no such file: expected a key of {KEY_BYTES} bytes; {MAKE.format(path.name)}"
    except OSError as why:
        return f"cannot be read ({(why.strerror or '').lower()}): expected a key of {KEY_BYTES} bytes"
    about = os.fstat(number)
    if not stat.S_ISREG(about.st_mode):
        os.close(number)
        return f"is no file: expected a key of {KEY_BYTES} bytes"
    with open(number, "rb") as file:
        if about.st_mode & 0o077:
            return f"others than its owner may read or write it: expected mode 0600 (chmod 600 {path.name})"
        secret = file.read(KEY_BYTES + 1)
    if len(secret) != KEY_BYTES:
        size = f"{about.st_size} bytes"
        return f"holds {size}: expected a key of {KEY_BYTES} bytes; {MAKE.format(path.name)}"
    return secret


def beside(file: Path) -> dict[str, GroupKey]:
    """All usable keys in the folder of one, by name."""
    found: dict[str, GroupKey] = {}
    for path in sorted({file, *file.parent.glob("*" + SUFFIX)}):
        secret = _read(path)
        if isinstance(secret, bytes):
            key = _key(secret)
            found[key.name] = key
    return found


def _key(secret: bytes) -> GroupKey:
    from ordercast.wire.seal import GroupKey  # commands that only look at files start without cryptography

    return GroupKey(secret)

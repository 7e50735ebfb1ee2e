"""Files that a person names: opened only if they are regular, read only up to a size that was meant.

A pipe would be waited for, a device never ends: neither is a file that holds something.  What is wrong is an OSError
whose `strerror` says it, so that it is told in the sentence that tells of any file that cannot be read.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import BinaryIO

TEXT_BYTES_MAX = 2**24  # what a person, or a small program, wrote
DATA_BYTES_MAX = 2**36  # what a run wrote and is read whole


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError as why:  # a NUL in the name
        raise OSError(errno.EINVAL, str(why)) from None
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(errno.EINVAL, "is a directory" if os.path.isdir(path) else "is not a regular file")
    return os.fdopen(number, "rb")


def read(path: str | os.PathLike[str], bytes_max: int = TEXT_BYTES_MAX) -> bytes:
    """All of it."""
    with open_regular(path) as file:
        if os.fstat(file.fileno()).st_size > bytes_max:
            raise OSError(errno.EFBIG, f"is larger than {bytes_max} bytes")
        return file.read()


def text(path: str | os.PathLike[str], bytes_max: int = TEXT_BYTES_MAX) -> str:
    """All of it, as UTF-8; UnicodeDecodeError if it is not."""
    return read(path, bytes_max).decode()

"""A trace that does not grow without end: a life's rows go into several files, and a member's oldest files go.

A file that begins when older ones went says so in its header (`gone`), before they go: whoever judges the trace knows
that it is not whole.  It also repeats the life's wall clock, whose start row may be among what went.
"""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

from msgspec import structs

from ordercast.errors import RunError, TraceError
from ordercast.trace.reader import RowReader
from ordercast.trace.rows import SIDE_SUFFIX, SUFFIX, file_name
from ordercast.trace.schema import Header

FILES = 8  # that a member's trace is divided into
SLACK_BYTES = 1 << 14  # a file may be longer by the last detail in it
_NAME = re.compile(rf"member-(\d+)-(\d+)(?:\.(\d+))?{re.escape(SUFFIX)}")


class Keep:
    """The row files of one member, of which the newest `keep_bytes` are kept."""

    def __init__(self, directory: Path, header: Header, member: int, incarnation: int, keep_bytes: int) -> None:
        self.directory, self.header, self.keep_bytes = directory, header, keep_bytes
        self.member, self.incarnation = member, incarnation
        self.file_bytes = keep_bytes // FILES - SLACK_BYTES  # of a row file and what is beside it
        self._number = -1
        self._doomed: list[Path] = []

    def begin(self, offset_ns: int | None) -> tuple[Path, Header]:
        """The next file, and what it says; `offset_ns`: the wall clock less time_ns, where it is known."""
        self._number += 1
        files = self._files()
        room, first = self.keep_bytes - self.keep_bytes // FILES, len(files)
        for file in reversed(files):
            room -= _size(file)
            if room < 0:
                break
            first -= 1
        self._doomed, left = files[:first], files[first:]
        path = self.directory / file_name(self.member, self.incarnation, self._number)
        gone = self._told(files)
        if self._doomed or gone:
            gone |= {str(self.member): (left[0] if left else path).name}
        life = f"{self.member}-{self.incarnation}"
        walls = {} if offset_ns is None else {life: offset_ns}
        return path, structs.replace(self.header, gone=gone, walls_ns=walls)

    def begun(self) -> None:
        """The file is there: the oldest may go."""
        for path in self._doomed:
            for file in (path.with_suffix(SIDE_SUFFIX), path):
                try:
                    file.unlink(missing_ok=True)
                except OSError as why:
                    raise RunError(f"cannot remove the trace file {file}: {why.strerror or why}") from why

    def _files(self) -> list[Path]:
        """This member's, the oldest first."""
        found: list[tuple[int, int, Path]] = []
        if self.directory.is_dir():
            for path in self.directory.iterdir():
                name = _NAME.fullmatch(path.name)
                if name and int(name[1]) == self.member:
                    found.append((int(name[2]), int(name[3] or 0), path))
        return [path for *_, path in sorted(found)]

    def _told(self, files: list[Path]) -> dict[str, str]:
        """What the newest of these that can be read says of this member's older ones."""
        for path in reversed(files):
            try:
                return {name: first for name, first in RowReader(path).header.gone.items() if name == str(self.member)}
            except TraceError:
                continue
        return {}


def _size(path: Path) -> int:
    size = 0
    for file in (path, path.with_suffix(SIDE_SUFFIX)):
        with contextlib.suppress(OSError):  # somebody else removed it
            size += file.stat().st_size
    return size

"""A member's files that grow (`ordercast.filing`), in a folder of their own; all of it in the storing thread.

A flush covers every file that was written since the last one, and the folder's names.  Whatever fails is told by the
next flush: nobody knows then what the files hold.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from ordercast.contract import Action
from ordercast.drivers.store import why
from ordercast.filing import Append, Remove, Rename
from ordercast.state.records import UNREADABLE


class Found(Mapping[str, bytes]):
    """The files in a folder, read when they are asked for; one that cannot be read is damaged."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __getitem__(self, name: str) -> bytes:
        path = self.folder / name
        if not path.is_file():
            raise KeyError(name)
        try:
            return path.read_bytes()
        except OSError:
            return UNREADABLE

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(path.name for path in self.folder.iterdir())) if self.folder.is_dir() else iter(())

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Filing:
    """Does what a core says, in its order."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._open: dict[str, int] = {}  # files that grow
        self._dirty: set[str] = set()
        self._named = False  # names have changed since the last flush
        self._made: set[Path] = set()  # folders in which one was made since
        self._fault = ""

    def do(self, action: Action) -> None:
        try:
            if isinstance(action, Append):
                self._append(action.file, action.data)
            elif isinstance(action, Rename):
                self._close(action.file)
                os.replace(self.folder / action.file, self.folder / action.to)
                self._named = True
            elif isinstance(action, Remove):
                self._close(action.file)
                (self.folder / action.file).unlink(missing_ok=True)
                self._named = True
        except OSError as fault:
            self._fault = self._fault or why(fault)

    def sync(self) -> str:
        """Flush; why it failed, or nothing."""
        fault, self._fault = self._fault, ""
        if fault:
            self.close()
            return fault
        try:
            for name in sorted(self._dirty):
                os.fdatasync(self._open[name])
            self._dirty.clear()
            if self._named:
                self._flush_names()
        except OSError as failed:
            self.close()
            return why(failed)
        return ""

    def _append(self, name: str, data: bytes) -> None:
        if name not in self._open:
            self._make()
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            self._open[name] = os.open(self.folder / name, flags, 0o644)
            self._named = True
        view = memoryview(data)
        while view:
            view = view[os.write(self._open[name], view) :]
        self._dirty.add(name)

    def _make(self) -> None:
        """The folder, and those it is in; their names have to be flushed, too."""
        missing = [folder for folder in (self.folder, *self.folder.parents) if not folder.exists()]
        self.folder.mkdir(parents=True, exist_ok=True)
        self._made.update(folder.parent for folder in missing)

    def _flush_names(self) -> None:
        for path in (self.folder, *sorted(self._made)):
            folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        self._named = False
        self._made.clear()

    def _close(self, name: str) -> None:
        """Nothing more is appended under this name; what was, is flushed."""
        file = self._open.pop(name, None)
        if file is None:
            return
        try:
            if name in self._dirty:
                os.fdatasync(file)
        finally:
            self._dirty.discard(name)
            os.close(file)

    def close(self) -> None:
        for file in self._open.values():
            os.close(file)
        self._open.clear()
        self._dirty.clear()

"""Files of a simulated disk that grow (`ordercast.filing`): what is certain of them, and what a crash leaves."""

from __future__ import annotations

from random import Random

from ordercast.contract import Action
from ordercast.filing import Append, Remove, Rename

Certain = dict[str, tuple[bytearray, int]]  # by name: the file, and how much of it


class Files:
    """What the process wrote, and what of that is on disk for certain."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._files: dict[str, bytearray] = {}
        self.certain: Certain = {}
        self.fault = ""  # why something since the last flush was not done

    def found(self) -> dict[str, bytes]:
        """What a process that starts reads."""
        return {name: bytes(data) for name, data in self._files.items()}

    def do(self, action: Action, fault: str) -> None:
        """In its order; `fault`: why the disk does nothing at present."""
        if fault:
            self.fault = fault
        elif isinstance(action, Append):
            self._files.setdefault(action.file, bytearray()).extend(action.data)
        elif isinstance(action, Rename):
            if action.file in self._files:
                self._files[action.to] = self._files.pop(action.file)
        elif isinstance(action, Remove):
            self._files.pop(action.file, None)

    def flush(self) -> Certain:
        """A flush begins: what it covers."""
        return {name: (data, len(data)) for name, data in self._files.items()}

    def flushed(self, covered: Certain) -> str:
        """It is done; why not."""
        fault, self.fault = self.fault, ""
        if not fault:
            self.certain = covered
        return fault

    def crash(self, *, torn: bool, flip: bool) -> None:
        """All that is certain is left, or more of it: whole writes, or with `torn` up to any byte."""
        if not self._files and not self.certain:
            return
        draw = self._random
        certain = {name: bytearray(data[:size]) for name, (data, size) in self.certain.items()}
        if draw.random() < 0.5:
            later = self._files
            sizes = {name: size for name, (_, size) in self.certain.items()}
            for name, data in later.items():
                least = min(sizes.get(name, 0), len(data))
                certain[name] = data[: draw.randint(least, len(data))] if torn else data
        if flip:
            for name in sorted(certain):
                if certain[name] and draw.random() < 0.5:
                    place = draw.randrange(8 * len(certain[name]))
                    certain[name][place // 8] ^= 1 << place % 8
        self._files, self.fault = certain, ""
        self.certain = self.flush()

    def wipe(self) -> None:
        self._files, self.certain, self.fault = {}, {}, ""

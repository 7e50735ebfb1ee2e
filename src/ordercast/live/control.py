"""Asking a running member: a Unix socket in its state directory answers each connection with its status, once.

Only who may enter the directory can ask, and there is nothing to command.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

NAME = "status.sock"
ANSWER_SECONDS = 2.0


class Control:
    """The answering side."""

    def __init__(self, folder: Path, status: Callable[[], dict[str, Any]]) -> None:
        self.path, self._status = folder / NAME, status
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            self.path.unlink()  # of an earlier life; the directory's lock says that nobody else lives here
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with _short(self.path) as name:
            sock.bind(name)
        os.chmod(self.path, 0o600)
        self._server = await asyncio.start_unix_server(self._answer, sock=sock)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            writer.write(json.dumps(self._status()).encode())
            await writer.drain()
        except (ConnectionError, BrokenPipeError):
            return  # who asked has gone
        finally:
            writer.close()

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
            with contextlib.suppress(OSError):
                self.path.unlink()


def ask(folder: Path) -> dict[str, Any] | str:
    """A running member's status, or why there is none."""
    path = folder / NAME
    if not path.exists():
        return "not running"
    answer = b""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(ANSWER_SECONDS)
        try:
            with _short(path) as name:
                sock.connect(name)
            while piece := sock.recv(65536):
                answer += piece
        except ConnectionRefusedError:
            return "not running (it ended without saying good-bye)"
        except TimeoutError:
            return "does not answer (paused, or too busy)"
        except OSError as why:
            return f"cannot be asked: {(why.strerror or str(why)).lower()}"
    try:
        status: dict[str, Any] = json.loads(answer)
    except ValueError:
        return "gave no complete answer (it was just ending)"
    return status


class _short:
    """A name for a socket that is short enough for the kernel (107 bytes) wherever the directory is."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> str:
        self._folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        return f"/proc/self/fd/{self._folder}/{self._path.name}"

    def __exit__(self, *_: object) -> None:
        os.close(self._folder)

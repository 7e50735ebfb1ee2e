"""Asking a running member: a Unix socket in its state directory answers each connection with its status, once.

Another one takes orders (another key for the group), one JSON object per connection.  Only who may enter the directory
can ask, and only the member's own user can order.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

NAME, ORDERS = "status.sock", "orders.sock"
ANSWER_SECONDS, ORDER_SECONDS = 2.0, 30.0
ORDER_BYTES_MAX = 65_536
Order = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]


class Control:
    """The answering side."""

    def __init__(self, folder: Path, status: Callable[[], dict[str, Any]], order: Order) -> None:
        self._folder, self._status, self._order = folder, status, order
        self._servers: list[tuple[Path, asyncio.Server]] = []

    async def start(self) -> None:
        for name, answer in ((NAME, self._answer), (ORDERS, self._obey)):
            path = self._folder / name
            with contextlib.suppress(FileNotFoundError):
                path.unlink()  # of an earlier life; the directory's lock says that nobody else lives here
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            with _short(path) as short:
                sock.bind(short)
            os.chmod(path, 0o600)
            self._servers.append((path, await asyncio.start_unix_server(answer, sock=sock)))

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            writer.write(json.dumps(self._status()).encode())
            await writer.drain()
        except (ConnectionError, BrokenPipeError):
            return  # who asked has gone
        finally:
            writer.close()

    async def _obey(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                words = json.loads(await reader.read(ORDER_BYTES_MAX))
            writer.write(json.dumps(await self._order(words if isinstance(words, dict) else {})).encode())
            await writer.drain()
        except (OSError, TimeoutError, ValueError, RecursionError):
            return  # who ordered has gone, or said nothing that can be understood
        finally:
            writer.close()

    def close(self) -> None:
        for path, server in self._servers:
            server.close()
            with contextlib.suppress(OSError):
                path.unlink()
        self._servers.clear()


def ask(folder: Path) -> dict[str, Any] | str:
    """A running member's status, or why there is none."""
    return _exchange(folder / NAME, b"", ANSWER_SECONDS)


def order(folder: Path, words: dict[str, Any]) -> dict[str, Any] | str:
    """What a running member answers to an order, or why it does not."""
    return _exchange(folder / ORDERS, json.dumps(words).encode(), ORDER_SECONDS)


def _exchange(path: Path, said: bytes, seconds: float) -> dict[str, Any] | str:
    if not path.exists():
        return "not running"
    answer = b""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(seconds)
        try:
            with _short(path) as name:
                sock.connect(name)
            if said:
                sock.sendall(said)
                sock.shutdown(socket.SHUT_WR)
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

"""Standard input of a member: read in a thread of its own, since it may be a terminal, a pipe or a file, and handed to
the event loop in pieces of whole lines, so that a line costs little."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from ordercast.errors import Closed, OrdercastError

PIECE_BYTES = 1 << 16
PIECES_AHEAD = 4  # that the thread reads while the group is busy


def read_lines(handle: Callable[[list[bytes]], Any], closed: Callable[[], Any]) -> None:
    """Call `handle` with the next lines of standard input, in a thread of its own, then `closed`."""

    def work() -> None:
        begun: list[bytes] = []  # pieces of a line that has not ended yet
        while True:
            try:
                piece = os.read(0, PIECE_BYTES)  # not through sys.stdin, whose lock would be held at the end
            except OSError:
                piece = b""
            if not piece:
                break
            first, *lines = piece.split(b"\n")
            begun.append(first)
            if lines:
                handle([b"".join(begun), *lines[:-1]])
                begun = lines[-1:]
        if any(begun):
            handle([b"".join(begun)])
        closed()

    threading.Thread(target=work, name="ordercast-stdin", daemon=True).start()


async def pieces() -> AsyncIterator[list[bytes]]:
    """The lines of standard input, many at a time; a loop that does not ask for more makes the thread wait."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[list[bytes] | None] = asyncio.Queue()
    room = threading.Semaphore(PIECES_AHEAD)

    def put(lines: list[bytes] | None) -> None:
        room.acquire()
        try:
            loop.call_soon_threadsafe(queue.put_nowait, lines)
        except RuntimeError:
            sys.exit()  # the event loop has ended, and with it the use of this thread

    read_lines(put, lambda: put(None))
    while (lines := await queue.get()) is not None:
        yield lines
        room.release()


async def feed(send_batch: Callable[[list[bytes]], Awaitable[Any]]) -> None:
    """Each line becomes a message; a full group makes the reader wait.  What cannot be sent is told."""
    number = 0  # lines that were sent, or told of
    async for lines in pieces():
        messages = [line.removesuffix(b"\r") for line in lines]
        try:
            number += await _send(send_batch, messages, number)
        except (Closed, asyncio.CancelledError) as why:
            _tell(f"line {number + 1} of standard input and those after it were not sent: the group was left")
            if isinstance(why, asyncio.CancelledError):
                raise
            return


async def _send(send_batch: Callable[[list[bytes]], Awaitable[Any]], messages: list[bytes], before: int) -> int:
    """All at once; if some cannot be sent, one by one, so that those are named."""
    try:
        await send_batch(messages)
    except Closed:
        raise
    except (OrdercastError, ValueError) as why:
        if len(messages) == 1:
            _tell(f"line {before + 1} of standard input was not sent: {why}")
        else:
            for k, message in enumerate(messages):
                await _send(send_batch, [message], before + k)
    return len(messages)


def _tell(text: str) -> None:
    print(f"ordercast: {text}", file=sys.stderr, flush=True)

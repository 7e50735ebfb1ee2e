"""Calling something now and then while a job runs."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def watching(look: Callable[[], None], every_s: float = 0.5) -> Iterator[None]:
    """Call `look` every so often in another thread, and once more at the end."""
    over = threading.Event()

    def loop() -> None:
        while not over.wait(every_s):
            look()

    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        look()

"""The thread in which a member lives: whoever waits for it as it ends is told, and nobody waits for ever."""

from __future__ import annotations

import asyncio
import threading

import pytest

from ordercast.blocking import Object, Thread
from ordercast.errors import Closed, UsageError
from ordercast.replica.counter import Counter
from ordercast.replica.dict import Dict


def test_who_waits_as_the_group_is_left_hears_of_it() -> None:
    thread = Thread("member")
    begun, heard = threading.Event(), []

    async def for_ever() -> None:
        begun.set()
        await asyncio.Event().wait()

    def wait() -> None:
        with pytest.raises(Closed, match="the group was left"):
            thread.wait(for_ever())
        heard.append(True)

    other = threading.Thread(target=wait, daemon=True)
    other.start()
    assert begun.wait(10)
    thread.stop()
    other.join(10)
    assert heard == [True]


def test_calls_from_many_threads_while_the_group_is_left_all_end() -> None:
    thread = Thread("member")
    ended = []

    def call() -> None:
        try:
            while True:
                thread.wait(asyncio.sleep(0))
        except Closed:
            ended.append(True)

    others = [threading.Thread(target=call, daemon=True) for _ in range(8)]
    for other in others:
        other.start()
    thread.stop()
    for other in others:
        other.join(10)
    assert ended == [True] * 8


def test_a_field_is_not_set_from_outside_and_what_is_there_stays_readable() -> None:
    thread = Thread("member")
    counter, d = Object(thread, Counter(3)), Object(thread, Dict[str, int]())
    counter.value = 4  # it is in no group yet
    assert counter._object.value == 4
    with pytest.raises(UsageError, match="not annotated in the class"):
        counter.colour = "red"
    thread.stop()
    assert counter.value == 4 and d.get("a") is None and len(d) == 0 and d.items() == {}
    with pytest.raises(Closed):
        d.sync()

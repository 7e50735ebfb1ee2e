"""What callers hear when a view changes, a reader fails, or an object comes into being anew; what is taken back."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from bus import everywhere, three

from ordercast.errors import FateUnknown, NotPrimary
from ordercast.replica.counter import Counter
from ordercast.replica.dict import Change, Dict
from ordercast.replica.lock import Lock
from ordercast.replica.queue import Queue
from ordercast.state import machine


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 10))


async def turns(count: int = 10) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_a_reader_that_fails_changes_no_state() -> None:
    """What `told` is given to choose by is this program's: if it raises, the method goes on as everywhere."""

    async def work() -> None:
        bus, members = three()
        one, two, _ = await everywhere(members, "d", Dict[str, int])

        def wanted(change: Change) -> bool:
            return bool(1 / change.after)

        watch, other = one.told(wanted), one.watch()
        await two.update({"a": 1, "b": 0, "c": 2})
        assert one.items() == two.items() == {"a": 1, "b": 0, "c": 2}
        bus.same()
        assert (await anext(watch)).key == "a"
        with pytest.raises(ZeroDivisionError):
            await anext(watch)
        assert [(await anext(other)).key for _ in range(3)] == ["a", "b", "c"], "others hear all of it"

    run(work())


def test_a_watch_outlives_an_object_that_comes_into_being_anew() -> None:
    """A state is taken over that does not have the object: it is brought again, and who watches it goes on."""

    async def work() -> None:
        bus, members = three()
        one, two, _ = members
        bus.leave(one)
        bus.leave(two)
        bus.members = [two]
        bus.present()
        mine = await two.have("d", Dict[str, int]())
        await mine.set("a", 1)
        watch = mine.watch()
        bus.members = [one, two]
        two.take_over(one)
        await turns()
        await mine.set("b", 2)
        assert mine.items() == {"a": 1, "b": 2}
        assert await anext(watch) == Change("b", None, 2)

    run(work())


@pytest.mark.parametrize("fate", ["unknown", "not primary"])
def test_a_wish_for_a_lock_is_taken_back_whatever_becomes_of_the_call(fate: str) -> None:
    async def work() -> None:
        bus, members = three()
        one, two, three_ = await everywhere(members, "l", Lock)
        fence = await one.acquire()
        wish = asyncio.ensure_future(two.acquire())
        await turns()
        assert len(one._line.waiting) == 1
        bus.refuse, bus.held = ("not primary", False) if fate == "not primary" else ("", True)
        wish.cancel()
        await turns()
        bus.forget()  # the view changed
        bus.refuse, bus.held = "", False
        bus.present()
        await turns()
        assert await one.release(fence)
        assert await three_.try_acquire() == fence + 1, "nobody else wants it"

    run(work())


@pytest.mark.parametrize("fate", ["unknown", "not primary"])
def test_a_lock_that_was_left_is_given_up_though_the_call_was_not_applied(fate: str) -> None:
    async def work() -> None:
        bus, members = three()
        one, two, _ = await everywhere(members, "l", Lock)
        with pytest.raises((FateUnknown, NotPrimary)):
            async with one:
                bus.refuse, bus.held = ("not primary", False) if fate == "not primary" else ("", True)
                asyncio.get_running_loop().call_later(0.01, bus.forget)
        bus.refuse, bus.held = "", False
        bus.present()
        await turns()
        assert await two.try_acquire() == 2

    run(work())


def test_an_object_that_comes_into_being_anew_gives_no_ticket_twice() -> None:
    """Its state may hold wishes of before: who asks now is not taken for one of them."""

    async def work() -> None:
        bus, (one, two, _) = three()
        bus.members = [two]
        bus.present()
        lock = await two.have("l", Lock())
        assert await lock.acquire() == 1
        bus.members = [one, two]
        two.take_over(one)
        await turns()
        assert lock.owner == 2, "as it was here"
        assert await lock.try_acquire() == 0

    run(work())


@pytest.mark.parametrize("fate", ["cancelled", "unknown"])
def test_an_item_that_was_taken_and_never_handed_out_goes_back(fate: str) -> None:
    """The call is applied, and its caller does not hear of it: another gets the item, before all others."""

    async def work() -> None:
        bus, members = three()
        one, two, _ = await everywhere(members, "q", Queue[str])
        await one.put("a")
        await one.put("b")
        bus.held = True
        taking = asyncio.ensure_future(one.take())
        await turns()
        if fate == "cancelled":
            taking.cancel()
            bus.step()
        else:
            caller, calls = bus.waiting[0]
            caller.replicas.take(machine.FateUnknown(calls.first, 1, "the view changed"))
            bus.step()
        with pytest.raises((asyncio.CancelledError, FateUnknown)):
            await taking
        assert two.lent() == {1: 1}
        bus.held = False
        bus.wake()
        await turns()
        assert two.lent() == {} and (await two.take()).value == "a"
        bus.same()

    run(work())


def test_room_that_is_told_from_inside_sends_nothing_twice() -> None:
    async def work() -> None:
        _, (one, *_) = three()
        counter = await one.have("n", Counter())
        submit = one.replicas.calling._submit

        def from_inside(calls: Any) -> str:
            why = submit(calls)
            one.replicas.room()
            return why

        one.replicas.calling._submit = from_inside
        assert await asyncio.gather(*(counter.add(durable=k % 2 == 0) for k in range(4))) == [1, 2, 3, 4]
        assert counter.value == 4

    run(work())

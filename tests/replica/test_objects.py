"""Replicated objects at three members that share an order of calls: equal states, answers, errors, whole states."""

from __future__ import annotations

import asyncio
import gc
import random
from collections.abc import Coroutine, Sequence
from typing import Any

import pytest
from msgspec import Struct

from ordercast import limits
from ordercast.errors import Closed, FateUnknown, NotPrimary, Overloaded, RunError, TooLarge, UsageError
from ordercast.live import calling, told
from ordercast.replica import entries
from ordercast.replica.counter import Counter
from ordercast.replica.dict import Change, Dict
from ordercast.replica.leader import Leader, Led
from ordercast.replica.lock import Lock
from ordercast.replica.objects import CONTROL, Objects
from ordercast.replica.pieces import CHUNK_BYTES, MORE
from ordercast.replica.queue import Item, Queue
from ordercast.replica.replica import Called, Part, Replica, ordered
from ordercast.state import machine
from ordercast.state.machine import BEHIND, ENDED, Call, Context, Mark
from ordercast.types import Peer, ViewId

from .bus import Bus, Member, everywhere, three

SECONDS = 30.0


def run(work: Coroutine[Any, Any, Any]) -> Any:
    async def bounded() -> Any:
        return await asyncio.wait_for(work, SECONDS)

    return asyncio.run(bounded())


class Line(Struct):
    goods: list[str]


class Stock(Replica):
    items: dict[str, int] = {}  # noqa: RUF012
    lines: list[Line] = []  # noqa: RUF012
    seen: list[tuple[float, float, int]] = []  # noqa: RUF012

    @ordered
    def add(self, name: str, count: int = 1) -> int:
        if count == 0:
            raise ValueError(f"none of {name}")
        self.items[name] = self.items.get(name, 0) + count
        return self.items[name]

    @ordered
    def line(self, line: Line) -> list[Line]:
        self.lines.append(line)
        return self.lines

    @ordered
    def look(self) -> float:
        self.seen.append((self.now, self.random.random(), self.caller.id))
        self.add("looks")
        return self.random.random()

    @ordered
    def careless(self) -> None:
        self.colour = "red"

    @ordered
    def lies(self) -> int:
        return ["three"]  # type: ignore[return-value]

    @ordered
    def ends(self) -> None:
        next(iter(()))

    @ordered
    def exits(self) -> None:
        self.items["exits"] = 1
        raise SystemExit(3)

    @ordered
    def deep(self, value: Any) -> None:
        self.items["deep"] = 1

    def total(self) -> int:
        return sum(self.items.values())


def test_calls_are_applied_everywhere_in_one_order_and_answered_to_their_caller() -> None:
    async def work() -> None:
        bus, members = three()
        stocks = await everywhere(members, "stock", Stock)
        answers = await asyncio.gather(*(stock.add("tea", 100) for stock in stocks))
        assert sorted(answers) == [100, 200, 300]
        assert [stock.total() for stock in stocks] == [300] * 3
        bus.same()
        assert await stocks[0].add("tea") == 301 and await stocks[1].add(name="rice", count=2) == 2
        await stocks[2].sync()
        assert stocks[2].items == {"tea": 301, "rice": 2}

    run(work())


def test_an_exception_is_the_callers_alone_and_the_state_stays_the_same_everywhere() -> None:
    async def work() -> None:
        bus, members = three()
        one, two, _ = await everywhere(members, "stock", Stock)
        good, bad, other = await asyncio.gather(
            one.add("tea"), one.add("tea", 0), two.add("tea"), return_exceptions=True
        )
        assert (good, other) == (1, 2) and isinstance(bad, ValueError) and str(bad) == "none of tea"
        with pytest.raises(UsageError, match=r"Stock.colour: not annotated in the class, so it would not be a part"):
            await one.careless()
        with pytest.raises(RuntimeError, match="a method raised StopIteration"):
            await one.ends()
        with pytest.raises(TypeError, match=r"Stock.lies: its result is not what its annotation says"):
            await one.lies()
        bus.same()

    run(work())


def test_a_method_that_exits_ends_its_callers_program_alone() -> None:
    """And nobody else's: each member would otherwise end in the middle of the order."""
    apart = []

    async def work() -> None:
        bus, members = three()
        one, two, _ = await everywhere(members, "stock", Stock)
        try:
            await one.exits()
        except SystemExit as why:
            apart.append(why.code)
        assert await two.add("tea") == 1
        assert one.items == two.items == {"exits": 1, "tea": 1}
        bus.same()

    run(work())
    assert apart == [3]


def test_time_and_chance_come_with_the_call() -> None:
    async def work() -> None:
        bus, members = three()
        stocks = await everywhere(members, "stock", Stock)
        first = await stocks[0].look()
        second = await stocks[0].look()
        assert first != second and stocks[1].seen == stocks[0].seen == stocks[2].seen
        assert stocks[1].items["looks"] == 2, "an ordered method may call another"
        assert [caller for _, _, caller in stocks[2].seen] == [1, 1] and stocks[0].seen[0][0] > 1.7e9
        bus.same()

    run(work())


def test_nobody_changes_a_state_from_outside() -> None:
    async def work() -> None:
        bus, members = three()
        stocks = await everywhere(members, "stock", Stock)
        mine = Line(["tea"])
        got = await stocks[0].line(mine)
        mine.goods.append("sand")
        got[0].goods.append("sand")
        got.append(mine)
        assert stocks[0].lines == [Line(["tea"])]
        with pytest.raises(UsageError, match=r"stock.items: set outside of an ordered method"):
            stocks[0].items = {}
        bus.same()

    run(work())


def test_bad_arguments_change_nothing() -> None:
    async def work() -> None:
        bus, members = three()
        stocks = await everywhere(members, "stock", Stock)
        before = bus.n
        with pytest.raises(TypeError, match=r"Stock.add: Expected `int`, got `str` - at `count`"):
            await stocks[0].add("tea", "many")
        with pytest.raises(ValueError, match="service best: calls in this group may be agreed, safe"):
            await stocks[0].add("tea", service="best")
        with pytest.raises(ValueError, match="service causal: calls in this group may be agreed, safe"):
            await stocks[0].add("tea", service="causal")
        with pytest.raises(TooLarge, match="a call of 16777232 bytes: expected at most"):
            await stocks[0].add("x" * 16 * 2**20)
        assert bus.n == before

    run(work())


def test_a_call_says_how_it_is_made() -> None:
    async def work() -> None:
        bus, (member, *_) = three()
        sure = await member.have("sure", Counter(), durable=True)
        quick = await member.have("quick", Counter(), service="agreed")
        bus.held = True
        calls = [sure.add(), sure.add(durable=False), quick.add(), quick.add(service="safe"), quick.add(durable=True)]
        await asyncio.sleep(0)
        ways = [(calls.safe, calls.durable, len(calls.payloads)) for _, calls in bus.waiting]
        assert ways == [(True, True, 1), (True, False, 1), (False, False, 1), (True, False, 1), (False, True, 1)]
        while bus.waiting:
            bus.step()
        assert await asyncio.gather(*calls) == [1, 2, 1, 2, 3]

    run(work())


def test_calls_of_one_turn_go_together() -> None:
    async def work() -> None:
        bus, (member, *_) = three()
        counter = await member.have("n", Counter())
        bus.held = True
        futures = [counter.add() for _ in range(1000)]
        await asyncio.sleep(0)
        assert [len(calls.payloads) for _, calls in bus.waiting] == [1000]
        bus.step()
        assert await asyncio.gather(*futures) == list(range(1, 1001))

    run(work())


# --------------------------------------------------------------------------------------------- names, classes, comings


class Other(Replica):
    """Same name as Stock to the group, another shape."""

    @ordered
    def add(self, name: str) -> int:
        return 0


class Hooks(Replica):
    """Tells what happens to it."""

    n: int = 0
    heard: list[Called] = []  # noqa: RUF012

    @ordered
    def up(self) -> int:
        self.n += 1
        return self.n

    def lost(self, calls: Sequence[Called]) -> None:
        HEARD.extend(calls)


HEARD: list[Called] = []


def test_a_name_has_one_class_in_a_group() -> None:
    async def work() -> None:
        _, (one, two, _) = three()
        stock = await one.have("stock", Stock())
        with pytest.raises(
            UsageError, match=r"object 'stock': it is a Stock in the group, and a Other here: expected a c"
        ):
            await two.have("stock", Other())
        with pytest.raises(UsageError, match="object 'stock': this program has replicated it already"):
            await one.have("stock", Stock())
        with pytest.raises(UsageError, match=r"object 'more': it is, or was .* replicated as 'stock': expected a new"):
            await one.have("more", stock)
        with pytest.raises(UsageError, match="object x: dict: expected an instance of a Replica's class"):
            await one.have("x", {})
        for name in ("", "x" * 65, 5):
            with pytest.raises(UsageError, match="expected a name of 1 to 64 bytes"):
                await one.have(name, Stock())  # type: ignore[arg-type]
        assert await (await two.have("stock", Stock())).add("tea") == 1

    run(work())


def test_an_object_that_begins_too_large_is_named() -> None:
    async def work() -> None:
        _, members = three()
        with pytest.raises(TooLarge, match=r"object 'stock': a first state of \d+ bytes: expected at most 8387584"):
            await members[0].have("stock", full())
        stock = await members[1].have("stock", Stock())
        late = await members[0].have("stock", full())
        assert stock.items == late.items == {}, "it is there already, and begins as its first says"

    def full() -> Stock:
        stock = Stock()
        stock.items = {"x" * 9_000_000: 1}
        return stock

    run(work())


def test_an_object_begins_as_the_first_to_bring_it_says() -> None:
    async def work() -> None:
        _, (one, two, _) = three()
        assert (await one.have("n", Counter(5))).value == 5
        assert (await two.have("n", Counter(7))).value == 5

    run(work())


def test_who_comes_later_gets_the_state_and_what_follows() -> None:
    async def work() -> None:
        bus, members = three()
        stock, *_ = await everywhere(members[:2], "stock", Stock)
        await stock.add("tea", 3)
        late = bus.join(4)
        await stock.add("tea", 4)
        found = await late.have("stock", Stock())
        assert found.items == {"tea": 7}, "kept as bytes and calls until there was a class for it"
        assert (await members[2].have("stock", Stock())).items == {"tea": 7}
        await found.add("tea")
        bus.same()
        again = bus.join(5)
        assert (await again.have("stock", Stock())).items == {"tea": 8}

    run(work())


def test_who_has_no_class_gives_the_state_away_all_the_same() -> None:
    async def work() -> None:
        bus, (one, two, three_) = three()
        stock = await one.have("stock", Stock())
        lock = await one.have("lock", Lock())
        await stock.look()
        await lock.acquire()
        bus.leave(one)
        fresh = Member(bus, 9)
        bus.members.append(fresh)
        fresh.take_over(two)
        bus.present()
        found = await fresh.have("stock", Stock())
        assert found.seen == stock.seen and found.items == {"looks": 1}
        assert (await fresh.have("lock", Lock())).owner is None, "that its owner left was kept as well"
        assert (await three_.have("lock", Lock())).owner is None

    run(work())


def test_what_has_no_class_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "KEPT_BYTES_MAX", 10_000)

    async def work() -> None:
        bus, (one, two, _) = three()
        stock = await one.have("stock", Stock())
        bus.members = [one]
        for _ in range(100):
            await stock.add("tea")
        two.take_over(one)
        bus.members = [one, two]
        words = (
            r"object 'stock': this program has no class for it, and 0 MiB of calls to it wait here: expected group.repl"
        )
        with pytest.raises(entries.Unread, match=words):
            for _ in range(200):
                two.machine.apply([bus.log[-1][1]], Context(Peer(1, 1), 1, bus.n, b"", 0, ()))

    run(work())


def test_what_a_program_waits_for_is_applied_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "KEPT_BYTES_MAX", 10_000)

    async def work() -> None:
        bus, (one, two, three_) = three()
        two.stand(BEHIND)
        three_.stand(BEHIND)
        bringing = asyncio.ensure_future(two.have("stock", Stock()))
        await asyncio.sleep(0)
        stock = await one.have("stock", Stock())
        for _ in range(10):
            await stock.look()
        three_.machine.expect("stock", Stock())
        three_.take_over(one)
        bus.members.remove(three_)
        for _ in range(200):
            await stock.look()
        two.stand()
        found = await bringing
        assert found.seen == stock.seen and len(found.seen) == 210, (
            "never kept as bytes, and with the right time and chance"
        )
        bus.members.append(three_)
        three_.take_over(two)
        await stock.look()
        assert (await three_.have("stock", Stock())).seen == stock.seen

    run(work())


def test_a_state_takes_the_place_of_another() -> None:
    async def work() -> None:
        _bus, (one, two, _) = three()
        mine = await one.have("stock", Stock())
        alone = await two.have("alone", Counter())
        await mine.add("tea")
        other = Bus()
        away = Member(other, 7)
        other.members.append(away)
        away.stand()
        far = await away.have("stock", Stock())
        await far.add("rice", 5)
        one.take_over(away)
        two.take_over(away)
        assert mine.items == {"rice": 5}, "the same object, another state"
        assert await alone.until(lambda: alone._here is not None or None, 1) if alone._here else True
        for _ in range(20):
            await asyncio.sleep(0)
        assert await alone.add(3) == 3, "an object that the new state lacks comes into being anew"

    run(work())


def test_a_state_that_comes_while_an_object_is_brought_to_life() -> None:
    async def work() -> None:
        _bus, (one, two, _) = three()
        table: Any = await one.have("table", Dict[int, int]())
        await table.update({k: k for k in range(2000)})
        bringing = asyncio.ensure_future(two.have("table", Dict[int, int]()))
        for _ in range(3):
            await asyncio.sleep(0)
        await table.set(1, 7)
        two.take_over(one)
        await table.set(2, 8)
        found = await bringing
        assert found.items() == table.items() and found[1] == 7 and found[2] == 8

    run(work())


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"x",
        b"12345678",
        CONTROL + b"\xc1",
        CONTROL,
        bytes(7),
        b"\xff" * 40,
        CONTROL + b"\x95\xa0\xa0\xc4\x00\xc2\x90",
    ],
)
def test_calls_that_nobody_could_make_change_nothing(data: bytes) -> None:
    async def work() -> None:
        bus, members = three()
        stocks = await everywhere(members, "stock", Stock)
        await stocks[0].add("tea")
        before = bus.states()
        context = Context(Peer(2, 1), 1, bus.n, b"", 0, bus.lives())
        for member in members:
            (answer,) = member.machine.apply([data], context)
            assert data == b"" or (type(answer) is entries.Raised and isinstance(answer.why, UsageError))
        assert bus.states() == before

    run(work())


def test_calls_of_a_method_or_with_arguments_that_do_not_exist_change_nothing() -> None:
    async def work() -> None:
        bus, members = three()
        stocks = await everywhere(members, "stock", Stock)
        await stocks[0].add("tea")
        good, before = bus.log[-1][1], bus.states()
        context = Context(Peer(1, 1), 1, bus.n, b"", 0, bus.lives())
        bad = [good[:8] + b"\xff" + good[9:], good[:8], good[:9], good[:-1], good + b"x", good[:9] + b"\x91\x01"]
        answers = members[0].machine.apply(bad, context)
        assert all(
            type(answer) is entries.Raised and "its class does not have" in str(answer.why) for answer in answers
        )
        assert bus.states() == before

    run(work())


def test_no_bytes_of_a_call_end_a_member() -> None:
    async def work() -> None:
        bus, members = three()
        stocks = await everywhere(members, "stock", Stock)
        await stocks[0].add("tea")
        await stocks[0].line(Line(["a", "b"]))
        draw, good = random.Random(3), [data for _, data in bus.log]
        number = next(method.number for method in Stock._shape.methods if method.name == "deep")
        calls = [good[-1][:8] + bytes((number,)) + b"\x91" * depth + b"\xc0" for depth in (10, 100_000)]
        for _ in range(3000):
            data = bytearray(draw.choice(good))
            for _ in range(draw.randint(1, 4)):
                data[draw.randrange(len(data))] = draw.randrange(256)
            calls.append(bytes(data[: draw.choice([len(data), draw.randrange(len(data) + 1)])]))
        context = Context(Peer(2, 1), 1, bus.n, b"", 0, bus.lives())
        for member in members:
            member.machine.apply(calls, context)
        bus.same()

    run(work())


# ------------------------------------------------------------------------------------------------------- whole states


def test_a_snapshot_is_of_one_place_though_calls_go_on() -> None:
    async def work() -> None:
        _bus, (one, _two, _) = three()
        table: Any = await one.have("table", Dict[int, list[int]]())
        queue: Any = await one.have("queue", Queue[int]())
        stock = await one.have("stock", Stock())
        await table.update({k: [k] for k in range(1000)})
        for k in range(600):
            await queue.put(k)
        await queue.get()
        await stock.add("tea")
        expected = b"".join(one.machine.snapshot())
        slow, dropped = one.machine.snapshot(), one.machine.snapshot()
        begun = [next(slow) for _ in range(3)]
        next(dropped)
        rng = random.Random(7)
        for _ in range(300):
            k = rng.randrange(1200)
            calls = [table.set(k, [k, 1]), table.delete(k), queue.put(k), queue.get_nowait(), stock.add("rice")]
            await asyncio.gather(*rng.sample(calls, 5))
        del dropped
        gc.collect()
        await table.set(0, [9])
        assert b"".join([*begun, *slow]) == expected
        assert b"".join(one.machine.snapshot()) != expected
        await table.set(0, [10])
        assert table._here.frozen == [], "nobody reads any more"

    run(work())


def test_a_snapshot_begun_before_an_object_was_the_programs_own() -> None:
    async def work() -> None:
        _, (one, two, _) = three()
        for name, kind in (("d", Dict[str, int]), ("s", Stock)):
            two.machine.expect(name, kind())
        table: Any = await one.have("d", Dict[str, int]())
        stock = await one.have("s", Stock())
        await table.set("a", 1)
        await stock.add("tea")
        begun = two.machine.snapshot()
        expected = b"".join(one.machine.snapshot())
        await two.have("d", Dict[str, int]())
        await two.have("s", Stock())
        await table.set("a", 2)
        await stock.add("tea")
        assert b"".join(begun) == expected
        assert b"".join(two.machine.snapshot()) == b"".join(one.machine.snapshot())

    run(work())


def test_large_values_are_cut_and_joined() -> None:
    async def work() -> None:
        _, (one, two, _) = three()
        table = await one.have("table", Dict[str, bytes]())
        await table.set("large", bytes(1_000_000))
        await table.set("small", b"x")
        pieces = list(one.machine.snapshot())
        assert max(map(len, pieces)) <= limits.PIECE_BYTES_MAX
        two.take_over(one)
        assert (await two.have("table", Dict[str, bytes]())).items() == table.items()
        restoring = two.machine.restore()
        restoring.feed(pieces[0])
        restoring.feed(next(piece for piece in pieces if piece[:1] == MORE))
        with pytest.raises(RunError, match="a snapshot that"):
            restoring.finish()
        with pytest.raises(RunError, match="names no object"):
            two.machine.restore().feed(b"\x01S")

    run(work())


def test_a_chunk_of_a_snapshot_is_little_work_however_large_the_values_are() -> None:
    for size in (10, 3_000, 100_000):
        table, queue = Dict[int, bytes](), Queue[bytes]()
        table._items = {k: bytes(size) for k in range(700)}
        queue._items = [(k, bytes(size)) for k in range(700)]
        for chunks in (table.snapshot(), queue.snapshot()):
            assert max(map(len, chunks)) <= 2 * CHUNK_BYTES and len(chunks) < 20 + 700 * (size + 20) // 100_000
        copy = Dict[int, bytes]()
        for chunk in table.snapshot():
            copy.restore(chunk)
        assert copy.items() == table.items()


class Fragile(Replica):
    n: int = 0
    broken: bool = False

    @ordered
    def damage(self) -> None:
        self.broken = True

    def snapshot(self) -> bytes:
        if self.broken:
            raise OSError("no")
        return b"%d" % self.n

    def restore(self, piece: bytes) -> None:
        self.n = int(piece)


def test_a_snapshot_or_a_restore_that_raises_is_told() -> None:
    async def work() -> None:
        _, (one, two, _) = three()
        fragile = await one.have("fragile", Fragile())
        pieces = list(one.machine.snapshot())
        await fragile.damage()
        with pytest.raises(RunError, match=r"object 'fragile': its snapshot failed: OSError\('no'\)"):
            list(one.machine.snapshot())
        restoring = one.machine.restore()
        with pytest.raises(ValueError, match="invalid literal"):
            for piece in pieces:
                restoring.feed(piece.replace(b"S0", b"Sx"))
        assert fragile.broken, "the old state still counts"

        class Unset(Replica):
            n: int

        with pytest.raises(UsageError, match="Unset: n has no value: set it in __init__, or in the class"):
            await two.have("unset", Unset())

    run(work())


class Sum(Replica):
    n: int = 0

    @ordered
    def add(self, by: int) -> int:
        self.n += by
        return self.n

    def merge(self, parts: Sequence[Part]) -> None:
        assert parts[0].state.n == self.n
        if self.n == 13:
            self.n = 99
            raise ValueError("unlucky")
        self.n += sum(call.arguments[0] for part in parts[1:] for call in part.calls or () if call.method == "add")


def part(member: Member, since: int) -> machine.Part:
    calls = tuple(Call(peer, k, data) for k, (peer, data) in enumerate(member.bus.log[since:], since))
    return machine.Part(Mark(ViewId(4, 1), member.bus.n, b""), list(member.machine.snapshot()), calls)


@pytest.mark.parametrize("first", [5, 13])
def test_parts_are_merged_object_by_object(first: int) -> None:
    async def work() -> None:
        HEARD.clear()
        left, right = Bus(), Bus()
        one, two = left.join(1), Member(right, 2)
        total = await one.have("sum", Sum())
        hooks = await one.have("hooks", Hooks())
        counter = await one.have("n", Counter())
        two.take_over(one)
        right.members.append(two)
        right.present()
        their_total, their_hooks = await two.have("sum", Sum()), await two.have("hooks", Hooks())
        their_counter = await two.have("n", Counter())
        marks = len(left.log), len(right.log)
        await total.add(first)
        await their_total.add(7)
        await their_hooks.up()
        await counter.add(1)
        await their_counter.add(2)
        new = await two.have("new", Counter(4))
        parts = [part(one, marks[0]), part(two, marks[1])]
        one.machine.merge(None, parts, 0)
        two.machine.merge(None, parts, 1)
        assert total.n == their_total.n == (12 if first == 5 else 13), "a merge that raises leaves the first part"
        assert counter.value == their_counter.value == 3
        assert hooks.n == their_hooks.n == 0, "without a merge the first part wins"
        assert [call.method for call in HEARD] == ["up"], "told once, to who had applied it"
        assert new.value == 4 and one.machine.find("new") is not None
        assert b"".join(one.machine.snapshot()) == b"".join(two.machine.snapshot())

    run(work())


def test_what_is_lost_is_told_to_its_object() -> None:
    async def work() -> None:
        HEARD.clear()
        bus, (one, _two, _) = three()
        hooks = await one.have("hooks", Hooks())
        await hooks.up()
        one.machine.lost([Call(Peer(1, 1), 5, bus.log[-1][1]), Call(Peer(2, 1), 6, None)])
        assert [Called("up", (), 1)] == HEARD

    run(work())


# --------------------------------------------------------------------------------------------------- what callers hear


def test_every_call_is_answered_once() -> None:
    async def work() -> None:
        bus, (one, *_) = three()
        counter = await one.have("n", Counter())
        bus.held = True
        future = counter.add()
        await asyncio.sleep(0)
        bus.forget()
        with pytest.raises(
            FateUnknown, match="it is not known whether this call was, or will be, applied: the view ch"
        ):
            await future
        bus.held, bus.refuse = False, "not primary"
        with pytest.raises(NotPrimary):
            await counter.add()
        bus.refuse = "overloaded"
        waiting = counter.add()
        for _ in range(3):
            await asyncio.sleep(0)
        assert not waiting.done()
        bus.refuse = ""
        one.replicas.room()
        assert await waiting == 1
        bus.held = True
        sent = counter.add()
        await asyncio.sleep(0)
        unsent, watch, wait = counter.add(), counter.told(), asyncio.ensure_future(counter.until(lambda: None))
        await asyncio.sleep(0)
        one.replicas.close(Closed("the group was left"))
        with pytest.raises(FateUnknown):
            await sent
        with pytest.raises((Closed, FateUnknown)):
            await unsent
        with pytest.raises(Closed):
            counter.add()
        with pytest.raises(Closed):
            await wait
        assert [change async for change in watch] == []
        assert counter.value == 1, "what it holds stays readable"

    run(work())


def test_calls_that_nobody_awaits_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calling, "UNSENT_BYTES_MAX", 1000)

    async def work() -> None:
        _bus, (one, *_) = three()
        counter = await one.have("n", Counter())
        with pytest.raises(Overloaded, match="calls wait to be sent: await some of them first"):
            for _ in range(1000):
                counter.add()
        await counter.sync()

    run(work())


def test_who_is_no_replica_any_more_says_why() -> None:
    async def work() -> None:
        _, (one, *_) = three()
        counter = await one.have("n", Counter())
        one.stand(BEHIND)
        bringing = asyncio.ensure_future(one.have("m", Counter()))
        await asyncio.sleep(0)
        assert one.replicas.waits() == "objects: the state is on its way here"
        one.stand(ENDED, "restore raised")
        for awaited in (bringing, one.have("k", Counter())):
            with pytest.raises(RunError, match="this member is no replica any more: restore raised"):
                await awaited
        with pytest.raises(RunError, match="restore raised"):
            await counter.add()
        assert one.replicas.status()["standing"] == ENDED

    run(work())


# ------------------------------------------------------------------------------------------------------ ready objects


def test_dict() -> None:
    async def work() -> None:
        _bus, members = three()
        one, two, three_ = await everywhere(members, "d", Dict[str, list[int]])
        watch, of_b = two.watch(), three_.watch("b")
        await one.set("a", [1])
        await one.update({"b": [2], "c": [3]})
        assert not await two.compare_and_set("a", [7], [8]) and await two.compare_and_set("a", [1], [8])
        assert await two.compare_and_set("d", None, [4]) and await two.compare_and_set("c", [3], None)
        assert await three_.delete("d") and not await three_.delete("d")
        assert one.items() == two.items() == three_.items() == {"a": [8], "b": [2]}
        assert one.get("x") is None and one.get("x", [0]) == [0] and one["a"] == [8] and "b" in one and len(one) == 2
        assert list(one) == ["a", "b"]
        with pytest.raises(KeyError):
            one["x"]
        one["a"].append(5)
        assert one["a"] == [8]
        with pytest.raises(
            TypeError, match=r"Dict\[str, list\[int\]\].set: Expected `int`, got `str` - at `value\[0\]`"
        ):
            one.set("a", ["x"])
        changes = [await anext(watch) for _ in range(7)]
        assert changes[0] == Change("a", None, [1]) and changes[3] == Change("a", [1], [8])
        assert changes[-1] == Change("d", [4], None)
        assert await anext(of_b) == Change("b", None, [2])
        two_now = Member(Bus(), 9)
        two_now.bus.members.append(two_now)
        two_now.stand()
        other = await two_now.have("d", Dict[str, list[int]]())
        await other.set("b", [22])
        members[1].take_over(two_now)
        assert {(c.key, *(c.after or ())) for c in [await anext(watch), await anext(watch)]} == {("a",), ("b", 22)}
        watch.close()
        assert [c async for c in watch] == []

    run(work())


def test_a_watch_that_is_not_read_ends_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(told, "UNREAD_MAX", 5)

    async def work() -> None:
        _, (one, *_) = three()
        table = await one.have("d", Dict[str, int]())
        watch = table.watch()
        for k in range(7):
            await table.set("a", k)
        with pytest.raises(Overloaded, match="object 'd': 5 changes were not read: read it anew, then watch"):
            await anext(watch)
        await table.set("a", 8)

    run(work())


def test_counter() -> None:
    async def work() -> None:
        bus, members = three()
        one, two, _ = await everywhere(members, "n", Counter)
        assert await asyncio.gather(*(each.add(2) for each in (one, two) for _ in range(5)))
        assert one.value == two.value == 20
        assert await one.compare_and_set(20, 3) and not await two.compare_and_set(20, 4) and await two.set(9) == 9
        with pytest.raises(OverflowError, match="a counter has 64 bits"):
            await one.add(2**63 - 5)
        assert one.value == 9
        bus.same()

    run(work())


def test_queue() -> None:
    async def work() -> None:
        bus, members = three()
        one, two, three_ = await everywhere(members, "q", Queue[str])
        waiter = asyncio.ensure_future(two.get())
        for _ in range(5):
            await asyncio.sleep(0)
        assert [await one.put(word) for word in ("a", "b", "c", "d")] == [1, 2, 3, 4]
        assert await waiter == "a" and len(three_) == 3
        assert await two.take() == Item(2, "b") and await three_.take() == Item(3, "c")
        assert one.lent() == {2: 2, 3: 3}
        assert await three_.done(3) and not await three_.done(3) and not await three_.done(2)
        bus.leave(members[1])
        assert one.lent() == {} and await three_.take() == Item(2, "b"), "whose borrower is gone comes first"
        assert await one.get() == "d" and await one.get_nowait() is None and await one.take_nowait() is None
        with pytest.raises(TimeoutError):
            await one.get(timeout=0.01)
        bus.same()

    run(work())


@pytest.mark.parametrize("way", ["get", "take"])
def test_a_timeout_is_for_all_of_the_waiting(way: str) -> None:
    """Who finds each item gone that it was woken for does not begin to wait anew."""

    async def work() -> None:
        bus, members = three()
        one, two, three_ = await everywhere(members, "q", Queue[int])
        waiter = asyncio.ensure_future(getattr(two, way)(timeout=0.05))
        await asyncio.sleep(0)
        for k in range(1_000):
            _, taken = await asyncio.gather(one.put(k), three_.get_nowait())
            assert taken is not None and taken.value == k, "the other came late"
            await asyncio.sleep(0.001)
            if waiter.done():
                break
        assert waiter.done(), "it still waits"
        with pytest.raises(TimeoutError):
            await waiter
        bus.same()

    run(work())


def test_a_long_queue_keeps_its_order_over_snapshots() -> None:
    async def work() -> None:
        bus, members = three()
        one, _two, _ = await everywhere(members, "q", Queue[int])
        for k in range(3000):
            await one.put(k)
        got = [await one.get() for _ in range(2000)]
        late = bus.join(4)
        three_ = await late.have("q", Queue[int]())
        got += [await three_.get() for _ in range(1000)]
        assert got == list(range(3000)) and len(one._items) < 3000
        bus.same()

    run(work())


def test_lock() -> None:
    async def work() -> None:
        bus, members = three()
        one, two, three_ = await everywhere(members, "l", Lock)
        async with one as fence:
            assert fence == 1 and one.holds(1) and not two.holds(1) and two.owner == 1 and two.fence == 1
            assert await two.try_acquire() == 0
            second, third = asyncio.ensure_future(two.acquire()), asyncio.ensure_future(three_.acquire())
            given_up = asyncio.ensure_future(one.acquire())
            for _ in range(5):
                await asyncio.sleep(0)
            given_up.cancel()
            assert not second.done()
        assert await second == 2 and not third.done()
        assert not await one.release(2), "another's"
        bus.leave(members[1])
        assert await third == 3 and three_.holds(3), "given up by who left"
        assert await three_.release(3) and not await three_.release(3)
        assert one.owner is None
        with pytest.raises(TimeoutError):
            async with three_:
                await one.acquire(timeout=0.01)
        await one.sync()
        assert one.owner is None and one._line.waiting == [], "who does not wait any more gets nothing"
        assert await one.try_acquire() == 5

    run(work())


def test_two_tasks_of_one_program_do_not_hold_a_lock_together() -> None:
    async def work() -> None:
        _, (one, *_) = three()
        lock = await one.have("l", Lock())
        inside, most, fences = 0, 0, []

        async def task() -> None:
            nonlocal inside, most
            for _ in range(5):
                async with lock as fence:
                    inside += 1
                    most = max(most, inside)
                    fences.append(fence)
                    await asyncio.sleep(0)
                    inside -= 1

        await asyncio.gather(*(task() for _ in range(4)))
        assert most == 1 and fences == list(range(1, 21)) and lock.owner is None

    run(work())


def test_another_life_of_an_owner_does_not_hold_its_lock() -> None:
    async def work() -> None:
        bus, members = three()
        one, two, _ = await everywhere(members, "l", Lock)
        assert await two.acquire() == 1
        bus.members.remove(members[1])
        back = bus.join(2, life=2)
        again = await back.have("l", Lock())
        assert one.owner is None and again.owner is None
        assert await again.acquire() == 2

    run(work())


def test_leader() -> None:
    async def work() -> None:
        bus, members = three()
        one, two, three_ = await everywhere(members, "boss", Leader)
        watch = three_.watch()
        assert await one.elected() == 1 and one.leads() and two.member == 1 and two.term == 1
        waiting = asyncio.ensure_future(two.elected())
        assert await three_.stand() == 0 and await three_.resign() and not await three_.resign()
        assert await one.stand() == 1
        bus.leave(members[0])
        assert await waiting == 2 and three_.member == 2 and not three_.leads()
        assert await two.resign() and three_.member is None
        assert [await anext(watch) for _ in range(3)] == [Led(1, 1), Led(2, 2), Led(None, 2)]

    run(work())


def test_parts_of_a_split_group_do_not_come_to_one_number() -> None:
    def numbers(caller: int, seed: bytes) -> list[int]:
        step = Objects(Peer(caller, 1), splits=True).new_step()
        out = [0]
        for first in range(5):
            step.begin(Context(Peer(caller, 1), first, 0, seed, 0, ()))
            out.append(step.number_above(out[-1]))
        assert out == sorted(set(out)) and [number >> 32 for number in out] == list(range(6))
        return out[1:]

    assert numbers(1, b"h") == numbers(1, b"h")
    assert not {*numbers(1, b"h")} & {*numbers(2, b"h")} and not {*numbers(1, b"h")} & {*numbers(1, b"g")}
    assert Objects(Peer(1, 1)).new_step().number_above(7) == 8

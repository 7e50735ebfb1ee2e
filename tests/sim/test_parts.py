"""Parts of the simulated world, each alone: no world, no stack, no other part than those it holds."""

from collections.abc import Callable
from typing import Any

import pytest

from ordercast.contract import ALL, Note, Packet, Transmit
from ordercast.sim import faults as f
from ordercast.sim.carrier import Carrier
from ordercast.sim.host import Clock, Host
from ordercast.sim.intake import Intake
from ordercast.sim.journal import Journal
from ordercast.sim.links import Clogging, Losing
from ordercast.sim.scenario import Scenario
from ordercast.sim.schedule import Ended, Schedule
from ordercast.sim.strikes.running import Overrides, Running
from ordercast.sim.timers import Timers
from ordercast.sim.traps import Trap
from ordercast.trace.recorder import Recorder
from ordercast.trace.schema import Header, Level
from ordercast.trace.trace import MemorySink
from ordercast.types import U63
from ordercast.wire.codec import Codec
from ordercast.wire.header import HEADER_BYTES

NO_DISK: Any = None


class Token(Packet, frozen=True, gc=False, tag=1):
    number: U63


def stop(a: Any, b: Any) -> None:
    raise Ended


def up(id: int = 1, ppm: int = 0) -> Host:
    host = Host(id, (0,), Clock(1_000, ppm), NO_DISK)
    host.up = True
    host.buffer_bytes_max = 100
    host.recorder = Recorder(MemorySink(), id, 1, Level.OFF)
    host.refresh()
    return host


def journal(schedule: Schedule) -> Journal:
    header = Header(run="x", protocol="tiny", service="agreed", members=(1,), promises=())
    return Journal(schedule, header, Level.OFF, None)


def played(schedule: Schedule, until: int) -> None:
    schedule.later(until, stop, None, None)
    schedule.run()


def test_events_happen_by_time_then_in_the_order_they_were_put_in() -> None:
    schedule, seen = Schedule(), []

    def see(what: str, more: Callable[[], None] | None) -> None:
        seen.append((schedule.time, what))
        if more is not None:
            more()

    schedule.later(7, see, "b", None)
    schedule.later(5, see, "a", lambda: schedule.later(7, see, "d", None))
    schedule.later(7, see, "c", None)
    played(schedule, 8)
    assert seen == [(5, "a"), (7, "b"), (7, "c"), (7, "d")]


def test_calls_after_a_time_can_be_taken_out() -> None:
    schedule, seen = Schedule(), []

    def kept(a: int, b: int) -> None:
        seen.append(a)

    def gone(a: int, b: int) -> None:
        seen.append(a)

    for time in (1, 3, 9):
        schedule.later(time, kept, time, 0)
        schedule.later(time, gone, -time, 0)
    assert schedule.forget(3, gone) == 1
    played(schedule, 10)
    assert seen == [1, -1, 3, -3, 9]


def test_a_timer_fires_once_when_the_members_own_clock_says_so() -> None:
    schedule, told, host = Schedule(), [], up(ppm=100_000)  # a tenth too fast, so not plain once a clock drifts
    host.plain = True
    timers = Timers(schedule, lambda host, now, name, due: told.append((schedule.time, name, due)), told.append)
    timers.set(host, "late", 1_000 + 1_100)
    timers.set(host, "moved", 1_000 + 5)
    timers.set(host, "moved", 1_000 + 550)
    timers.set(host, "gone", 1_000 + 50)
    timers.cancel(host, "gone")
    played(schedule, 5_000)
    assert told == [(500, "moved", 1_550), (1_000, "late", 2_100)] and not host.timers


def test_datagrams_are_served_before_drained_and_late_inputs() -> None:
    schedule, served, host = Schedule(), [], up()
    intake = Intake(schedule, journal(schedule), lambda host, item: served.append(item[0]))
    host.busy = True
    intake.give(host, ("timer", "t", [0, 0]))
    for k in range(4):
        intake.take(host, (0, host.peer, Token(k), 40, None, False))
    assert served == [] and host.drops == {0: 2}, "two of forty bytes are all that a buffer of a hundred holds"
    host.busy = False
    intake.work(host)
    assert served == ["receive", "receive", "drained", "timer"]
    intake.occupy(host, 30)
    intake.give(host, ("leave",))
    played(schedule, 29)
    assert served[4:] == []
    played(schedule, 31)
    assert served[4:] == ["leave"]


def test_a_net_is_read_until_nothing_of_it_waits_before_the_next() -> None:
    """Each has a socket of its own: a token of one ring does not wait for the frames of another."""
    schedule, served, host = Schedule(), [], up()

    def carry_out(host: Host, item: Any) -> None:
        served.append((item[1][0], item[1][2].number) if item[0] == "receive" else item)

    intake = Intake(schedule, journal(schedule), carry_out)
    host.cost, host.nets = (lambda *_: (10, 0)), (0, 1)
    for number, net in enumerate((1, 0, 1)):
        intake.take(host, (net, host.peer, Token(number), 20, None, False))
    schedule.later(15, lambda a, b: intake.take(host, (1, host.peer, Token(3), 20, None, False)), None, None)
    played(schedule, 100)
    assert served == [(1, 0), (1, 2), (1, 3), ("drained", 1), (0, 1), ("drained", 0)] and host.buffer_bytes == 0


def test_what_a_pause_interrupts_comes_first_again() -> None:
    """A host whose steps take 10 ns stands still while it is at the first of three datagrams, then at a timer."""
    schedule, served, host = Schedule(), [], up()

    def carry_out(host: Host, item: Any) -> None:
        served.append((schedule.time, (item[1][2].number, item[2]) if item[0] == "receive" else item[0]))

    intake = Intake(schedule, journal(schedule), carry_out)
    host.cost, host.drops = (lambda *_: (10, 0)), {0: 7}
    for k in range(3):
        intake.take(host, (0, host.peer, Token(k), 30, None, False))
    intake.give(host, ("timer", "t", [0, 0]))
    intake.give(host, ("leave",))
    host.paused = True
    played(schedule, 100)
    assert served == [] and host.buffer_bytes == 90
    host.paused = False
    intake.work(host)
    schedule.later(133, lambda a, b: setattr(host, "paused", True), None, None)
    played(schedule, 200)
    assert served == [(110, (0, 7)), (120, (1, 0)), (130, (2, 0)), (130, "drained")] and host.buffer_bytes == 0
    host.paused = False
    intake.work(host)
    played(schedule, 300)
    assert served[4:] == [(210, "timer"), (220, "leave")]


def carried(scenario: Scenario) -> tuple[Carrier, list[tuple[int, int, Any]]]:
    """A carrier between hosts without processes, and what arrives where."""
    schedule, seen, codec = Schedule(), [], Codec((Token,))
    hosts = {id: up(id) for id in scenario.ids}
    carrier = Carrier(
        scenario, schedule, journal(schedule), hosts, codec, hears_self=False, all_lives=False, sizes=False
    )
    carrier.arrive_all = lambda hosts, datagram: seen.extend((schedule.time, h.id, datagram[2]) for h in hosts)

    def arrive(host: Host, datagram: Any) -> None:
        seen.append((schedule.time, host.id, codec.decode(datagram[4][HEADER_BYTES:])))

    carrier.arrive = arrive
    return carrier, seen


@pytest.mark.parametrize("wire", [False, True])
def test_a_carrier_brings_datagrams_to_those_who_hear_them(wire: bool) -> None:
    carrier, seen = carried(Scenario(protocol="tiny", members=3, wire=wire))
    carrier.transmit(carrier.hosts[2], Transmit(0, ALL, Token(1)))
    carrier.transmit(carrier.hosts[2], Transmit(0, 3, Token(2)))
    played(carrier.schedule, 10**9)
    assert [(to, packet.number) for _, to, packet in seen] == [(1, 1), (3, 1), (3, 2)]
    assert carrier.transmitted == carrier.hosts[2].transmitted == 2


def test_filters_act_while_they_are_switched_on() -> None:
    scenario = Scenario(protocol="tiny", members=3)
    carrier, seen = carried(scenario)
    lose = Losing(f.Loss(p=1.0, pairs=("1>2",)), carrier, scenario.generator("x"))
    hold = Clogging(f.Clog(pairs=("1>3",)), carrier, scenario.generator("x"))
    carrier.switch_on(lose)
    carrier.switch_on(hold)
    carrier.transmit(carrier.hosts[1], Transmit(0, ALL, Token(1)))
    played(carrier.schedule, 10**9)
    assert seen == [] and carrier.journal.drops == {"loss": 1} and carrier.slow
    carrier.switch_off(lose)
    carrier.switch_off(hold)
    assert not carrier.slow
    played(carrier.schedule, 2 * 10**9)
    assert seen == [(10**9, 3, Token(1))], "what was held is released when the fault ends"


def test_a_trap_knows_its_place_in_a_list_of_actions() -> None:
    actions = [Note("a"), Transmit(0, ALL, Token(1)), Note("b")]
    assert Trap(None, "Token", lambda rest: None).place(actions) == 1
    assert Trap(None, "Word", lambda rest: None).place(actions) is None
    assert Trap(2, "", lambda rest: None).place(actions) == 2
    assert Trap(3, "", lambda rest: None).place(actions) is None


def test_of_several_overrides_the_latest_that_lasts_counts() -> None:
    overrides, used = Overrides(), []
    first, second = (Running(f.Slow(), k, Scenario().generator("x")) for k in range(2))
    first.struck = second.struck = up()
    overrides.put(first, "cost", 0, 1, used.append)
    overrides.put(second, "cost", 0, 2, used.append)
    first.undo[0]()
    second.undo[0]()
    assert used == [1, 2, 2, 0]

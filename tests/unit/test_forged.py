"""What one packet of the right shape from a configured id can do: confuse, but never end, hang or bloat a member."""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import msgspec
import pytest

from ordercast import registry
from ordercast.conformance.script import Script
from ordercast.contract import Action, Body, Control, Delivered, Note, Ordered, Packet, Setup, Up, ViewChange
from ordercast.errors import WireError
from ordercast.framing import Framing
from ordercast.groups import GJoin, Groups, GState
from ordercast.limits import MESSAGE_BYTES_MAX, RING_SEQ_MAX
from ordercast.membership import CommitToken, Join
from ordercast.membership.cause import tell
from ordercast.membership.packets import Entry, PackedRows
from ordercast.membership.primary import Mark, Record, RecordedEntry
from ordercast.protocols import totem
from ordercast.protocols.causal import Sent as Plain
from ordercast.protocols.hybrid import Null, Sent, tickets
from ordercast.protocols.totem.packets import Data as RingData
from ordercast.protocols.totem.packets import HoldCancel, Recovered, RingEntry
from ordercast.seam import Seam
from ordercast.stack import Stack, chain
from ordercast.transis.link import Link
from ordercast.transis.packets import Data, FlushData, FlushNack, FlushState, FlushToken, Nack, Retrans, Status
from ordercast.transis.plan import LayerEntry
from ordercast.types import Batch, Cause, Frame, Peer, Service, View, ViewId, ViewKind
from ordercast.wire.codec import Codec

VIEW = ViewId(8, 1)  # token_site's
LINES_MAX = 20_000  # lines of Python that one packet may cost
HUGE = [2**62, 2_000_000, 2**31]


def frame(sender: int, counter: int, data: bytes = b"", **fields: Any) -> Frame:
    return Frame(sender, 1, counter, 1, int(Service.AGREED), struct.pack("<I", len(data)), data, **fields)


def bare(setup: Setup) -> Stack:
    """token_site without process groups, whose states would be the first messages of a view."""
    return chain(Framing(), Seam(), tickets("token_site", setup), Link(setup))


class Forger:
    """A group of honest members, and somebody who knows their packets."""

    def __init__(self, protocol: str, members: int, start: bool = True, **options: Any) -> None:
        self.codec = Codec(registry.get(protocol).packets)
        self.script = Script(bare if protocol == "token_site" else None)
        words = " ".join(f"{name}={value}" for name, value in options.items())
        self.script.run(f"members {members} protocol={protocol} {words}")
        self.script.run("show note")
        if protocol == "totem" and start:
            self.script.run("run 400ms")
        elif protocol == "token_site":
            self.script.run("run 30ms")
            assert self.ring(1).talk.id == VIEW
        elif protocol in ("fifo", "causal"):
            self.script.run("run 400ms")
        self.script.out.clear()

    def stack(self, id: int) -> Any:
        return self.script.members[id].stack

    def ring(self, id: int) -> Any:
        return self.stack(id).nodes[-1].layer

    def say(self, packet: Packet, source: int, to: int, drained: bool = True) -> list[Action]:
        """A forged packet arrives; what its receiver says."""
        script = self.script
        decoded = self.codec.decode(self.codec.encode(packet))
        peer = Peer(source, script.members[source].identity.incarnation)
        actions = self.stack(to).receive(script.now, 0, peer, decoded, 0)
        script._act(to, actions)
        if drained:
            more = self.stack(to).drained(script.now, 0)
            script._act(to, more)
            actions = actions + more
        return actions


def reasons(actions: list[Action]) -> list[str]:
    return [action.fields["reason"] for action in actions if isinstance(action, Note) and action.name == "drop"]


def lines(call: Callable[[], Any]) -> int:
    """How many lines of Python it runs; more than `LINES_MAX` end it."""
    count = 0

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal count
        if event == "line":
            count += 1
            if count > LINES_MAX:
                raise TimeoutError(f"more than {LINES_MAX} lines")
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


# ------------------------------------------------------------------------------------------------------ the token ring


def lone_speaker() -> tuple[Forger, Any]:
    """Member 1 alone has sent for some rotations: the token rests with it."""
    forger = Forger("totem", 3)
    script, layer = forger.script, forger.ring(1)
    for _ in range(1_000):
        waiting = next((pair for pair in sorted(script.channels) if script.channels[pair]), None)
        if waiting is not None:
            script._hand_over(*waiting, 1)
        if layer.turn.hand.lingers:
            script.out.clear()
            return forger, layer
        if not layer.sender:
            script.run("submit 1 x")
        script.run("advance 50us")
    raise AssertionError("nobody lingers")


def test_a_number_above_the_token_in_hand_is_nobodys() -> None:
    forger, layer = lone_speaker()
    ring = layer.rings.ring
    said = forger.say(RingData(ring.id, ring.high + 1, frame(2, 1)), 2, 1)
    assert reasons(said) == ["number"]
    forger.script.run("submit 1 y")
    forger.script.run("run 20ms")
    assert sum(" 'y'" in line for line in forger.script.out) == 3


@pytest.mark.parametrize("kind", [RingData, Recovered])
def test_a_ring_of_one_takes_frames_of_nobody_else(kind: type[Packet]) -> None:
    forger = Forger("totem", 2)
    forger.script.run("crash 2")
    for _ in range(100):
        forger.script.run("run 2ms")
        if len(forger.ring(1).rings.ring.members) == 1:
            break
    ring = forger.ring(1).rings.ring
    assert ring.members == (1,)
    data = RingData(ring.id, ring.high + 1, frame(2, 1))
    packet = data if kind is RingData else Recovered(ring.id, ring.high + 1, data)
    said = forger.say(packet, 2, 1)
    assert kind is not RingData or reasons(said)
    forger.script.run("submit 1 y")
    forger.script.run("run 200ms")
    assert any("deliver 1.1 'y'" in line for line in forger.script.out)


def test_a_frame_of_a_stranger_or_of_another_life_is_dropped() -> None:
    forger = Forger("totem", 3)
    ring = forger.ring(2).rings.ring
    for stranger in (frame(9, 1), msgspec.structs.replace(frame(3, 1), incarnation=77)):
        assert reasons(forger.say(RingData(ring.id, ring.high + 2, stranger), 3, 2)) == ["origin"]
    assert not ring.store


def committing(forger: Forger, id: int) -> CommitToken:
    """Stop when the second rotation of a new ring's commit token is on its way to this member."""
    script = forger.script
    script.run("crash 3")
    for _ in range(4000):
        for pair in sorted(script.channels):
            channel = script.channels[pair]
            while channel:
                _, packet = channel[0]
                if pair[1] == id and type(packet) is CommitToken and packet.to == id and packet.hop >= 2:
                    return packet
                script._hand_over(*pair, 1)
        script.run("advance 500us")
    raise AssertionError("no commit token")


def test_an_entry_that_is_not_mine_is_not_believed() -> None:
    forger = Forger("totem", 3)
    token = committing(forger, 1)
    foreign = msgspec.msgpack.encode(RingEntry(ViewId(4, 2), 0, 0, 0, False, ()))
    entries = (Entry(token.entries[0].incarnation, foreign), *token.entries[1:])
    said = forger.say(msgspec.structs.replace(token, entries=entries), 2, 1)
    assert reasons(said) == ["commit token"]
    forger.script.run("run 200ms")
    assert forger.ring(1).rings.ring.members == (1, 2)


def test_a_commit_token_whose_members_changed_on_its_way_is_not_believed() -> None:
    forger = Forger("totem", 3)
    token = committing(forger, 1)
    entry = token.entries[0]
    other = CommitToken(token.ring_id, (1, 2, 3), 3, 1, (entry, entry, entry))
    assert reasons(forger.say(other, 2, 1)) == ["commit token"]
    forger.script.run("run 200ms")
    assert forger.ring(1).rings.ring.members == (1, 2)


@pytest.mark.parametrize(
    "lie",
    [
        {"obligation": tuple(range(100, 164))},
        {"aru": 3, "high_delivered": 2**62},
        {"aru": 3, "safe_upto": 2**62},
        b"\xc1",
    ],
    ids=["obliged to strangers", "delivered beyond aru", "safe beyond aru", "no entry"],
)
def test_an_entry_that_cannot_be_true_ends_the_attempt_alone(lie: Any) -> None:
    forger = Forger("totem", 3)
    token = committing(forger, 1)
    entry = msgspec.msgpack.decode(token.entries[1].state, type=RingEntry)
    state = lie if isinstance(lie, bytes) else msgspec.msgpack.encode(msgspec.structs.replace(entry, **lie))
    entries = (token.entries[0], Entry(token.entries[1].incarnation, state))
    forger.say(msgspec.structs.replace(token, entries=entries), 2, 1)
    assert forger.ring(1).rings.attempt is None
    forger.script.run("run 400ms")
    assert forger.ring(1).rings.ring.members == (1, 2)


@pytest.mark.parametrize("packet", [HoldCancel(ViewId(2**63 - 1, 1)), RingData(ViewId(2**63 - 2, 1), 1, frame(1, 1))])
def test_no_packet_names_a_ring_beyond_all_numbers(packet: Packet) -> None:
    codec = Codec(registry.get("totem").packets)
    with pytest.raises(WireError, match="packet"):
        codec.decode(codec.encode(packet))


@pytest.mark.parametrize("seq", [2**62, RING_SEQ_MAX])
def test_the_highest_ring_number_ends_nobody(seq: int) -> None:
    forger = Forger("totem", 3)
    for source in (2, 3):
        forger.say(HoldCancel(ViewId(seq, source)), source, 1)
    forger.script.run("run 400ms")
    forger.script.run("status 1 ring.members")


def test_a_life_that_said_my_timeout_is_not_refused_for_another() -> None:
    forger = Forger("totem", 2)
    ring = forger.ring(1)
    mine = ring.membership.times.timeout
    join = Join(1, 8, (), None, PackedRows((), (), ()), mine + 1, tell(Cause("start")))
    forger.say(join, 2, 1)
    assert ring.membership.status()["other_timeout_ns"] == {}
    forger.script.run("run 100ms")
    assert ring.rings.ring.members == (1, 2)


def test_a_life_that_was_refused_counts_when_it_says_my_timeout() -> None:
    """The first that is heard of member 2 is forged; its own Joins follow."""
    forger = Forger("totem", 2, start=False)
    join = Join(1, 8, (), None, PackedRows((), (), ()), 77, tell(Cause("start")))
    forger.say(join, 2, 1)
    assert forger.ring(1).membership.status()["other_timeout_ns"] == {2: 77}
    forger.script.run("run 200ms")
    assert forger.ring(1).rings.ring.members == (1, 2)


def test_a_timeout_that_a_member_never_said_is_forgotten() -> None:
    """1 forgot that 2 said its T, as the words of another life came between; 2 is in a view and says it no more."""
    forger = Forger("totem", 2)
    forger.script.run("run 200ms")
    m = forger.ring(1).membership
    m.sight._same_timeout.clear()
    forger.say(Join(1, 8, (), None, PackedRows((), (), ()), 77, tell(Cause("start"))), 2, 1)
    assert m.status()["other_timeout_ns"] == {2: 77}
    forger.script.run("run 1000ms")
    assert forger.ring(1).rings.ring.members == (1,) and m.status()["other_timeout_ns"] == {2: 77}
    forger.script.run("run 3000ms")
    assert forger.ring(1).rings.ring.members == (1, 2) and m.status()["other_timeout_ns"] == {}


def test_a_ring_keeps_only_so_many_bytes() -> None:
    """Frames larger than a member's own are kept near the mark only."""
    forger = Forger("totem", 2, frame=1400)
    layer = forger.ring(1)
    ring, large = layer.rings.ring, bytes(60_000)
    for k in range(2, 3_000):
        forger.say(RingData(ring.id, ring.released + k, frame(2, k, large)), 2, 1, drained=False)
    held = sum(len(data.frame.data) for data in ring.store.values())
    assert held <= 80 * 2**20, f"{held >> 20} MiB"


# ------------------------------------------------------------------------------------------------------ token_site


def sent(c: int, sender: int, *tickets: tuple[int, int, int], data: bytes = b"x") -> Sent:
    return Sent(c, (3, 0), frame(sender, c, data), tickets, tickets[-1][0] if tickets else 0)


def multicast(seq: int, rank: int, body: Body, vec: tuple[int, ...] = (0, 0, 0)) -> Data[Any]:
    return Data(VIEW, seq, (*vec[:rank], seq, *vec[rank + 1 :]), 64, body)


@pytest.mark.parametrize(
    ("packets", "why"),
    [
        ([(3, multicast(1, 2, sent(2, 3, (1, 3, 2))))], "tickets"),
        ([(3, multicast(1, 2, sent(2, 3)))], "counter"),
        ([(2, multicast(1, 1, sent(1, 2, (1, 2, 1))))], "tickets"),
        ([(2, multicast(1, 1, sent(1, 1)))], "origin"),
        ([(2, multicast(1, 1, Null((), 2**63 - 1)))], "tickets"),
        ([(2, multicast(1, 1, Sent(1, (9, 9), frame(2, 1))))], "sequencer"),
        ([(3, multicast(1, 2, Null(((1, 2, 2), (2, 2, 1)), 2)))], "tickets"),
        ([(3, multicast(1, 2, sent(1, 3, (5, 3, 1)))), (3, multicast(2, 2, sent(2, 3, (4, 3, 2))))], "tickets"),
    ],
    ids=[
        "out of order with a ticket",
        "out of order",
        "no sequencer",
        "another's frame",
        "a promise",
        "role",
        "backward frames",
        "backward numbers",
    ],
)
def test_a_body_that_cannot_be_true_is_dropped(packets: list[tuple[int, Packet]], why: str) -> None:
    forger = Forger("token_site", 3)
    said = [forger.say(packet, source, 1) for source, packet in packets]
    assert reasons(said[-1]) == [why]
    forger.script.run("submit 3 y")
    forger.script.run("run 20ms")


def test_one_number_with_two_vectors_is_inserted_once() -> None:
    forger = Forger("token_site", 3)
    one = multicast(1, 1, sent(1, 2))
    assert not reasons(forger.say(multicast(1, 1, sent(1, 2), (0, 0, 1)), 2, 1)), "waits for member 3"
    assert reasons(forger.say(one, 2, 1)) == ["two vectors"]
    forger.say(multicast(1, 2, Null((), 0)), 3, 1)
    assert forger.stack(1).queues()["link.held"] == 0


def test_nobody_but_me_writes_my_own_line() -> None:
    forger = Forger("token_site", 3)
    said = forger.say(Retrans(0, multicast(1, 0, sent(1, 1))), 2, 1)
    assert reasons(said) == ["own line"]
    forger.script.run("submit 1 y")
    forger.script.run("run 20ms")
    assert sum("deliver 1.1 'y'" in line for line in forger.script.out) == 3


@pytest.mark.parametrize("number", HUGE)
@pytest.mark.parametrize("kind", ["status", "own status", "data", "held data", "retrans", "nack"])
def test_no_number_makes_a_loop_or_a_list_longer(kind: str, number: int) -> None:
    forger = Forger("token_site", 3)
    for _ in range(3):
        forger.script.run("submit 2 x")
    forger.script.run("pass 2 1")
    packet: Packet = {
        "status": Status(VIEW, (0, 0, number), 64),
        "own status": Status(VIEW, (number, 0, 0), 64),
        "data": multicast(1, 2, Null((), 0), (0, number, 0)),
        "held data": multicast(number, 2, Null((), 0)),
        "retrans": Retrans(2, multicast(number, 2, Null((), 0), (0, number, 0))),
        "nack": Nack(VIEW, ((0, 1, number), (1, 1, number), (2, 1, number)), again=True),
    }[kind]
    assert lines(lambda: forger.say(packet, 3, 1)) <= LINES_MAX
    assert sum(forger.stack(1).queues().values()) < 100
    assert lines(lambda: forger.script.run("advance 10ms")) <= LINES_MAX


def test_ranges_of_a_nack_do_not_overlap() -> None:
    codec = Codec(registry.get("token_site").packets)
    for ranges in [((0, 1, 9),) * 64, ((0, 5, 9), (0, 1, 5)), ((1, 1, 1), (0, 1, 1))]:
        with pytest.raises(WireError, match="range"):
            codec.decode(codec.encode(Nack(VIEW, ranges)))


def test_what_nobody_reads_as_stable_is_bounded() -> None:
    """In-order messages of 30 kB whose other receivers never say that they have them."""
    forger = Forger("token_site", 3, frame=60_000)
    payload = bytes(30_000)
    dropped = 0
    for seq in range(1, 3_000):
        dropped += len(reasons(forger.say(multicast(seq, 1, sent(seq, 2, data=payload)), 2, 1)))
    buffer = forger.ring(1).talk.traffic.stability.buffer
    assert sum(len(data.body.frame.data) for data in buffer.values()) < 16 * 2**20
    assert dropped and len(buffer) < 400


def test_frames_that_nobody_orders_are_bounded() -> None:
    """In-order messages that all are said to have, and tickets that never come."""
    forger = Forger("token_site", 3)
    for seq in range(1, 10_000):
        forger.say(multicast(seq, 1, sent(seq, 2, data=bytes(10))), 2, 1)
        if seq % 50 == 0:
            have = tuple(forger.ring(1).talk.traffic.reception.have)
            for other in (2, 3):
                forger.say(Status(VIEW, have, 64), other, 1)
    assert forger.stack(1).queues()["hybrid.undelivered"] <= 4_096


@pytest.mark.parametrize("number", [2**63 - 1, 2**62 + 1, 2**62, 2**40])
def test_no_promise_makes_later_tickets_larger_than_their_type(number: int) -> None:
    """The clock of tickets is kept over views; the next sequencer has seen the forged one."""
    forger = Forger("token_site", 3)
    for to in (1, 2):
        forger.say(multicast(1, 2, Null((), number)), 3, to)
    forger.script.run("crash 3")
    forger.script.run("run 400ms")
    assert forger.stack(2).status()["hybrid"]["sequencer"] == 2
    forger.script.run("submit 1 x")
    tickets = []
    while waiting := next((pair for pair in sorted(forger.script.channels) if forger.script.channels[pair]), None):
        _, packet = forger.script.channels[waiting][0]
        assert forger.codec.decode(forger.codec.encode(packet)) == packet
        tickets += packet.body.tickets if type(packet) is Data else ()
        forger.script._hand_over(*waiting, 1)
    assert tickets and forger.script.members[1].log == forger.script.members[2].log == ["1.1"]


def test_a_nack_of_a_rank_that_the_view_has_not_is_dropped() -> None:
    forger = Forger("token_site", 3)
    assert reasons(forger.say(Nack(VIEW, ((0, 1, 1), (3, 1, 1))), 2, 1)) == ["range"]


# ------------------------------------------------------------------------------------- views of the layer, fifo, causal


@pytest.mark.parametrize("protocol", ["fifo", "causal"])
def test_a_frame_of_another_member_is_dropped(protocol: str) -> None:
    forger = Forger(protocol, 3)
    said = forger.say(Data(forger.ring(1).talk.id, 1, (0, 1, 0), 64, Plain(frame(3, 1))), 2, 1)
    assert reasons(said) == ["origin"] and not any(isinstance(a, Up) for a in said)


@pytest.mark.parametrize("number", HUGE)
def test_a_vector_that_only_acknowledges_makes_no_list_longer(number: int) -> None:
    """In fifo order a message enters whatever it follows."""
    forger = Forger("fifo", 3)
    data = Data(forger.ring(1).talk.id, 1, (0, 1, number), 64, Plain(frame(2, 1)))
    said: list[Action] = []
    assert lines(lambda: said.extend(forger.say(data, 2, 1))) <= LINES_MAX
    assert reasons(said) == ["too far ahead"] and forger.stack(1).queues()["link.gaps"] == 0


@pytest.mark.parametrize(
    ("lie", "why"),
    [
        ({"have": (0, 0, 2**62)}, "more than can exist"),
        ({"have": (2**62, 0, 0)}, "more than can exist"),
        ({"have": (0, 0)}, "another view"),
        ({"plan": (ViewId(8, 1), b"\x04")}, "strangers"),
        (b"\xc1", "entry"),
    ],
    ids=["of another's line", "of my line", "short", "a plan of strangers", "no entry"],
)
def test_an_entry_of_the_layer_that_cannot_be_true_ends_the_attempt_alone(lie: Any, why: str) -> None:
    forger = Forger("causal", 3)
    token = committing(forger, 1)
    entry = msgspec.msgpack.decode(token.entries[1].state, type=LayerEntry)
    state = lie if isinstance(lie, bytes) else msgspec.msgpack.encode(msgspec.structs.replace(entry, **lie))
    entries = (token.entries[0], Entry(token.entries[1].incarnation, state))
    said: list[Action] = []
    forged = msgspec.structs.replace(token, entries=entries)
    assert lines(lambda: said.extend(forger.say(forged, 2, 1))) <= LINES_MAX
    assert "entry" in reasons(said) and why in str(said)
    forger.script.run("run 2000ms")
    assert forger.ring(1).talk.members == (1, 2)


@pytest.mark.parametrize("protocol", ["totem", "causal"])
@pytest.mark.parametrize(
    "lie",
    [Record(Mark(8, 0, b"\x08")), Record(Mark(8, 3, b"\x01")), Record(left=((8, 9),)), b"\xc1"],
    ids=["of a stranger", "made by a stranger", "left by a stranger", "no entry"],
)
def test_a_record_of_strangers_ends_the_attempt_alone(protocol: str, lie: Any) -> None:
    forger = Forger(protocol, 3, partition="primary-majority")
    token = committing(forger, 1)
    entry = msgspec.msgpack.decode(token.entries[1].state, type=RecordedEntry)
    state = lie if isinstance(lie, bytes) else msgspec.msgpack.encode(RecordedEntry(lie, entry.state))
    entries = (token.entries[0], Entry(token.entries[1].incarnation, state))
    said: list[Action] = []
    forged = msgspec.structs.replace(token, entries=entries)
    assert lines(lambda: said.extend(forger.say(forged, 2, 1))) <= LINES_MAX
    assert reasons(said) == ["entry"] and "of member 2" in str(said)
    forger.script.run("run 2000ms")
    membership = forger.ring(1).membership
    assert membership.members == (1, 2) and membership.primary.record.last.members == b"\x03", "it is primary"


@pytest.mark.parametrize("number", HUGE)
def test_no_number_of_a_flush_makes_a_loop_longer(number: int) -> None:
    forger = Forger("causal", 3)
    token = committing(forger, 1)
    forger.say(token, 2, 1, drained=False)
    ring, view = token.ring_id, forger.ring(1).talk.id
    packets: list[Packet] = [
        FlushNack(ring, view, ((0, 1, number), (1, 1, number)), (1, 2, 9), 2**16 - 1),
        FlushNack(ring, view, ((0, 1, number), (9, 1, number)), (), 0),
        FlushState(ring, view, 2, 63, 64, b"x"),
        FlushState(ring, view, 9, 0, 1, b"x"),
        FlushData(ring, 2, Data(view, number, (0, 0, number), 64, Plain(frame(3, 1)))),
        FlushToken(ring, 1, number, (1, 2, 9)),
        FlushToken(ring, 1, 7, (1, 2), install=True),
    ]
    counted: list[str] = []
    for packet in packets:
        said: list[Action] = []
        assert lines(lambda p=packet, to=said: to.extend(forger.say(p, 2, 1))) <= LINES_MAX  # type: ignore[misc]
        counted += reasons(said)
    assert counted == ["range", "flush state", "flush data", "flush token", "install before the flush"]
    assert sum(forger.stack(1).queues().values()) < 100
    forger.script.run("run 2000ms")
    assert forger.ring(1).talk.members == (1, 2)


def test_ranges_of_a_flush_nack_do_not_overlap() -> None:
    codec = Codec(registry.get("causal").packets)
    with pytest.raises(WireError, match="range"):
        codec.decode(codec.encode(FlushNack(VIEW, VIEW, ((0, 1, 9),) * 64, (), 0)))


# ----------------------------------------------------------------------------------------------- framing and groups


def fragment(sender: int, part: int, parts: int, data: bytes = b"x", **fields: Any) -> Frame:
    return Frame(sender, 1, fields.pop("counter", 1), 1, 3, b"", data, part=part, parts=parts, **fields)


def test_a_message_in_parts_is_bounded_and_its_parts_agree() -> None:
    framing, large = Framing(), bytes(60_000)
    said: list[Action] = []
    for part in range(1_000):
        said += framing.up(0, Ordered(fragment(1, part, 16_000, large)), 0)
    assert framing.inbox.held() <= MESSAGE_BYTES_MAX and reasons(said)
    framing = Framing()
    framing.up(0, Ordered(fragment(1, 0, 3)), 0)
    assert reasons(framing.up(0, Ordered(fragment(1, 1, 2)), 0)) == ["fragment"]
    for life in range(100):
        framing.up(0, Ordered(msgspec.structs.replace(fragment(1, 0, 3), incarnation=life)), 0)
    assert framing.inbox.open() == 1


def merging() -> Groups:
    """Member 1 of a view of three waits for the groups of 2 and 3, each alone before."""
    groups = Groups(1)
    groups.up(0, ViewChange(View(ViewId(8, 1), ViewKind.REGULAR, (1,))), 0)
    groups.up(0, ViewChange(View(ViewId(12, 1), ViewKind.TRANSITIONAL, (1,))), 0)
    groups.up(0, ViewChange(View(ViewId(12, 1), ViewKind.REGULAR, (1, 2, 3))), 0)
    return groups


def control(sender: int, message: Any) -> Control:
    data = msgspec.msgpack.encode(message)
    return Control(Batch(sender, 1, 1, 1, 3, struct.pack("<I", len(data)), data))


@pytest.mark.parametrize(
    ("sender", "state"),
    [
        (2, GState(ViewId(12, 1), (), tuple((f"g{k}", (2,)) for k in range(4_096)))),
        (2, GState(ViewId(12, 1), (3,), ())),
        (2, GState(ViewId(12, 1), (2, 9), (("g", (9,)),))),
    ],
    ids=["nobody's", "another's", "of strangers"],
)
def test_a_state_of_groups_that_cannot_be_true_is_dropped(sender: int, state: GState) -> None:
    groups = merging()
    assert reasons(groups.up(0, control(sender, state), 0)) == ["group state"]
    assert not groups.groups and groups.missing == {1, 2, 3}


def test_messages_wait_for_groups_only_so_long() -> None:
    groups = merging()
    said: list[Action] = []
    data = bytes(1_000)
    for k in range(10_000):
        said += groups.up(0, Delivered(Batch(2, 1, k, 1, 3, b"", data)), 0)
    assert len(groups.held) <= 4_096
    went = [action.event.batch.counter for action in said if isinstance(action, Up) and type(action.event) is Delivered]
    assert went == list(range(10_000 - len(groups.held)))


def test_joins_of_strangers_and_junk_change_nothing() -> None:
    groups = Groups(1)
    groups.up(0, ViewChange(View(ViewId(8, 1), ViewKind.REGULAR, (1,))), 0)
    assert reasons(groups.up(0, Control(Batch(1, 1, 1, 1, 3, b"", b"\xc1")), 0)) == ["control"]
    groups.up(0, control(9, GJoin("g")), 0)
    assert not groups.groups


def test_drops_of_a_core_are_counted_by_reason() -> None:
    """In a simulated run; a live member counts them beside those of its datagrams."""
    from ordercast.contract import dropped
    from ordercast.sim.scenario import Scenario
    from ordercast.sim.world import run
    from ordercast.stack import chain

    class Grumbling(Framing):
        def up(self, now: int, event: Any, child: int) -> list[Action]:
            return [*super().up(now, event, child), dropped("grumble")]

    def maker(setup: Any) -> Any:
        return chain(Groups(setup.identity.me), Grumbling(), totem.RingLayer(setup, setup.options))

    outcome = run(Scenario(messages=10), maker=maker)
    assert outcome.drops["grumble"] > 10 and outcome.notes["drop"] == outcome.drops["grumble"]

"""The guard at a member's door: what opens, in which order it is looked at, and what a stranger can cost."""

from collections.abc import Callable

import pytest

from ordercast.drivers.admission import Admission
from ordercast.drivers.guard import LIVES_MAX, WINDOW, Guard, Window
from ordercast.drivers.incoming import Incoming
from ordercast.drivers.keyring import KeyRing
from ordercast.drivers.rates import Rate
from ordercast.drivers.rotation import Rotation
from ordercast.drivers.terms import Agreement, FreshTerms
from ordercast.errors import WireError
from ordercast.limits import STRANGERS_PER_S, UNOPENED_PER_S
from ordercast.registry import get
from ordercast.types import Identity, Peer
from ordercast.wire import header
from ordercast.wire.codec import Codec
from ordercast.wire.seal import GroupKey, Sealer

GROUP, T, SECOND = "g", 200_000_000, 1_000_000_000
OLD, NEW, FOREIGN = GroupKey(bytes(range(32))), GroupKey(bytes(range(1, 33))), GroupKey(bytes(range(2, 34)))
ME, PEER = Identity(1, 100, (1, 2, 3), GROUP, 0), Peer(2, 50)
HERE, ELSEWHERE = ("10.0.0.2", 7400), ("10.0.0.9", 666)


def guard(*keys: GroupKey, hosts: dict[int, set[str]] | None = None, hears_self: bool = False) -> Guard:
    return Guard(KeyRing(keys or (OLD,), (keys or (OLD,))[0].name), ME, hears_self, hosts or {})


def sealed(counter: int, body: bytes = b"packet", life: Peer = PEER, key: GroupKey = OLD, net: int = 0) -> memoryview:
    return memoryview(Sealer(key, GROUP, life).seal(net, counter, body))


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(WireError) as caught:
        call()
    return caught.value.reason


def test_the_ids_of_the_keys_here_differ() -> None:
    assert len({OLD.id, NEW.id, FOREIGN.id}) == 3


def test_what_a_member_seals_opens_once() -> None:
    door = guard()
    for counter in (5, 6, 9, 7):
        assert door.open(0, 0, sealed(counter, b"%d" % counter), HERE) == b"%d" % counter
        assert refused(lambda counter=counter: door.open(0, 0, sealed(counter), HERE)) == "replay"


def test_the_order_of_checks() -> None:
    """Each datagram has every fault from some check on; the first is told."""
    door = guard(hosts={2: {"10.0.0.2"}})
    good = bytearray(sealed(1))

    def changed(at: int, value: bytes) -> memoryview:
        out = bytearray(good)
        out[-1] ^= 1
        out[at : at + len(value)] = value
        return memoryview(bytes(out))

    assert refused(lambda: door.open(0, 0, memoryview(b"xx"), ELSEWHERE)) == "short"
    assert refused(lambda: door.open(0, 0, memoryview(bytes(good[:48])), ELSEWHERE)) == "short"
    assert refused(lambda: door.open(0, 0, memoryview(bytes(65_508)), ELSEWHERE)) == "long"
    assert refused(lambda: door.open(0, 0, changed(0, b"XX\x09\x00"), ELSEWHERE)) == "magic"
    assert refused(lambda: door.open(0, 0, changed(2, b"\x09\x00"), ELSEWHERE)) == "version"
    assert refused(lambda: door.open(0, 0, changed(4, bytes(8)), ELSEWHERE)) == "address"
    assert refused(lambda: door.open(0, 0, changed(4, bytes(8)), HERE)) == "group"
    assert refused(lambda: door.open(0, 0, changed(3, b"\x7f"), HERE)) == "key"
    assert refused(lambda: door.open(0, 0, changed(3, b"\x00"), HERE)) == "key", "what is not sealed is not taken"
    assert refused(lambda: door.open(0, 0, changed(32, b""), HERE)) == "tag"
    assert not door._others and not door._let_in, "nothing is kept before the tag"
    door.open(0, 0, memoryview(bytes(good)), HERE)
    assert refused(lambda: door.open(0, 0, changed(32, b""), HERE)) == "tag", "the tag comes before the window"
    assert refused(lambda: door.open(0, 0, memoryview(bytes(good)), HERE)) == "replay"
    while door._strangers.take(0, ELSEWHERE[0]):
        pass
    assert refused(lambda: door.open(0, 0, changed(0, b"XX"), ELSEWHERE)) == "magic"
    assert refused(lambda: door.open(0, 0, changed(4, bytes(8)), ELSEWHERE)) == "rate", "before anything of a key"


def test_a_bad_tag_moves_no_window() -> None:
    door = guard()
    door.open(0, 0, sealed(1), HERE)
    forged = bytearray(sealed(2**31))
    forged[-1] ^= 1
    assert refused(lambda: door.open(0, 0, memoryview(forged), HERE)) == "tag"
    assert door.open(0, 0, sealed(2), HERE) == b"packet"


def test_the_window_beside_a_set() -> None:
    """Against a dumb twin that remembers everything."""
    import random

    chance, window, seen, top = random.Random(5), Window(), set(), 0
    for _ in range(20_000):
        counter = max(1, top + chance.randrange(-2 * WINDOW, WINDOW // 8 + 2))
        new = counter not in seen and counter > top - WINDOW
        assert window.see(counter) is new, counter
        if new:
            seen.add(counter)
            top = max(top, counter)
    assert not window.see(0)


def test_sub_keys_change_by_themselves() -> None:
    """2**32 is reached by setting the counter; what is late from before still opens, what jumps ahead does not."""
    door = guard()
    for counter in (2**32 - 2, 2**32 + 1, 2**32 - 1, 2**32 + 2):
        assert door.open(0, 0, sealed(counter), HERE) == b"packet"
    for counter in (2**33 + 2**32, 2**64 - 1):
        assert refused(lambda counter=counter: door.open(0, 0, sealed(counter), HERE)) == "counter"
    assert door.open(0, 0, sealed(2**33), HERE) == b"packet"
    assert refused(lambda: door.open(0, 0, sealed(2**32 + 3), HERE)) == "replay", "behind the window"
    assert refused(lambda: door.open(0, 0, sealed(2**32 - 3), HERE)) == "counter"


def test_a_life_may_be_met_in_any_epoch() -> None:
    assert guard().open(0, 0, sealed(7 * 2**32 + 5), HERE) == b"packet"


def test_no_net_takes_what_was_said_on_another() -> None:
    door = guard()
    assert refused(lambda: door.open(0, 1, sealed(1, net=0), HERE)) == "tag"
    assert door.open(0, 0, sealed(1), HERE) and door.open(0, 1, sealed(2, net=1), HERE)


def test_own_datagrams() -> None:
    own = Peer(ME.me, ME.incarnation)
    assert refused(lambda: guard().open(0, 0, sealed(1, life=own), HERE)) == "own"
    assert guard(hears_self=True).open(0, 0, sealed(1, life=own), HERE) == b"packet"


def test_a_life_that_changes_its_key_stays_one_life() -> None:
    """Its counter goes on, so that nothing said under one key can be said again under the other."""
    door = guard(OLD, NEW)
    door.open(0, 0, sealed(5), HERE)
    assert door.open(0, 0, sealed(6, key=NEW), HERE) == b"packet"
    assert refused(lambda: door.open(0, 0, sealed(6, key=OLD), HERE)) == "replay"
    door.forget_key(OLD.id)
    door.ring.use(NEW.name, 1)
    door.ring.drop(OLD.name)
    assert refused(lambda: door.open(0, 0, sealed(7), HERE)) == "key"
    assert door.open(0, 0, sealed(8, key=NEW), HERE) == b"packet" and door.lacks == {OLD.id: 0}


def test_recorded_lives_push_out_nobody() -> None:
    door = guard()
    prefix = bytes(sealed(1)[:24])
    door.open(0, 0, sealed(1), HERE)
    door.let_in(PEER, {prefix: PEER})
    for k in range(2 * LIVES_MAX):
        door.open(k * SECOND, 0, sealed(1, life=Peer(2, 1000 + k)), ELSEWHERE)
    assert len(door._others) <= LIVES_MAX
    assert refused(lambda: door.open(0, 0, sealed(1), HERE)) == "replay", "its window is still there"


def test_rates_before_cryptography(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a flood with forged tags so many are looked at a second, per address and in all; the members' are not hit."""
    door = guard()
    door.places = frozenset([HERE])
    opened = []
    real = Guard._key
    monkeypatch.setattr(Guard, "_key", lambda *words: opened.append(1) or real(*words))
    reasons: dict[str, int] = {}
    for k in range(20_000):
        forged = bytearray(sealed(1, life=Peer(2, k)))
        forged[-1] ^= 1
        now = k * SECOND // 10_000
        reason = refused(lambda forged=forged, now=now: door.open(now, 0, memoryview(forged), ELSEWHERE))
        reasons[reason] = reasons.get(reason, 0) + 1
    assert len(opened) == reasons["tag"] <= 3 * STRANGERS_PER_S + 1 and reasons["rate"] > 19_000
    for k in range(20_000):
        forged = bytearray(sealed(1, life=Peer(2, k)))
        forged[-1] ^= 1
        where = (f"10.1.{k // 250 % 250}.{k % 250}", 1)
        refused(lambda forged=forged, where=where: door.open(2 * SECOND, 0, memoryview(forged), where))
    assert len(opened) <= 3 * STRANGERS_PER_S + 1 + UNOPENED_PER_S
    assert door.open(2 * SECOND, 0, sealed(1), HERE) == b"packet", "a member starts during a flood"


def test_rate() -> None:
    rate = Rate(10, 5)
    assert [rate.take(10**12) for _ in range(7)] == [True] * 5 + [False] * 2
    assert not rate.take(10**12 + SECOND // 20) and rate.take(10**12 + SECOND // 10)


def test_a_life_that_moves_is_limited_until_it_opens() -> None:
    door = guard()
    door.open(0, 0, sealed(1), HERE)
    while door._strangers.take(0, ELSEWHERE[0]):
        pass
    assert refused(lambda: door.open(0, 0, sealed(2), ELSEWHERE)) == "rate"
    assert door.open(SECOND, 0, sealed(2), ELSEWHERE) and door.open(SECOND, 0, sealed(3), ELSEWHERE)


# ------------------------------------------------------------------------------------------------- with admission


class Member:
    """One end of the way in: its own life, what it lets in, and what it says."""

    def __init__(self, me: int, incarnation: int, key: GroupKey = OLD) -> None:
        identity = Identity(me, incarnation, (1, 2, 3), GROUP, 0)
        self.life, self.now, self.count = Peer(me, incarnation), 0, 0
        self.got: list[tuple[Peer, object]] = []
        self.said: list[tuple[int, object]] = []
        ring = KeyRing([key], key.name)
        self.sealer = Sealer(key, GROUP, self.life)
        self.agreement = Agreement(self.life, (1, 2, 3), {"t": "1"}, T, secret=b"%d" % incarnation * 4)
        self.codec = Codec(get("totem").packets)
        self.incoming = Incoming(
            self.codec, Admission(identity, False, True, True), 6, lambda: self.now,
            lambda now, net, peer, packet, drops, body: self.got.append((peer, packet)), lambda now, why: None,
            self.agreement, lambda net, to, said: self.said.append((to, said)),
            Guard(ring, identity, False, {}), Rotation(ring, lambda name: "no", lambda: None),
        )  # fmt: skip

    def seal(self, packet: object) -> bytes:
        self.count += 1
        return self.sealer.seal(0, self.count, self.codec.encode(packet))

    def hear(self, *datagrams: bytes) -> None:
        for datagram in datagrams:
            self.incoming.one(0, memoryview(datagram), 0, (f"10.0.0.{datagram[12]}", 7400))

    def answers(self) -> list[bytes]:
        said, self.said = self.said, []
        return [self.seal(packet) for _, packet in said]


def meet(a: Member, b: Member) -> list[bytes]:
    """All that `b` says until `a` has let it in."""
    first = b.seal(b.agreement.first(b.now))
    a.hear(first)
    b.hear(*a.answers())
    answers = b.answers()
    a.hear(*answers)
    return [first, *answers]


def test_a_life_is_let_in_after_it_echoed_a_challenge() -> None:
    a, b = Member(1, 100), Member(2, 50)
    a.hear(b.seal(b.agreement.first(0)))
    (answer,) = a.answers()
    assert not a.agreement.same(b.life)
    b.hear(answer)
    assert b.agreement.same(a.life), "the answer echoed the first challenge"
    a.hear(*b.answers())
    assert a.agreement.same(b.life)
    assert a.incoming.drops == {}


def test_yesterday_lets_nobody_in() -> None:
    """All that a life said, replayed to a member that starts later, or much later in the same life of a listener."""
    a, b = Member(1, 100), Member(2, 50)
    recorded = meet(a, b)
    assert a.agreement.same(b.life)
    today = Member(1, 200)
    today.hear(*recorded)
    assert not today.agreement.same(b.life) and not today.got and b.life not in today.incoming.admission.last.values()
    assert all(isinstance(said, FreshTerms) for _, said in today.said), "nothing but a challenge follows"
    again = Member(1, 100)  # the same secret: the very life that was spoken to, had it forgotten everything
    again.now = 3 * 10 * SECOND
    again.hear(*recorded)
    assert not again.agreement.same(b.life), "a challenge does not stay good for ever"


def test_a_recording_of_the_own_earlier_life_is_no_second_claimant() -> None:
    before, b, now = Member(1, 90), Member(2, 50), Member(1, 100)
    recorded = [before.seal(before.agreement.first(0)), *meet(b, before)]
    now.hear(*recorded)
    assert not now.agreement.same(before.life) and not now.got
    assert now.agreement.same(now.life), "its own life it is"


def test_a_member_with_the_key_and_a_refused_id() -> None:
    a, stranger = Member(1, 100), Member(7, 50)
    a.hear(stranger.seal(stranger.agreement.first(0)))
    assert 7 not in a.incoming.admission.last and not a.got


def test_an_old_key_opens_nothing() -> None:
    a, b = Member(1, 100, NEW), Member(2, 50, OLD)
    a.hear(b.seal(b.agreement.first(0)))
    assert a.incoming.drops == {"key": 1} and not a.said, "never answered"
    assert header.key_of(b.sealer.prefix) == OLD.id


def test_joined_datagrams_too_short_to_be_any() -> None:
    """Found by damaged inputs: the kernel joined pieces of 8 bytes, which together begin like a member's datagram."""
    a, b = Member(1, 100), Member(2, 50)
    meet(a, b)
    datagram = b.seal(b.agreement.first(0))
    a.incoming.admission.known[datagram[:24]] = b.life
    a.incoming.several(0, memoryview(datagram), 8, 0, ("10.0.0.2", 7400))
    assert a.incoming.drops["short"] > 4 and not a.got


def test_a_joined_train_is_one_packet() -> None:
    """In order it is put together at once; with one datagram forged the others still go to the station."""
    from ordercast.wire.train import cut

    a, b = Member(1, 100), Member(2, 50)
    meet(a, b)
    a.incoming.admission.known[b.sealer.prefix] = b.life
    a.said.clear()
    body = b.codec.encode(b.agreement.first(0))
    pieces = cut(body, -(-len(body) // 3))

    def cars(first: int) -> list[bytes]:
        return [b.sealer.seal(0, first + k, piece) for k, piece in enumerate(pieces)]

    size, a.now = len(cars(100)[0]), 2 * T
    a.incoming.several(0, memoryview(b"".join(cars(100))), size, 0, ("10.0.0.2", 7400))
    assert len(a.answers()) == 1, "terms that ask are answered"
    one, *rest = cars(200)
    a.now = 4 * T
    a.incoming.several(0, memoryview(b"".join([one, bytes(size), *rest])), size, 0, ("10.0.0.2", 7400))
    assert a.incoming.station.arrived == 1 and a.incoming.drops["magic"] == 1 and len(a.answers()) == 1

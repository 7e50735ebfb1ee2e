"""What a member's protocol writes on the commit token: the entries of all members together fit one packet."""

import pytest
from harness import World

from ordercast.errors import WireError
from ordercast.limits import (
    COMMIT_TOKEN_BYTES_MAX,
    DATAGRAM_BYTES_MIN,
    ENTRY_BYTES_MAX,
    MEMBERS_MAX,
    RING_SEQ_MAX,
    entry_bytes_max,
)
from ordercast.live.outgoing import Outgoing
from ordercast.membership import PACKETS, CommitToken
from ordercast.membership.packets import Entry
from ordercast.protocols.totem.packets import SEQ_MAX, RingEntry
from ordercast.types import ViewId
from ordercast.wire.codec import Codec
from ordercast.wire.header import HEADER_BYTES

CODEC = Codec(PACKETS)
LARGEST_ID, LARGEST_LIFE = 2**32 - 1, 2**63 - 1


def token(n, size):
    """With all entries, each of `size` bytes, and every number as long as it can be."""
    members = tuple(range(LARGEST_ID - n + 1, LARGEST_ID + 1))
    entries = (Entry(LARGEST_LIFE, b"x" * size),) * n
    return CommitToken(ViewId(RING_SEQ_MAX, members[0]), members, 2 * n, members[0], entries)


class Net:
    """Takes what leaves."""

    def __init__(self):
        self.sent = 0

    def address(self, member):
        return member

    def send(self, data, segment, targets):
        self.sent += len(data)


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 33, MEMBERS_MAX])
def test_the_network_carries_every_token_that_passes_the_wire(n):
    largest = token(n, entry_bytes_max(n))
    assert CODEC.decode(CODEC.encode(largest)) == largest
    assert CODEC.size(largest) <= COMMIT_TOKEN_BYTES_MAX
    net = Net()
    Outgoing(bytes(HEADER_BYTES - 8), DATAGRAM_BYTES_MIN).to_one(net, largest.to, largest)
    assert net.sent > CODEC.size(largest), "in a train of the smallest datagrams"
    with pytest.raises(WireError):
        CODEC.decode(CODEC.encode(token(n, entry_bytes_max(n) + 1)))


def test_a_token_that_no_packet_carries_is_refused():
    with pytest.raises(WireError, match="entry"):
        CODEC.decode(CODEC.encode(token(MEMBERS_MAX, ENTRY_BYTES_MAX)))


def test_what_the_ring_writes_fits_in_the_largest_group():
    """Its obligations are at most all members."""
    everybody = tuple(range(LARGEST_ID - MEMBERS_MAX + 1, LARGEST_ID + 1))
    entry = RingEntry(ViewId(RING_SEQ_MAX, LARGEST_ID), SEQ_MAX, SEQ_MAX, SEQ_MAX, True, everybody)
    assert CODEC.size(entry) <= entry_bytes_max(MEMBERS_MAX) // 2


def test_an_owner_that_writes_more_than_its_share_is_wrong():
    for n, size in ((1, ENTRY_BYTES_MAX), (9, entry_bytes_max(9))):
        world = World(n, 40)
        world.start()
        for owner in world.owners.values():
            owner.m.commit.entry = lambda size=size: bytes(size)
        world.run_t(2)
        assert world.partition() == {world.ids}
    world.owners[9].m.commit.entry = lambda: bytes(entry_bytes_max(9) + 1)
    world.crash(1)
    world.run_t(3)
    assert world.partition() == {world.ids[1:]}, "of eight members each has more"
    world.start(1)
    with pytest.raises(AssertionError, match="share"):
        world.run_t(3)

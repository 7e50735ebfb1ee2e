"""Every limit in one place.  What exceeds one is refused, dropped or waits, and is counted."""

DATAGRAM_BYTES_MAX = 65_507  # UDP over IPv4
DATAGRAM_BYTES_MIN = 576 - 28
DATAGRAM_BYTES_LOOPBACK = 65_000
AROUND_PACKET_BYTES = 48  # of a datagram: its header and its seal
AROUND_FRAME_BYTES = 288  # the same and the packet around a frame at most, but for the vector
VECTOR_BYTES = 10  # of a vector, for each member
FRAGMENTS_MAX = 16_384
MESSAGE_BYTES_MAX = 16 * 2**20
FRAME_MESSAGES_MAX = 16_384
MEMBERS_MAX = 64  # of a ring, or of a group on one network
RINGS_MAX = 16
CONFIGURATION_MAX = 256  # members on all rings together
GROUPS_MAX = 4_096
GROUP_NAME_BYTES_MAX = 64
GROUPS_PER_MESSAGE_MAX = 64
RTR_MAX = 30  # retransmission requests on a token
NACK_RANGES_MAX = 64
PENDING_FRAMES_MAX = 4_096  # of one sender, received and not yet ordered; of all, ordered and waiting for groups
EARLY_PACKETS_MAX = 1_024  # of a view that is being formed, kept until it is installed
UNICASTS_MAX = 256  # on their way from one member to another
FLUSH_PARTS_MAX = 64  # packets of one member's contribution to a flush
PENDING_BYTES_MAX = 64 * 2**20
LARGE_FRAMES_MAX = 1_024  # a ring keeps so many frames of any size; beyond, only such as it would send itself
UNSTABLE_FRAMES_MAX = 1_024  # of one sender: what may exist above what is stable
OUTBOX_BYTES_MAX = 64 * 2**20  # then `send` waits and `send_nowait` raises Overloaded
ATTEMPTS_MAX = 8  # at a primary view, of unknown outcome; and as many of which it is known that they failed
RECEIVE_BUFFER_BYTES = 4 * 2**20
DRAIN_DATAGRAMS_MAX = 1_024  # read at most this many before drained(net)
STAMP_MAX = 2**57  # heard of others; view ids, sixteen times as large, stay below the next
RING_SEQ_MAX = 2**62  # of what is heard of others; leaves room to raise it for ever
STORED_NUMBER_MAX = RING_SEQ_MAX + 2**32  # what a member may use itself; incarnations (ns) reach it in 2116
COMMIT_TOKEN_BYTES_MAX = 65_000  # with the entries of all its members: what one packet can carry
ENTRY_BYTES_MAX = 8_192  # what one member's protocol writes on it; in a large group its share is less
STRANGERS_PER_S = 50  # datagrams of lives not heard before, and such from elsewhere, that are opened per address
UNOPENED_PER_S = 1_000  # of all addresses together
STRANGERS_MAX = 1_024  # addresses whose rates are kept
HISTORY_CALLS_MAX = 65_536  # a replica's newest calls whose digests and names are kept
HISTORY_BYTES_MAX = 32 * 2**20  # and of those the newest whose bytes are, for `lost` and `merge`
MARKS_MAX = 64  # views that a replica remembers having entered and decided
WITHIN_MAX = 256  # views in which it has offered its state since it last decided
CHUNK_BYTES_MAX = 256 * 1024  # of a state on its way
PIECE_BYTES_MAX = 64 * 1024
CHUNKS_AHEAD_MAX = 8  # on their way, and not acknowledged by all they are for
HELD_BYTES_MAX = 64 * 2**20  # calls that wait for a decision, or for a state to apply them to
KEY_BYTES = 32
KEYS_MAX = 2  # that a member opens datagrams with


def packet_bytes_max(frame_bytes: int, members: int) -> int:
    """What a packet without frame and vector may have, where one with `frame_bytes` of them fits a datagram."""
    return frame_bytes + AROUND_FRAME_BYTES - AROUND_PACKET_BYTES + VECTOR_BYTES * members


def entry_bytes_max(members: int) -> int:
    """So much of a commit token belongs to each of its members, in typed MessagePack: all entries together fit."""
    head, each, entry = 31, 5, 13  # ring, hop, addressee, lengths; an id; an entry without its bytes
    return min(ENTRY_BYTES_MAX, (COMMIT_TOKEN_BYTES_MAX - head) // members - each - entry)

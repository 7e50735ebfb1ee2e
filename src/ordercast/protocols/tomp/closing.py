"""The end of a view: what is undecided gets its place from what each who goes on had proposed when it was frozen.

The paper has no view changes ("a known and static group", 3.2.1).  The rule here, the same at all of T, who go on
together; A is what they agreed upon:
  0  What is inserted during the install is only recorded: no stamp, no delivery, no answer.
  1  Who acknowledges shrinks to T.  A validation is a multicast, so a final known to anyone of T is in A.
  2  For an undecided m and p of T: p's stamp at its freeze, the anticipated one; if p had not received m,
     (base + i, p), i = the place of m, from 1, among those of A that p lacked, by (sender, n).
  3  The key of m is the greatest of these, and above the key of its sender's previous message.  Finals are keys.
  4  A is delivered by (key, decided before undecided, mid).
Without the anticipated stamps, without the queue's stamps in `base`, without the floor along one sender members would
deliver in another order than one of them already has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from ordercast.limits import MEMBERS_MAX
from ordercast.protocols.tomp.stamps import Book, Stamp
from ordercast.types import U8, U32, U63, MemberId

Mid = tuple[MemberId, int]  # sender, n


class Contribution(Struct, frozen=True, array_like=True, gc=False):
    """What one member contributes to a flush: its queue at the freeze, and what the layers above say."""

    base: U63
    next_mid: Annotated[tuple[U63, ...], Meta(max_length=MEMBERS_MAX)]  # of each rank; the others it lacked
    stamps: tuple[tuple[U8, U63, U63, U32], ...]  # of what is undecided: rank, n, number, host
    above: bytes


class Part(Struct, frozen=True):
    """The same, as the rule reads it."""

    base: int
    stamps: dict[Mid, Stamp]
    lacked: Iterable[Mid]


_decoder = msgspec.msgpack.Decoder(Contribution)
_encode = msgspec.msgpack.Encoder().encode


def contribution(book: Book, above: bytes) -> bytes:
    stamps = tuple((rank, n, *stamp) for rank, n, stamp in book.listed())
    return _encode(Contribution(book.base(), tuple(book.next_mid), stamps, above))


def read(state: bytes, members: tuple[MemberId, ...]) -> Contribution | None:
    """None if it cannot be one of this view."""
    try:
        told = _decoder.decode(state)
    except msgspec.MsgspecError:
        return None
    n = len(members)
    return told if len(told.next_mid) == n and all(stamp[0] < n for stamp in told.stamps) else None


def part(told: Contribution, members: tuple[MemberId, ...], messages: Iterable[Mid]) -> Part:
    """`messages`: what is agreed upon and undelivered here.  What somebody lacked is delivered nowhere: it had not
    acknowledged it."""
    came = dict(zip(members, told.next_mid, strict=True))
    stamps = {(members[rank], n): (number, host) for rank, n, number, host in told.stamps}
    return Part(told.base, stamps, [mid for mid in messages if mid[1] >= came[mid[0]]])


def flush_keys(
    parts: Mapping[MemberId, Part],
    messages: Iterable[Mid],
    finals: Mapping[Mid, Stamp],
    before: Mapping[MemberId, Stamp],
) -> dict[Mid, Stamp]:
    """Rules 2 and 3.  `before`: the final of each sender's last message that was delivered."""
    said: list[Mapping[Mid, Stamp]] = []
    for member, told in parts.items():
        assumed = {mid: (told.base + place, member) for place, mid in enumerate(sorted(told.lacked), 1)}
        said.append(told.stamps | assumed)
    keys: dict[Mid, Stamp] = {}
    last = dict(before)
    for mid in sorted(messages):
        sender, floor = mid[0], last.get(mid[0], (0, 0))
        key = finals.get(mid)
        if key is None:
            key = max((stamps[mid] for stamps in said if mid in stamps), default=floor)
            key = max(key, (floor[0] + 1, floor[1]))
        keys[mid] = last[sender] = key
    return keys


def in_order(keys: Mapping[Mid, Stamp], finals: Mapping[Mid, Stamp]) -> list[Mid]:
    """Rule 4."""
    return sorted(keys, key=lambda mid: (keys[mid], mid not in finals, mid))

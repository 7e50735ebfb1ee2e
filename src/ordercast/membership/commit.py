"""The commit token: twice round the sorted members, collecting entries, then showing them to all.

`hop` counts the visits made.  Member i of n sees it at hop i (writes its entry), at hop n + i (all entries: recovery
begins), and the representative once more at hop 2 n.  Copies of it are recognised by the hop.
"""

from __future__ import annotations

from ordercast.membership.packets import CommitToken, Entry
from ordercast.types import MemberId, ViewId

RING_STEP = 4  # a new ring's number above the highest seen; room for intermediate views


def blank(ring_id: ViewId, members: tuple[MemberId, ...]) -> CommitToken:
    """As the representative makes it, before its own entry."""
    assert ring_id.rep == members[0]
    return CommitToken(ring_id, members, 0, members[0], ())


def write(token: CommitToken, entry: Entry) -> CommitToken:
    """First rotation: add my entry, address the next member."""
    assert len(token.entries) == token.hop < len(token.members)
    return _address(token, (*token.entries, entry))


def forward(token: CommitToken) -> CommitToken:
    """Second rotation: pass it on as it is."""
    return _address(token, token.entries)


def _address(token: CommitToken, entries: tuple[Entry, ...]) -> CommitToken:
    hop = token.hop + 1
    return CommitToken(token.ring_id, token.members, hop, token.members[hop % len(token.members)], entries)


def rotation(token: CommitToken) -> int:
    """0: collecting entries; 1: showing them; 2: back at the representative."""
    return token.hop // len(token.members)

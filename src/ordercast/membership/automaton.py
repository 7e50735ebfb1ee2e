"""The automaton as a table: what happens to a member in which state, who acts upon it, and where that leads.

The table drives (`Standing.happens`): a part says what happened, and the rule for the present state names the part that
acts.  An event without a rule for the present state is not acted upon, and nothing else changes the state.  The
documentation's table is made from this one.

Classical Totem gathers at every Join and every foreign message; here a Join from outside moves nobody by itself: only
the choice of members does, by way of the rows it brings.
"""

from __future__ import annotations

from enum import Enum
from operator import attrgetter
from typing import NamedTuple


class State(Enum):
    OPERATIONAL = "Operational"
    GATHER = "Gather"
    COMMIT = "Commit"
    RECOVERY = "Recovery"  # of the view-synchronous layer: Flush
    PARTED = "Parted"


class Happening(Enum):
    """What can happen to a member, in the words of the documentation."""

    LOSS = "no token for T_loss; direct links: a member silent for T_loss"
    BLAMED = "the owner gives up, whom it blames is struck: a mark or link that stands still, a flush too long"
    HINT = "port unreachable: a member of my ring is gone, its row says so"
    WENT_ON = "a member of my ring names a newer view"
    OTHER_LIFE = "a member of my view comes back in another life"
    NEWS = "own row or table changed, or a wait may be over"
    CHOICE = "the table gives other members, and no wait runs"
    JOIN_OF_OURS = "Join of a member of my ring, its ring number not below the ring's"
    JOIN = "newest Join of anybody"
    AGREED = "everybody in my proposal agreed and I am its smallest"
    TOKEN_FIRST = "commit token, first rotation"
    STORED = "storage works"
    STORE_FAILED = "storage fails"
    READY = "the ring number of the commit token in hand is stored"
    WITHDRAWN = "a newer Join of a member of my commit token proposes others"
    TOKEN_SECOND = "commit token with all entries, second rotation"
    TOKEN_THIRD = "commit token back at the representative"
    CONSENSUS = "T_consensus"
    COMMIT_LATE = "T_commit"
    INSTALLED = "recovery is over"
    LEAVE = "the application leaves"
    OUTDONE = "another life of my id stays: it was in a view with others when we met, or has lived longer"


class Act(Enum):
    """What is done: the part of the membership and its method, and the words of the documentation."""

    LEAVE = "gather.leave", "leave the view: gather"
    GIVE_UP = "gather.give_up", "give the attempt up: gather"
    AGAIN = "gather.again", "strike those heard who did not agree, start over"
    PROPOSE = "gather.propose", "propose anew, unless a wait runs"
    NOTE = "gather.joined", "note its proposal, propose anew"
    BEGIN = "commit.begin", "make the commit token, have its ring number stored"
    TAKE = "commit.take", "if it is for my proposal and its ring number above mine: have that stored"
    RELY = "commit.stored", "no longer say that I am gone; see whether the commit token in hand can go on"
    FAIL = "commit.failed", "give up the commit token in hand; without numbers in reserve say that I am gone"
    ENTER = "commit.enter", "write my entry, forward the token"
    RECOVER = "commit.recover", "forward the token, begin recovery"
    RETURN = "commit.returned", "send the new ring's first token"
    CONSIDER = "stay.consider", "see whether a member has left the view, or the choice is another one"
    REMEMBER = "stay.remember", "remember it until the install"
    INSTALL = "stay.begin", "the new view works"
    PART = "voice.part", "say twice that my row is empty"
    GIVE_WAY = "voice.give_way", "say that my row is empty, and end"

    def __init__(self, by: str, words: str) -> None:
        self.by, self.words = attrgetter(by), words


class Rule(NamedTuple):
    act: Act
    to: State  # in force when the part acts


_O, _G, _C, _R, _P = State
_H = Happening
_RULES: list[tuple[tuple[State, ...], tuple[Happening, ...], Act, State]] = [
    ((_O,), (_H.LOSS, _H.BLAMED, _H.HINT, _H.WENT_ON, _H.OTHER_LIFE, _H.CHOICE, _H.JOIN_OF_OURS), Act.LEAVE, _G),
    ((_O,), (_H.NEWS,), Act.CONSIDER, _O),
    ((_G,), (_H.NEWS,), Act.PROPOSE, _G),
    ((_G,), (_H.JOIN,), Act.NOTE, _G),
    ((_G,), (_H.CONSENSUS,), Act.AGAIN, _G),
    ((_G,), (_H.AGREED,), Act.BEGIN, _G),
    ((_G,), (_H.TOKEN_FIRST,), Act.TAKE, _G),
    ((_G,), (_H.STORED,), Act.RELY, _G),
    ((_G,), (_H.STORE_FAILED,), Act.FAIL, _G),
    ((_G,), (_H.READY,), Act.ENTER, _C),
    ((_C, _R), (_H.BLAMED, _H.HINT, _H.JOIN_OF_OURS), Act.GIVE_UP, _G),
    ((_C,), (_H.WITHDRAWN, _H.COMMIT_LATE), Act.GIVE_UP, _G),
    ((_C,), (_H.WENT_ON,), Act.REMEMBER, _C),
    ((_C,), (_H.TOKEN_SECOND,), Act.RECOVER, _R),
    ((_R,), (_H.LOSS,), Act.GIVE_UP, _G),
    ((_R,), (_H.WENT_ON,), Act.REMEMBER, _R),
    ((_R,), (_H.TOKEN_THIRD,), Act.RETURN, _R),
    ((_R,), (_H.INSTALLED,), Act.INSTALL, _O),
    ((_O, _G, _C, _R), (_H.LEAVE,), Act.PART, _P),
    ((_O, _G, _C, _R), (_H.OUTDONE,), Act.GIVE_WAY, _P),
]
TABLE = {(state, what): Rule(act, to) for states, whats, act, to in _RULES for state in states for what in whats}

"""The automaton as a table: which event moves a member from which state to which, and what it does on the way.

`TABLE` is what `member.Membership` obeys: an event that has no entry for the present state is not acted upon, and a
change of state that the table does not list is a programming error.  The documentation's table is made from it.

Classical Totem gathers at every Join and every foreign message; here a Join from outside moves nobody by itself: only
the choice of members does, by way of the rows it brings.
"""

from __future__ import annotations

from enum import Enum

from msgspec import Struct


class State(Enum):
    OPERATIONAL = "Operational"
    GATHER = "Gather"
    COMMIT = "Commit"
    RECOVERY = "Recovery"  # of the view-synchronous layer: Flush
    PARTED = "Parted"


class Happening(Enum):
    """What can happen to a member, in the words of the table."""

    LOSS = "no token for T_loss; direct links: a member silent for T_loss"
    BLAMED = "the owner gives up: a mark or link that stands still, a flush too long"
    HINT = "port unreachable: a member's process is gone"
    DEPARTED = "a member names a newer view or comes back in another life"
    CHOICE = "own row or table changed"
    JOIN_OF_OURS = "Join of a member of the view, not older than the ring"
    JOIN_OF_OTHERS = "any other Join"
    ALL_AGREED = "everybody in my proposal agreed and I am its smallest"
    WITHDRAWN = "a newer Join of a member of my commit token proposes others"
    TOKEN_FIRST = "commit token for my proposal, ring number above mine, first rotation"
    TOKEN_SECOND = "commit token with all entries, second rotation"
    TOKEN_THIRD = "commit token back at the representative"
    CONSENSUS = "T_consensus"
    COMMIT_LATE = "T_commit"
    INSTALLED = "recovery is over"
    LEAVE = "the application leaves"


class Rule(Struct, frozen=True):
    does: str  # in words, for the documentation
    to: State | None = None  # None: stays


_O, _G, _C, _R, _P = State.OPERATIONAL, State.GATHER, State.COMMIT, State.RECOVERY, State.PARTED
_GATHER = Rule("gather", _G)

TABLE: dict[tuple[State, Happening], Rule] = {
    (_O, Happening.LOSS): _GATHER,
    (_R, Happening.LOSS): _GATHER,
    (_C, Happening.LOSS): _GATHER,
    (_O, Happening.BLAMED): Rule("strike the blamed, gather", _G),
    (_C, Happening.BLAMED): Rule("strike the blamed, gather", _G),
    (_R, Happening.BLAMED): Rule("strike the blamed, gather", _G),
    (_O, Happening.HINT): Rule("write its row as gone, gather", _G),
    (_G, Happening.HINT): Rule("write its row as gone, propose anew"),
    (_C, Happening.HINT): Rule("write its row as gone, gather", _G),
    (_R, Happening.HINT): Rule("write its row as gone, gather", _G),
    (_O, Happening.DEPARTED): _GATHER,
    (_O, Happening.CHOICE): Rule("if the choice is not the view and no wait runs: gather", _G),
    (_G, Happening.CHOICE): Rule("propose anew, unless a wait runs"),
    (_O, Happening.JOIN_OF_OURS): Rule("gather, then as there", _G),
    (_C, Happening.JOIN_OF_OURS): Rule("if it has the new ring's number: gather", _G),
    (_R, Happening.JOIN_OF_OURS): Rule("if it has the new ring's number: gather", _G),
    (_G, Happening.JOIN_OF_OURS): Rule("note its proposal"),
    (_G, Happening.JOIN_OF_OTHERS): Rule("note its proposal"),
    (_G, Happening.ALL_AGREED): Rule("store the ring number, write the first entry, send the commit token", _C),
    (_C, Happening.WITHDRAWN): Rule("if I am the representative: gather", _G),
    (_G, Happening.TOKEN_FIRST): Rule("store the ring number, write my entry, forward", _C),
    (_C, Happening.TOKEN_SECOND): Rule("forward, begin recovery", _R),
    (_R, Happening.TOKEN_THIRD): Rule("send the new ring's first token"),
    (_G, Happening.CONSENSUS): Rule("strike those heard who did not agree, start over", _G),
    (_C, Happening.COMMIT_LATE): _GATHER,
    (_R, Happening.INSTALLED): Rule("the new view works", _O),
    (_O, Happening.LEAVE): Rule("say twice that my row is empty", _P),
    (_G, Happening.LEAVE): Rule("say twice that my row is empty", _P),
    (_C, Happening.LEAVE): Rule("say twice that my row is empty", _P),
    (_R, Happening.LEAVE): Rule("say twice that my row is empty", _P),
}


def allowed(state: State, happening: Happening, to: State) -> bool:
    """Does the table list this change of state?"""
    rule = TABLE.get((state, happening))
    return rule is not None and rule.to is to


def as_markdown() -> str:
    """The table, one row per event, for the documentation."""
    columns = [_O, _G, _C, _R]
    lines = ["| event | " + " | ".join(state.value for state in columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for happening in Happening:
        cells = []
        for state in columns:
            rule = TABLE.get((state, happening))
            cells.append("-" if rule is None else rule.does + (f" → {rule.to.value}" if rule.to else ""))
        lines.append(f"| {happening.value} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"

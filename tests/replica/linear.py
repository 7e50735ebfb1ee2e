"""An independent judge of histories: is there one order of the calls, each at a moment between its beginning and its
end, in which a plain object of one process would have given the same answers?

Wing and Gong's search with Lowe's memory of what was tried.  A call whose fate is unknown has no end and no answer: it
may take effect at any moment after its beginning, or never.  It shares no code with what it judges.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

State = Any
Model = Callable[[State, str, tuple[Any, ...]], tuple[State, Any]]  # state, method, arguments -> state, answer


class Op(NamedTuple):
    begin: int
    end: int | None  # None: nobody knows
    method: str
    args: tuple[Any, ...]
    answer: Any
    caller: Hashable = 0


def linearizable(ops: list[Op], model: Model, start: State) -> bool:
    """Of one object."""
    ops = sorted(ops, key=lambda op: op.begin)
    seen: set[tuple[int, Hashable]] = set()
    known = sum(1 << k for k, op in enumerate(ops) if op.end is not None)
    todo = [(0, start)]
    while todo:
        done, state = todo.pop()
        if done & known == known:
            return True
        first_end = min(op.end for k, op in enumerate(ops) if op.end is not None and not done >> k & 1)
        for k, op in enumerate(ops):
            if op.begin > first_end:
                break
            if done >> k & 1:
                continue
            after, answer = model(state, op.method, op.args)
            if op.end is not None and answer != op.answer:
                continue
            key = done | 1 << k, after
            if key not in seen:
                seen.add(key)
                todo.append(key)
    return False


# states are tuples or numbers, so that they can be remembered


def register(state: int | None, method: str, args: tuple[Any, ...]) -> tuple[int | None, Any]:
    """One key of a dictionary; the key is not among the arguments."""
    if method == "get":
        return state, state
    if method == "set":
        return args[0], None
    if method == "delete":
        return None, state is not None
    assert method == "compare_and_set"
    return (args[1], True) if state == args[0] else (state, False)


def counter(state: int, method: str, args: tuple[Any, ...]) -> tuple[int, Any]:
    if method == "add":
        return state + args[0], state + args[0]
    assert method == "get"
    return state, state


def queue(state: tuple[Any, ...], method: str, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any]:
    """Items by value; their numbers are judged apart."""
    if method == "put":
        return (*state, args[0]), None
    assert method == "get_nowait"
    return (state[1:], state[0]) if state else (state, None)

"""A crash or a pause in mid-handler waits for a list of actions with its place in it."""

from __future__ import annotations

from collections.abc import Callable

from ordercast.contract import Action, Transmit
from ordercast.sim.links import kinds_of


class Trap:
    """After so many actions, or just before a packet of type `on` is transmitted for the `nth` time; `spring` gets what
    comes after."""

    def __init__(self, actions: int | None, on: str, spring: Callable[[list[Action]], None], nth: int = 1) -> None:
        self.actions, self.on, self.spring, self._nth = actions, on, spring, nth

    def place(self, actions: list[Action]) -> int | None:
        """How many of these actions are carried out before it springs; None: not in this list."""
        if self.on:
            for k, action in enumerate(actions):
                if type(action) is Transmit and self.on in kinds_of(action.packet):
                    self._nth -= 1
                    if not self._nth:
                        return k
            return None
        assert self.actions is not None
        return self.actions if len(actions) > self.actions else None

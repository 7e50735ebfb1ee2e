"""Errors, split by whose fault they are.  Each text is one sentence: what, where, what was expected."""

from __future__ import annotations


class OrdercastError(Exception):
    """Base of all errors that users of the library may see."""


class UsageError(OrdercastError):
    """Something a person wrote (command line, configuration, scenario) cannot be used.  Exit code 2."""


class ConfigError(UsageError):
    """A configuration with all its faults, one sentence each."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = faults


class RunError(OrdercastError):
    """A run could not be carried out or a promise was broken.  Exit code 1."""


class Overloaded(OrdercastError):
    """The send queue is full; `await send` waits instead."""


class TooLarge(OrdercastError, ValueError):
    """A message above the limit."""


class JoinTimeout(OrdercastError, TimeoutError):
    """The view that `join` waits for did not come in time; the text tells what is known."""


class NotInView(OrdercastError):
    """Nothing can be sent before the first view."""


class NotPrimary(OrdercastError):
    """This member's view is not primary: under the policy `primary-majority` nothing is sent in it."""


class FateUnknown(OrdercastError):
    """A call to a replicated object was sent, and it is not known whether it was, or will be, applied."""


class Closed(OrdercastError):
    """The group was left, or its member stopped."""


class NotSent(OrdercastError):
    """The group was left before all accepted messages had arrived: `first` to `last` of the own ones may be lost."""

    def __init__(self, first: int, last: int) -> None:
        which = f"message {first}" if first == last else f"messages {first} to {last}"
        super().__init__(
            f"the group was left, and {last - first + 1} of the messages accepted here may not have arrived: {which} "
            f"of {last} were not sent, or are not known to be at every member"
        )
        self.first, self.last = first, last


class WireError(Exception):
    """A datagram that is not ours, or damaged.  Stays inside the driver: dropped and counted by `reason`."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason


class TraceError(OrdercastError):
    """A trace file that cannot be read, with the place and the reason."""

    def __init__(self, path: object, offset: int, why: str) -> None:
        super().__init__(f"{path}: at byte {offset}: {why}")
        self.path, self.offset, self.why = str(path), offset, why


def by_interrupt(error: BaseException | None) -> bool:
    """It is an interrupt, or what became of one: libraries fail at something else while they clean up behind it."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None

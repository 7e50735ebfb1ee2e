"""What may be handed to the library, and which exception says that it may not."""

from __future__ import annotations

from typing import Any

from ordercast.errors import Closed, NotInView, Overloaded, TooLarge
from ordercast.types import Service, Submission
from ordercast.words import short


def service_of(service: Service | str) -> Service:
    if isinstance(service, Service):
        return service
    try:
        return Service[str(service).upper()]
    except KeyError:
        words = ", ".join(s.word for s in Service)
        raise ValueError(f"unknown service {service!r}: expected one of {words}") from None


def to_bytes(data: Any) -> bytes:
    """A copy, so that a buffer changed later changes no message."""
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data)
    raise TypeError(f"a message is bytes, not {type(data).__name__}: encode it first")


def refusal(why: str, submission: Submission) -> Exception:
    if why == "overloaded":
        return Overloaded("the send queue is full: use `await send`, which waits")
    if why == "closed":
        return Closed("the group was left")
    if why == "too large":
        return TooLarge(f"a message of {max(map(len, submission.payloads))} bytes is above the limit")
    if why in ("no view", "not in view"):
        return NotInView("nothing can be sent before the first view")
    if why == "no groups":
        return ValueError("this protocol has no process groups")
    if why == "groups":
        return ValueError(f"groups {short(submission.groups)}: expected at most 64 different names of 1 to 64 bytes")
    return ValueError(f"not accepted: {why}")

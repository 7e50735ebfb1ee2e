"""What may be handed to the library, what is given back for it, and which exception says that it may not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from ordercast.contract import Accepted, Refuse
from ordercast.errors import Closed, NotInView, NotPrimary, Overloaded, RunError, TooLarge, UsageError
from ordercast.limits import FRAGMENTS_MAX, MESSAGE_BYTES_MAX
from ordercast.registry import ProtocolInfo
from ordercast.types import Identity, MessageId, Service, Submission
from ordercast.words import short


class Receipt(Struct, frozen=True):
    """What is known of a message that was accepted: its id, and that it is queued here to be ordered.

    `await group.delivered(receipt)` tells when it has been delivered here, and so has its place in the order.
    """

    id: MessageId
    service: Service
    count: int = 1  # of a batch: messages id.counter .. id.counter + count - 1
    groups: tuple[str, ...] = ()  # the process groups it is addressed to; none: everybody


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


def submission(
    info: ProtocolInfo, frame_bytes: int, payloads: Iterable[Any], service: Service | str | None, groups: Iterable[str]
) -> Submission:
    """Everything that can be wrong with a call, before anything changes."""
    if isinstance(payloads, (str, bytes, bytearray, memoryview)):
        raise TypeError("send_batch: expected a list of messages; send takes a single one")
    copies = [data if type(data) is bytes else to_bytes(data) for data in payloads]
    if not copies:
        raise ValueError("send_batch: no messages: expected at least one")
    largest = max(map(len, copies))
    limit = min(MESSAGE_BYTES_MAX, FRAGMENTS_MAX * (frame_bytes - 8))
    if largest > limit:
        raise TooLarge(f"a message of {largest} bytes: expected at most {limit}")
    wanted = info.default_service if service is None else service_of(service)
    if wanted not in info.provides:
        words = ", ".join(s.word for s in info.provides)
        raise ValueError(f"service {wanted.word}: {info.name} provides {words}")
    if isinstance(groups, str):
        raise TypeError("groups: expected a list of names, not a single string")
    return Submission(copies, wanted, tuple(groups))


def handed_in(answer: Accepted | Refuse, submission: Submission, identity: Identity) -> Receipt:
    """What the core said to messages; an exception where it refused them."""
    if type(answer) is Accepted:
        first = MessageId(identity.me, identity.incarnation, answer.counter)
        return Receipt(first, submission.service, answer.count, submission.groups)
    assert type(answer) is Refuse
    raise refusal(answer.why, submission)


def stopped(who: str, why: BaseException) -> RunError:
    """A member stopped: a fault of ours or of the machine."""
    words = str(why) if isinstance(why, RunError) else f"{type(why).__name__}: {why}"
    told = RunError(f"{who} stopped: {words}")
    told.__cause__ = why
    return told


def refusal(why: str, submission: Submission) -> Exception:
    if why == "overloaded":
        return Overloaded("the send queue is full: use `await send`, which waits")
    if why == "closed":
        return Closed("the group was left")
    if why == "too large":
        return TooLarge(f"a message of {max(map(len, submission.payloads))} bytes is above the limit")
    if why in ("no view", "not in view"):
        return NotInView("nothing can be sent before the first view")
    if why == "not primary":
        return NotPrimary("this member's view is not primary, and nothing is sent in it: wait for one that is")
    if why == "pure gateway":
        return UsageError("this member is a pure gateway, which sends nothing and joins no group")
    if why == "no groups":
        return ValueError("this protocol has no process groups")
    if why == "groups":
        return ValueError(f"groups {short(submission.groups)}: expected at most 64 different names of 1 to 64 bytes")
    return ValueError(f"not accepted: {why}")

"""Text scripts: a protocol driven step by step, with the network in the author's hand.

A script is blocks of commands, a line of dashes, and what they answered::

    members 3 protocol=token_site
    ----
    1: view 1.1 of 1 2 3
    ...
    submit 2 hello
    ----
    2: accepted 1
    2> all: Data seq=1

Packets wait in one FIFO channel per ordered pair until the script passes or drops them; time stands still until it
advances.  ``members 5 protocol=multiring rings=1,2,3/3,4,5`` has two nets, and 3 is on both.  ``rewrite`` writes the
right side anew, for a person to read and commit.
"""

from __future__ import annotations

import random
import shlex
from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from ordercast import registry
from ordercast.contract import (
    ALL,
    TAGGER,
    Accepted,
    Action,
    CancelTimer,
    Delivered,
    GroupView,
    Left,
    Missing,
    Note,
    Originate,
    Packet,
    PassedBy,
    Presence,
    Receive,
    Refuse,
    SetTimer,
    Setup,
    Store,
    Transmit,
    Up,
    ViewChange,
)
from ordercast.errors import UsageError
from ordercast.stack import Stack
from ordercast.toml_input import value_of
from ordercast.types import ALL_CONTINUE, Frame, Identity, Peer, Service, Submission, View, ViewId, ViewKind

DASHES = "----"
Maker = Callable[[Setup], Stack]


class _Member:
    """One scripted process."""

    def __init__(self, stack: Stack, identity: Identity) -> None:
        self.stack, self.identity = stack, identity
        self.timers: dict[str, int] = {}
        self.stored: dict[str, tuple[int, bytes]] = {}
        self.log: list[str] = []
        self.up = True


class Script:
    """The members and channels of one script."""

    def __init__(self, maker: Maker | None = None) -> None:
        self.maker = maker
        self.members: dict[int, _Member] = {}
        self.channels: dict[tuple[int, int], deque[tuple[int, Packet]]] = {}  # on which net, and what
        self.lost: dict[int, int] = {}  # by each since it last received something
        self.now = 0
        self.out: list[str] = []
        self.shown = {"note": False, "timer": False}

    # ---------------------------------------------------------------------------------------------------- commands

    def run(self, line: str) -> None:
        """One command; its answers go to `out`."""
        words = shlex.split(line, comments=True)
        if not words:
            return
        command = getattr(self, f"do_{words[0].replace('-', '_')}", None)
        if command is None:
            known = sorted(n.removeprefix("do_") for n in dir(self) if n.startswith("do_"))
            raise UsageError(f"unknown script command {words[0]!r}: expected one of {', '.join(known)}")
        plain = [w for w in words[1:] if "=" not in w]
        named = dict(w.split("=", 1) for w in words[1:] if "=" in w)
        command(*plain, **named)

    def do_members(
        self, n: str, protocol: str, T: str = "40ms", frame: str = "1400", partition: str = ALL_CONTINUE,
        rings: str = "", **options: str,
    ) -> None:  # fmt: skip
        info = registry.get(protocol)
        if wrong := info.without(partition):
            raise UsageError(f"partition: {wrong}")
        self.partition = partition
        self.factory = self.maker or info.factory
        given = {key: value_of(text) if text.startswith("[") else text for key, text in options.items()}
        self.options = msgspec.convert(given, info.options, strict=False)
        self.timeout_ns, self.frame_bytes = duration_ns(T), int(frame)
        self.rings = [tuple(map(int, ring.split(","))) for ring in rings.split("/")] if rings else []
        self.tagger = info.tagger if getattr(self.options, "channel", "") == "tagger" else None
        for id in range(1 if self.tagger is None else TAGGER, int(n) + 1):
            self._start(id, 1, int(n), {})

    def _start(self, id: int, incarnation: int, n: int, stored: dict[str, tuple[int, bytes]]) -> None:
        identity = Identity(id, incarnation, tuple(range(1, n + 1)), "script", ring_seq=4 * incarnation)
        setup = Setup(identity, self.timeout_ns, self.options, self.frame_bytes, random.Random(id))
        setup.partition = self.partition
        if self.rings:
            setup.on_nets = {net: ring for net, ring in enumerate(self.rings) if id in ring}
            setup.nets = tuple(setup.on_nets)
        maker = self.tagger if id == TAGGER and self.tagger is not None else self.factory
        member = _Member(maker(setup), identity)
        member.stored = stored
        self.members[id] = member
        self._act(id, member.stack.start(self.now, identity, stored))

    def do_submit(self, id: str, *payloads: str, service: str = "agreed", groups: str = "") -> None:
        names = tuple(g for g in groups.split(",") if g)
        submission = Submission([p.encode() for p in payloads], Service[service.upper()], names)
        self._act(int(id), self._stack(id).submit(self.now, submission))

    def do_join_group(self, id: str, group: str) -> None:
        self._act(int(id), self._stack(id).regroup(self.now, group, True))

    def do_leave_group(self, id: str, group: str) -> None:
        self._act(int(id), self._stack(id).regroup(self.now, group, False))

    def do_quietly(self, *words: str, **named: str) -> None:
        """quietly COMMAND ...: its transmissions are not shown."""
        before = len(self.out)
        self.run(" ".join([*words, *(f"{key}={value}" for key, value in named.items())]))
        self.out[before:] = [line for line in self.out[before:] if "> " not in line.split(":")[0]]

    def do_pass(self, source: str, to: str = "", count: str = "") -> None:
        """pass A B [n]: hand over the next n (all) packets of A to B.  pass all: until nothing is on its way."""
        if source == "all":
            for _ in range(10_000):
                waiting = next((pair for pair in sorted(self.channels) if self.channels[pair]), None)
                if waiting is None:
                    return
                self._hand_over(*waiting, 1)
            raise UsageError("pass all: packets never end")
        self._hand_over(int(source), int(to), int(count) if count else 1 << 30)

    def _hand_over(self, source: int, to: int, count: int) -> None:
        channel = self.channels.get((source, to), deque())
        member = self.members[to]
        peer = Peer(source, self.members[source].identity.incarnation)
        read: dict[int, None] = {}
        while channel and count:
            (net, packet), count = channel.popleft(), count - 1
            read[net] = None
            if member.up:
                self._act(to, member.stack.receive(self.now, net, peer, packet, self.lost.pop(to, 0)))
        for net in read or (0,):
            if member.up:
                self._act(to, member.stack.drained(self.now, net))

    def do_drop(self, source: str, to: str, count: str = "") -> None:
        channel = self.channels.get((int(source), int(to)), deque())
        for _ in range(min(len(channel), int(count) if count else 1 << 30)):
            self.lost[int(to)] = self.lost.get(int(to), 0) + 1
            self.out.append(f"lost {source}>{to}: {describe(channel.popleft()[1])}")

    def do_advance(self, by: str) -> None:
        """Let time pass: timers fire in order, packets stay where they are."""
        end = self.now + duration_ns(by)
        while True:
            due = min(
                ((at, id, name) for id, m in self.members.items() if m.up for name, at in m.timers.items()),
                default=None,
            )
            if due is None or due[0] > end:
                break
            self.now, id, name = due
            del self.members[id].timers[name]
            self._act(id, self.members[id].stack.timer(self.now, name, self.now))
        self.now = end

    def do_run(self, by: str, step: str = "1ms") -> None:
        """Let time pass in steps, and hand over all packets after each."""
        end = self.now + duration_ns(by)
        while self.now < end:
            self.do_pass("all")
            self.do_advance(step)
        self.do_pass("all")

    def do_crash(self, id: str) -> None:
        self.members[int(id)].up = False
        self.members[int(id)].timers.clear()

    def do_restart(self, id: str) -> None:
        old = self.members[int(id)]
        self._start(int(id), old.identity.incarnation + 1, len(old.identity.members), old.stored)

    def do_leave(self, id: str) -> None:
        self._act(int(id), self._stack(id).leave(self.now))

    def do_room(self, id: str, frames: str) -> None:
        self._act(int(id), self._stack(id).room(self.now, int(frames)))

    def do_unreachable(self, id: str, member: str) -> None:
        self._act(int(id), self._stack(id).unreachable(self.now, 0, int(member)))

    def do_queue(self) -> None:
        for (a, b), channel in sorted(self.channels.items()):
            if channel:
                self.out.append(f"{a}>{b}: " + ", ".join(describe(p) for _, p in channel))

    def do_status(self, id: str, *fields: str) -> None:
        """status M layer.field ..."""
        status = self._stack(id).status()
        for field in fields:
            layer, _, key = field.partition(".")
            self.out.append(f"{id}: {field} = {status[layer][key]}")

    def do_order(self) -> None:
        for id, member in sorted((id, member) for id, member in self.members.items() if id != TAGGER):
            self.out.append(f"{id}: " + (" ".join(member.log) or "nothing"))

    def do_show(self, what: str, state: str = "on") -> None:
        """show note|timer [off]: print these actions too."""
        if what not in self.shown:
            raise UsageError(f"show {what}: expected note or timer")
        self.shown[what] = state == "on"

    def _stack(self, id: str) -> Stack:
        return self.members[int(id)].stack

    # ----------------------------------------------------------------------------------------------------- actions

    def _act(self, id: int, actions: list[Action]) -> None:
        member, say = self.members[id], self.out.append
        answers: list[Action] = []
        for action in actions:
            match action:
                case Transmit(net=net, to=to, packet=packet):
                    where = f" on {net + 1}" if self.rings else ""
                    say(f"{id}> {'all' if to == ALL else to}{where}: {describe(packet)}")
                    for other in (self.rings[net] if self.rings else sorted(self.members)) if to == ALL else [to]:
                        if other != id and (other != TAGGER or to == TAGGER):
                            self.channels.setdefault((id, other), deque()).append((net, packet))
                case SetTimer(name=name, at=at):
                    member.timers[name] = at
                    if self.shown["timer"]:
                        say(f"{id}: timer {name} in {milliseconds(at - self.now)}")
                case CancelTimer(name=name):
                    member.timers.pop(name, None)
                case Store(key=key, number=number, data=data):
                    member.stored[key] = (number, data)
                    answers += member.stack.stored(self.now, key, number)
                case Up(event=event):
                    self._up(id, event)
                case Accepted(counter=counter, count=count):
                    say(f"{id}: accepted {counter}" + (f"..{counter + count - 1}" if count > 1 else ""))
                case Refuse(why=why):
                    say(f"{id}: refused, {why}")
                case Note(name=name, fields=fields):
                    if self.shown["note"]:
                        say(f"{id}: note {name} " + " ".join(f"{k}={v}" for k, v in fields.items()))
                case Presence(present=present):
                    say(f"{id}: {'present' if present else 'absent'}")
                case Originate() | Receive():
                    pass
                case _:
                    raise AssertionError(f"an action without a rendering: {action}")
        if answers:
            self._act(id, answers)

    def _up(self, id: int, event: Any) -> None:
        say = self.out.append
        match event:
            case Missing(sender=sender, tag=tag):
                self.members[id].log.append(f"{sender}.?")
                say(f"{id}: dummy for message {tag} of {sender}")
            case Delivered(batch=batch, certainty=certainty):
                names = [f"{batch.sender}.{batch.counter + k}" for k in range(batch.count)]
                self.members[id].log += names
                texts = " ".join(_text(p) for p in batch.payloads())
                say(f"{id}: deliver {' '.join(names)} {texts}" + (f", {certainty}" if certainty else ""))
            case ViewChange(view=view):
                say(f"{id}: {view_text(view)}")
            case GroupView(group=group, members=members):
                say(f"{id}: group {group} of {' '.join(map(str, members)) or 'nobody'}")
            case PassedBy(counter=counter, count=count):
                say(f"{id}: not for itself {' '.join(f'{id}.{counter + k}' for k in range(count))}")
            case Left(unsent=unsent):
                say(f"{id}: left" + (f" without {id}.{unsent[0]} to {id}.{unsent[1]}" if unsent else ""))
                self.members[id].up = False
            case _:
                say(f"{id}: {type(event).__name__.lower()}")


# ------------------------------------------------------------------------------------------------------------ words


def duration_ns(text: str) -> int:
    for unit, factor in (("ms", 1_000_000), ("us", 1_000), ("ns", 1), ("s", 1_000_000_000)):
        if text.endswith(unit):
            return int(float(text.removesuffix(unit)) * factor)
    raise UsageError(f"{text!r} is no duration: expected a number with s, ms, us or ns")


def milliseconds(ns: int) -> str:
    return f"{ns / 1e6:g}ms"


def _text(payload: bytes) -> str:
    return repr(payload.decode(errors="replace")) if len(payload) <= 16 else f"<{len(payload)} bytes>"


def view_text(view: View) -> str:
    kind = "view" if view.kind is ViewKind.REGULAR else "transitional view"
    minor = ", not primary" if view.primary is False else ""
    return f"{kind} {view.id} of {' '.join(map(str, view.members))}{minor}"


def describe(value: Any) -> str:
    """A packet in one short line: its type and the fields that differ from their defaults."""
    if isinstance(value, ViewId):
        return str(value)
    if isinstance(value, Frame):
        part = f"[{value.part}/{value.parts}]" if value.parts > 1 else f"+{value.count}" if value.count > 1 else ""
        return f"{value.sender}.{value.counter}{part}"
    if isinstance(value, msgspec.Struct):
        fields = []
        for field in msgspec.structs.fields(value):
            item = getattr(value, field.name)
            if item != field.default:
                fields.append(f"{field.name}={describe(item)}")
        return f"{type(value).__name__}({' '.join(fields)})"
    if isinstance(value, tuple | list):
        return "(" + ",".join(map(describe, value)) + ")"
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    return str(value)


# ------------------------------------------------------------------------------------------------------------ files


def split(text: str) -> list[tuple[list[str], list[str]]]:
    """Blocks of (commands, expected lines); comments belong to the commands."""
    blocks: list[tuple[list[str], list[str]]] = []
    for block in text.strip("\n").split("\n\n"):
        lines = block.split("\n")
        at = lines.index(DASHES) if DASHES in lines else len(lines)
        blocks.append((lines[:at], lines[at + 1 :]))
    return blocks


def rewrite(text: str, maker: Maker | None = None) -> str:
    """The script with its right side as the code answers now."""
    script, blocks = Script(maker), []
    for commands, _ in split(text):
        script.out = []
        for command in commands:
            script.run(command)
        if all(not c.strip() or c.lstrip().startswith("#") for c in commands):
            blocks.append("\n".join(commands))
        else:
            blocks.append("\n".join([*commands, DASHES, *(script.out or ["ok"])]))
    return "\n\n".join(blocks) + "\n"

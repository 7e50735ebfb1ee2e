"""Random executions that keep every promise, and ways to break them.

`good(seed)` plays a group with extended virtual synchrony: views that split and merge, crashes and restarts, safe and
agreed messages, frames of several messages, process groups.  `mutated(trace, seed)` damages its rows.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import msgspec
from verify_traces import ALL, Builder

from ordercast.trace.schema import Kind, Row
from ordercast.trace.trace import Trace, row_key

Frame = tuple[int, int, int, int]  # sender, incarnation, counter, count


class Component:
    """One view, its order, and how far each member has come."""

    def __init__(self, key: tuple[int, int], members: tuple[int, ...]) -> None:
        self.key, self.members = key, members
        self.order: list[dict[str, Any]] = []
        self.done = dict.fromkeys(members, 0)


class World:
    def __init__(self, seed: int, plain: bool = False) -> None:
        self.pick = pick = random.Random(seed)
        self.n, self.stamped = pick.randint(1, 5), seed % 2 == 1
        self.safe_too, self.grouped = pick.random() < 0.5, not plain and pick.random() < 0.3
        self.builder = Builder(
            service="safe" if self.safe_too else "agreed", timeout_ns=pick.choice([0, 20_000]), run=f"r{seed}",
            live=pick.random() < 0.2, level=pick.choice(["deliver", "full", "full"]),
            members=tuple(range(1, self.n + 1)), promises=ALL,
        )  # fmt: skip
        self.full = self.builder.header["level"] == "full"
        self.incarnation = dict.fromkeys(range(1, self.n + 1), 1)
        self.submitted = dict.fromkeys(range(1, self.n + 1), 0)
        self.originated = dict.fromkeys(range(1, self.n + 1), 0)
        self.kinds: dict[int, list[tuple[int, Any]]] = {m: [] for m in self.incarnation}
        self.up = set(self.incarnation)
        self.groups = ["a", "b"] if self.grouped else []
        self.member_of: dict[tuple[tuple[int, int], int], dict[str, tuple[int, ...]]] = {}
        self.seq = 1
        self.where: dict[int, Component] = {}
        self.install(Component((1, 1), tuple(sorted(self.up))), {})

    def add(self, member: int, kind: Kind, **fields: Any) -> Row:
        return self.builder.add(member, kind, self.incarnation.get(member, 1), **fields)

    # ---------------------------------------------------------------------------------------------------------- steps

    def submit(self) -> None:
        member = self.pick.choice(sorted(self.up))
        count = self.pick.randint(1, 4)
        service = self.pick.choice([3, 4]) if self.safe_too else 3
        groups = tuple(self.pick.sample(self.groups, self.pick.randint(1, 2))) if self.groups else None
        self.add(
            member, Kind.SUBMIT, sender=member, sender_incarnation=self.incarnation[member],
            counter=self.submitted[member] + 1, count=count, service=service, groups=groups,
        )  # fmt: skip
        self.submitted[member] += count
        self.kinds[member] += [(service, groups)] * count

    def originate(self) -> None:
        waiting = [m for m in sorted(self.up) if self.originated[m] < self.submitted[m]]
        if not waiting:
            return self.submit()
        member = self.pick.choice(waiting)
        first = self.originated[member] + 1
        kind = self.kinds[member][first - 1]
        count, limit = 0, self.pick.randint(1, 3)
        while (
            count < limit and first + count <= self.submitted[member] and self.kinds[member][first + count - 1] == kind
        ):
            count += 1
        self.originated[member] += count
        unit = {
            "frame": dict(sender=member, sender_incarnation=self.incarnation[member], counter=first, count=count,
                          digest=member * 100 + first, service=kind[0], groups=kind[1]),
            "got": {member},
        }  # fmt: skip
        component = self.where[member]
        self.add(
            member, Kind.ORIGINATE, **unit["frame"], view_seq=component.key[0], view_rep=component.key[1], view_kind=1
        )
        if self.full:
            self.add(member, Kind.RECEIVE, **unit["frame"])
        component.order.append(unit)
        return None

    def receive(self) -> None:
        member = self.pick.choice(sorted(self.up))
        for unit in self.where[member].order:
            if member not in unit["got"] and self.pick.random() < 0.7:
                self.got(member, unit)

    def got(self, member: int, unit: dict[str, Any]) -> None:
        unit["got"].add(member)
        if self.full and "frame" in unit:
            self.add(member, Kind.RECEIVE, **unit["frame"])

    def deliver(self) -> None:
        member = self.pick.choice(sorted(self.up))
        component = self.where[member]
        for _ in range(self.pick.randint(1, 4)):
            at = component.done[member]
            if at == len(component.order):
                return
            unit = component.order[at]
            everybody = all(set(component.members) <= u["got"] for u in component.order[: at + 1])
            if member not in unit["got"] or (self.is_safe(unit) and not everybody):
                return
            self.hand_over(member, component, unit)
            component.done[member] = at + 1

    @staticmethod
    def is_safe(unit: dict[str, Any]) -> bool:
        return "frame" in unit and unit["frame"]["service"] == 4

    def hand_over(self, member: int, component: Component, unit: dict[str, Any]) -> None:
        if "group" in unit:
            self.add(member, Kind.GROUP_VIEW, groups=(unit["group"],), members=unit["members"])
            return
        frame = unit["frame"]
        if frame["groups"] and not any(member in component.group[g] for g in frame["groups"]):  # type: ignore[attr-defined]
            return
        epoch, seq = component.key[0], component.order.index(unit)
        detail = {"stamp": 1000 * epoch + seq} if self.stamped else None
        self.add(member, Kind.DELIVER, **frame, order_seq=seq, order_epoch=epoch, ring=0, detail=detail)

    def crash(self) -> None:
        if len(self.up) > 1:
            member = self.pick.choice(sorted(self.up))
            self.up.discard(member)
            self.builder.add(0, Kind.CRASH, 1, sender=member, sender_incarnation=self.incarnation[member])

    def leave(self) -> None:
        """It names what it has not seen delivered by everybody of its view."""
        if len(self.up) > 1:
            member = self.pick.choice(sorted(self.up))
            component, last = self.where[member], self.submitted[member]
            held = min(component.done[m] for m in component.members)
            open = [u["frame"]["counter"] for u in component.order[held:] if u.get("frame", {}).get("sender") == member]
            first = min([*open, self.originated[member] + 1])
            self.up.discard(member)
            self.add(member, Kind.LEAVE, detail={"unsent": [first, last]} if first <= last else None)

    def restart(self) -> None:
        down = [m for m in self.incarnation if m not in self.up]
        if down:
            member = self.pick.choice(down)
            self.incarnation[member] += 1
            self.submitted[member] = self.originated[member] = 0
            self.kinds[member] = []
            self.up.add(member)
            self.builder.add(0, Kind.START, 1, sender=member, sender_incarnation=self.incarnation[member])
            self.seq += 1
            self.install(Component((self.seq, member), (member,)), {})

    def reconfigure(self) -> None:
        """Those up split into new views at random."""
        members = sorted(self.up)
        self.pick.shuffle(members)
        while members:
            cut = self.pick.randint(1, len(members))
            some, members = tuple(sorted(members[:cut])), members[cut:]
            self.seq += 1
            olds: dict[tuple[int, int], list[int]] = {}
            for member in some:
                olds.setdefault(self.where[member].key, []).append(member)
            self.install(Component((self.seq, some[0]), some), olds)

    def install(self, new: Component, olds: dict[tuple[int, int], list[int]]) -> None:
        new.group = {g: tuple(m for m in new.members if self.pick.random() < 0.7) for g in self.groups}  # type: ignore[attr-defined]
        new.order = [{"group": g, "members": m, "got": set(new.members)} for g, m in new.group.items()]  # type: ignore[attr-defined]
        parts = [[list(old), come] for old, come in olds.items()] or [[None, list(new.members)]]
        for old, come in parts:
            if old is not None:
                self.close(self.where[come[0]], tuple(come), new)
        for old, come in parts:
            for member in come:
                self.add(
                    member, Kind.VIEW, view_seq=new.key[0], view_rep=new.key[1], view_kind=1, members=new.members,
                    trans=tuple(come) if old else None, previous_seq=old[0] if old else None,
                    previous_rep=old[1] if old else None, detail={"cause": "test", "components": parts},
                )  # fmt: skip
                self.where[member] = new

    def close(self, old: Component, come: tuple[int, ...], new: Component) -> None:
        """What is left of the old view: the same for all that come along."""
        high = max(old.done[m] for m in come)
        rest, hole = [], False
        for unit in old.order[high:]:
            known = bool(unit["got"] & set(come))
            hole = hole or not known
            if known and (not hole or ("frame" in unit and unit["frame"]["sender"] in come)):
                rest.append(unit)
        for unit in [*old.order[:high], *rest]:
            for member in come:
                if member not in unit["got"]:
                    self.got(member, unit)
        for member in come:
            for unit in old.order[old.done[member] : high]:
                self.hand_over(member, old, unit)
            self.add(
                member, Kind.VIEW, view_seq=new.key[0], view_rep=new.key[1], view_kind=2, members=come, trans=come,
                previous_seq=old.key[0], previous_rep=old.key[1],
            )  # fmt: skip
            for unit in rest:
                self.hand_over(member, old, unit)

    def finish(self) -> None:
        """Everybody gets everything of its view; then the end."""
        for _ in range(2):
            for member in sorted(self.up):
                for unit in self.where[member].order:
                    if member not in unit["got"]:
                        self.got(member, unit)
        for component in {id(c): c for c in self.where.values()}.values():
            for member in component.members:
                alone = self.where.get(member) is component and member in self.up
                whole = all(self.where.get(m) is component and m in self.up for m in component.members)
                while alone and component.done[member] < len(component.order):
                    unit = component.order[component.done[member]]
                    if self.is_safe(unit) and not whole:
                        break
                    self.hand_over(member, component, unit)
                    component.done[member] += 1
        for member in sorted(self.up):
            self.add(member, Kind.END, detail={"queues": {"outbox": 0}})


def good(seed: int) -> Trace:
    world = World(seed)
    steps: list[Callable[[], Any]] = (
        [world.submit] * 4 + [world.originate] * 6 + [world.receive] * 6 + [world.deliver] * 10
    )
    if world.pick.random() < 0.7:
        steps += [world.reconfigure]
    if world.pick.random() < 0.5:
        steps += [world.crash, world.restart]
    if world.pick.random() < 0.4:
        steps += [world.leave, world.restart]
    for _ in range(world.pick.randint(5, 120)):
        world.pick.choice(steps)()
    world.finish()
    return world.builder.trace()


# ---------------------------------------------------------------------------------------------------------- mutations


def replaced(row: Row, **fields: Any) -> Row:
    return msgspec.structs.replace(row, **fields)


def _some(rows: list[Row], pick: random.Random, *kinds: Kind) -> int | None:
    places = [k for k, row in enumerate(rows) if row.kind in kinds and row.member]
    return pick.choice(places) if places else None


def _swap(rows: list[Row], pick: random.Random) -> None:
    k = _some(rows, pick, Kind.DELIVER)
    later = [j for j in range((k or 0) + 1, len(rows)) if k is not None and rows[j].kind == Kind.DELIVER
             and rows[j].member == rows[k].member]  # fmt: skip
    if k is not None and later:
        j = later[0]
        rows[k], rows[j] = replaced(rows[j], time_ns=rows[k].time_ns), replaced(rows[k], time_ns=rows[j].time_ns)


def _twice(rows: list[Row], pick: random.Random) -> None:
    k = _some(rows, pick, Kind.DELIVER, Kind.ORIGINATE, Kind.SUBMIT, Kind.VIEW)
    if k is not None:
        rows.insert(pick.randint(k, min(len(rows), k + 5)), rows[k])


def _lose(rows: list[Row], pick: random.Random) -> None:
    k = _some(rows, pick, *(pick.choice(list(Kind)),) * 2, Kind.DELIVER)
    if k is not None:
        del rows[k]


def _move(rows: list[Row], pick: random.Random) -> None:
    k = _some(rows, pick, pick.choice([Kind.DELIVER, Kind.VIEW, Kind.ORIGINATE, Kind.SUBMIT, Kind.RECEIVE]))
    if k is not None:
        same = [j for j, row in enumerate(rows) if row.member == rows[k].member]
        row = rows.pop(k)
        rows.insert(pick.choice(same), row)


def _invent(rows: list[Row], pick: random.Random) -> None:
    k = _some(rows, pick, Kind.DELIVER)
    if k is not None:
        change = {"sender": pick.randint(1, 7)} if pick.random() < 0.5 else {"counter": pick.randint(1, 12)}
        if pick.random() < 0.2:
            change = {"sender_incarnation": pick.randint(1, 3)}
        rows.insert(k, replaced(rows[k], **change))


def _alter(rows: list[Row], pick: random.Random) -> None:
    k = _some(rows, pick, Kind.DELIVER, Kind.ORIGINATE, Kind.SUBMIT, Kind.RECEIVE)
    if k is None:
        return
    row = rows[k]
    change = pick.choice(
        [{"digest": 5}, {"count": pick.randint(1, 4)}, {"counter": pick.randint(1, 9)}, {"service": 4}, {"service": 3},
         {"groups": pick.choice([None, ("a",), ("b", "a")])}, {"detail": {"altered": row.counter}},
         {"order_seq": 77}, {"order_epoch": 77}, {"ring": 3}, {"view_seq": 9}, {"sender": pick.randint(1, 3)}]
    )  # fmt: skip
    rows[k] = replaced(row, **change)


def _view(rows: list[Row], pick: random.Random) -> None:
    k = _some(rows, pick, Kind.VIEW)
    if k is None:
        return
    row = rows[k]
    members = row.members or ()
    change = pick.choice(
        [{"members": members[1:]}, {"members": (*members, 7)}, {"view_seq": pick.randint(1, 9)}, {"trans": members[:1]},
         {"view_rep": pick.randint(1, 3)}, {"view_kind": 3 - (row.view_kind or 1)},
         {"previous_seq": 1, "previous_rep": 1}, {"detail": {"components": [[None, [1]]]}},
         {"detail": {"primary": False}}]
    )  # fmt: skip
    rows[k] = replaced(row, **change)


def _group(rows: list[Row], pick: random.Random) -> None:
    k = _some(rows, pick, Kind.GROUP_VIEW)
    if k is not None:
        rows[k] = replaced(rows[k], members=tuple(pick.sample(range(1, 6), 2)))


def _split(rows: list[Row], pick: random.Random) -> None:
    k = _some(rows, pick, Kind.DELIVER, Kind.RECEIVE)
    if k is not None and (rows[k].count or 0) > 1:
        row = rows[k]
        rows[k : k + 1] = [
            replaced(row, count=1),
            replaced(row, counter=(row.counter or 0) + 1, count=(row.count or 0) - 1),
        ]


def _silence(rows: list[Row], pick: random.Random) -> None:
    who = pick.choice([row.member for row in rows])
    kinds = pick.choice([{Kind.DELIVER}, set(Kind), {Kind.RECEIVE}, {Kind.VIEW}, {Kind.GROUP_VIEW}, {Kind.ORIGINATE}])
    rows[:] = [row for row in rows if row.member != who or row.kind not in kinds]


def _cut(rows: list[Row], pick: random.Random) -> None:
    """The end of one member's trace is lost."""
    who = pick.choice([row.member for row in rows])
    mine = [k for k, row in enumerate(rows) if row.member == who]
    gone = set(mine[pick.randrange(len(mine)) :])
    rows[:] = [row for k, row in enumerate(rows) if k not in gone]


def _world(rows: list[Row], pick: random.Random) -> None:
    members = tuple(sorted({row.member for row in rows if row.member}))
    time = pick.choice(rows).time_ns
    kind = pick.choice([Kind.STABLE, Kind.CRASH, Kind.FAULT, Kind.RESUME, Kind.START])
    some = tuple(pick.sample(members, pick.randint(1, len(members)))) if members else ()
    fields: dict[str, Any] = {"members": some, "detail": {"delay_ns": 500}} if kind == Kind.STABLE else {}
    if kind in (Kind.CRASH, Kind.RESUME, Kind.START) and members:
        fields = {"sender": pick.choice(members), "sender_incarnation": pick.randint(1, 2)}
    if kind == Kind.FAULT:
        fields = {"detail": {"class": "cut", "state": "on", "fields": {"lasting": True, "up_ms": pick.choice([0, 3])}}}
    rows.append(Row(0, 1, 1, time, time, int(kind), **fields))


def _late(rows: list[Row], pick: random.Random) -> None:
    """Everything from some row on takes place much later: bounds are missed, or the run goes on for long."""
    limit, shift = pick.choice(rows).time_ns, pick.choice([10**6, 10**10])
    rows[:] = [replaced(row, time_ns=row.time_ns + shift) if row.time_ns >= limit else row for row in rows]


def _refuse(rows: list[Row], pick: random.Random) -> None:
    k = _some(rows, pick, Kind.DELIVER, Kind.SUBMIT)
    if k is not None:
        row = rows[k]
        rows.insert(
            k, Row(row.member, row.incarnation, 1, row.time_ns, 0, int(Kind.REFUSE), detail={"why": "overloaded"})
        )


def _leave(rows: list[Row], pick: random.Random) -> None:
    """Somebody leaves, or does not say all that it did not send."""
    k = _some(rows, pick, Kind.LEAVE)
    if k is not None:
        rows[k] = replaced(rows[k], detail=pick.choice([None, {"unsent": [1, 2]}, {"unsent": [3, 9]}]))
        return
    k = _some(rows, pick, Kind.SUBMIT, Kind.DELIVER, Kind.VIEW)
    if k is not None:
        row = rows[k]
        rows.insert(k + 1, Row(row.member, row.incarnation, 1, row.time_ns, 0, int(Kind.LEAVE)))


MUTATIONS = (_swap, _twice, _lose, _move, _invent, _alter, _alter, _view, _view, _group, _split, _silence, _cut, _world,
             _late, _refuse, _leave, _leave)  # fmt: skip


def mutated(trace: Trace, seed: int) -> Trace:
    """The trace with one to three kinds of damage; local indexes count again unless that is the damage."""
    pick = random.Random(seed)
    rows = list(trace.rows)
    for _ in range(pick.choice([1, 1, 2, 3])):
        if rows:
            pick.choice(MUTATIONS)(rows, pick)
    if pick.random() < 0.97:
        rows.sort(key=lambda row: row_key(row)[:2])
        index: dict[tuple[int, int], int] = {}
        for k, row in enumerate(rows):
            life = (row.member, row.incarnation)
            index[life] = index.get(life, 0) + 1
            rows[k] = replaced(row, index=index[life])
    header = trace.header
    if pick.random() < 0.1:
        options = pick.choice([{"durable": True}, {"flush": "carry"}, {"gateways": [1]}])
        header = msgspec.structs.replace(header, options=options)
    if seed % 2:  # orders are compared within components alone
        header = msgspec.structs.replace(header, promises=tuple(id for id in header.promises if id != "S18"))
    return Trace(header, rows)

"""`ordercast status`: what each member of a running group does and waits for; and of one, whether it is in a view."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ordercast.cli.common import Whole, emit, group_file, group_options, json_option

if TYPE_CHECKING:
    from ordercast.config import GroupConfig


WATCH_SECONDS = 1.0


def _lines(members: list[dict[str, Any]]) -> str:
    lines: list[str] = []
    for each in members:
        if "error" in each:
            lines.append(f"member {each['member']}: {each['error']}")
            continue
        secure = "  [insecure]" if each.get("insecure") else ""
        key = f", speaks with key {each['key']['sends']}" if each["key"] else ""
        pure = ", a pure gateway" if "pure" in each["layers"] else ""
        lines.append(f"member {each['member']}{pure}: {_in_view(each)}{secure}")
        lines.append(f"    at {each['time']}, started {each['started']}{key}")
        for seen in each["views"]:
            lines.append(
                f"    {seen['time']}  view {seen['id']} of {_names(seen['members'])}: {seen['cause']}{_still(seen)}"
            )
        lines += [f"    {words}" for words in _rings(each["layers"].get("multiring", {}))]
        rates = each["rates"]
        lines.append(
            f"    each second: {rates['submitted']:g} messages submitted, {rates['delivered']:g} delivered; datagrams: "
            f"{rates['datagrams_sent']:g} sent, {rates['datagrams_received']:g} received"
        )
        for peer in each["peers"]:
            lost = f", {peer['frames_lost']} frames lost and asked for again" if peer["frames_lost"] else ""
            lines.append(f"    from member {peer['member']}: {peer['packets_per_s']:g} packets a second{lost}")
        queues = ", ".join(f"{name} {size}" for name, size in each["queues"].items() if size)
        here = each["datagrams"]
        lost = f"{here['lost_here']} unread, {here['unsent']} unsent, {here['trains_lost']} trains"
        lines.append(f"    queues: {queues or 'empty'}; datagrams lost here: {lost}")
        if each["drops"]:
            lines.append("    dropped: " + ", ".join(f"{reason} {n}" for reason, n in each["drops"].items()))
        lines.append("    waits for: " + ("; ".join(each["waits"]) or "nothing"))
        if unheard := _unheard(each):
            lines.append(f"    has not heard of {_names(unheard)}")
        lines += [f"    advice: {words}" for words in each["advice"]]
    return "\n".join(lines)


def _rings(joint: dict[str, Any]) -> Iterator[str]:
    """Of a member on rings: who is on each, what waits to be sent there, and by which gateways frames come there."""
    for number, ring in joint.get("rings", {}).items():
        waiting = f"; {ring['forward']} frames to be forwarded to it" if ring["forward"] else ""
        full = "; held back, a reader on it has no room" if ring["full"] else ""
        yield f"ring {number} of {_names(ring['members'])}{waiting}{full}"
    for source, ways in joint.get("routes", {}).items():
        if ways:
            yield f"frames of ring {source} go " + ", ".join(f"to ring {n} by member {by}" for n, by in ways.items())


def _unheard(each: dict[str, Any]) -> list[int]:
    """Members that are in no view with this one, that never spoke to it in this life, and not of other terms."""
    if each["view"] is None and each["in_view"]:
        return []  # a protocol without views
    known = {*(each["view"] or {}).get("members", ()), *(other["member"] for other in each["other_terms"])}
    return [peer["member"] for peer in each["peers"] if not peer["packets"] and peer["member"] not in known]


def _in_view(each: dict[str, Any]) -> str:
    view = each["view"]
    if view is None:
        return "running" if each["in_view"] else "no view yet"
    words = f"view {view['id']} of {_names(view['members'])}, because of {view['cause']}"
    if not each["in_view"]:
        return f"between views, the last was {words}"
    return words + (", not primary" if view["primary"] is False else "")


def _names(members: list[int]) -> str:
    return ", ".join(map(str, members))


def _still(seen: dict[str, Any]) -> str:
    ms = seen["standstill_ms"]
    return "" if ms is None else f" (delivery stood still for {ms:g} ms)"


def _works(answer: dict[str, Any]) -> bool:
    """Whether a member answers, is in a view, and that is primary where it matters."""
    return "error" not in answer and answer["in_view"] and (answer["view"] or {}).get("primary") is not False


def _absent(config: GroupConfig, members: list[dict[str, Any]]) -> list[int]:
    """Configured members that do not run: one that lives elsewhere runs if it is in the view of one that answers."""
    seen = {id for each in members if "error" not in each for id in (each["view"] or {}).get("members", ())}
    return [
        each["member"]
        for each in members
        if "error" in each and (each["member"] not in seen or config.state_path(each["member"]).is_dir())
    ]


@click.command("status")
@group_options
@click.option("--id", "me", type=Whole(1, 2**32 - 1), default=None, help="Ask this member only: is it in a view?")
@click.option("--watch", is_flag=True, help="Again every second, until interrupted.")
@json_option
def command(directory: Path | None, config: Path | None, me: int | None, watch: bool, as_json: bool) -> int:
    """Say what each member of a running group does and waits for.

    DIRECTORY is that of a run (it holds group.toml).  Members are asked through sockets in their state directories, so
    only those on this machine can be, in whatever network namespace they are.

    Exit code 1 if a configured member is absent; with --id, if that member does not run or is not in a (primary) view.
    """
    import time

    from ordercast.errors import UsageError

    checked = group_file(directory, config)
    if me is not None and me not in checked.ids:
        raise UsageError(f"--id {me}: expected one of {', '.join(map(str, checked.ids))}")
    code = _once(checked, me, as_json, clear=watch)
    try:
        while watch:
            time.sleep(WATCH_SECONDS)
            code = _once(checked, me, as_json, clear=True)
    except KeyboardInterrupt:  # as it is meant to end
        return 130
    return code


def _once(config: GroupConfig, me: int | None, as_json: bool, clear: bool) -> int:
    """Ask everybody and tell it; on a terminal in place of what was told before."""
    from ordercast.live import control

    members: list[dict[str, Any]] = []
    for id in config.ids if me is None else (me,):
        answer = control.ask(config.state_path(id))
        members.append({"member": id, "error": answer} if isinstance(answer, str) else answer)
    absent = _absent(config, members)
    found = sum("error" not in each for each in members)
    obj = {"group": config.group, "running": found, "absent": absent, "members": members}
    if clear and not as_json and sys.stdout.isatty():
        click.clear()
    emit(obj, as_json, lambda: _lines(members))
    sys.stdout.flush()
    return int(bool(absent) if me is None else not _works(members[0]))

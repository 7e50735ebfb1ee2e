"""`ordercast status`: what each member of a running group does and waits for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ordercast.cli.common import Whole, emit, json_option


def _lines(members: list[dict[str, Any]]) -> str:
    lines: list[str] = []
    for each in members:
        if "error" in each:
            lines.append(f"member {each['member']}: {each['error']}")
            continue
        view = each["view"]
        words = "no view yet" if view is None else f"view {view['id']} of {view['members']}, because of {view['cause']}"
        secure = "  [insecure]" if each.get("insecure") else ""
        lines.append(f"member {each['member']}: {words}{secure}")
        queues = ", ".join(f"{name} {size}" for name, size in each["queues"].items() if size)
        lost = f"{each['datagrams']['lost_here']} unread, {each['datagrams']['unsent']} unsent"
        lines.append(f"    queues: {queues or 'empty'}; datagrams lost here: {lost}")
        timers = ", ".join(f"{name} in {ms:.0f} ms" for name, ms in each["timers_ms"].items())
        lines.append(f"    timers: {timers or 'none'}")
        if each["drops"]:
            lines.append("    dropped: " + ", ".join(f"{reason} {n}" for reason, n in each["drops"].items()))
        lines.append("    waits for: " + ("; ".join(each["waits"]) or "nothing"))
        lines += [f"    advice: {words}" for words in each["advice"]]
    return "\n".join(lines)


@click.command("status")
@click.argument("directory", required=False, type=click.Path(path_type=Path))
@click.option("--config", type=click.Path(path_type=Path), default=None, help="The group's file, instead of DIRECTORY.")
@click.option("--id", "me", type=Whole(1, 2**32 - 1), default=None, help="Ask this member only.")
@json_option
def command(directory: Path | None, config: Path | None, me: int | None, as_json: bool) -> int:
    """Say what each member of a running group does and waits for.

    DIRECTORY is that of a run (it holds group.toml).  Members are asked through sockets in their state directories, so
    only those on this machine can be.
    """
    from ordercast import config as configuration
    from ordercast.errors import UsageError
    from ordercast.live import control

    if (directory is None) == (config is None):
        raise UsageError("expected either the directory of a run or --config FILE")
    checked = configuration.load(config if config is not None else directory / "group.toml")  # type: ignore[operator]
    if me is not None and me not in checked.ids:
        raise UsageError(f"--id {me}: expected one of {', '.join(map(str, checked.ids))}")
    members: list[dict[str, Any]] = []
    for id in checked.ids if me is None else (me,):
        answer = control.ask(checked.state_path(id))
        members.append({"member": id, "error": answer} if isinstance(answer, str) else answer)
    found = [each for each in members if "error" not in each]
    emit({"group": checked.group, "running": len(found), "members": members}, as_json, lambda: _lines(members))
    return 0 if found else 1

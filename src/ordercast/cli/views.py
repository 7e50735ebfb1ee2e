"""`ordercast views`: the history of a group's views, from its traces."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ordercast.cli.common import emit, group_file, json_option
from ordercast.errors import UsageError

if TYPE_CHECKING:
    from ordercast.trace.history import Change


@click.command("views")
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--config", type=click.Path(path_type=Path), default=None, help="The group's file, instead of PATH.")
@json_option
def command(paths: tuple[Path, ...], config: Path | None, as_json: bool) -> int:
    """Print the history of a group's views: when each came, who is in it, why, how long delivery stood still.

    From the traces at PATH... (of live runs, which may go on meanwhile, or of simulations), or from those of the group
    that --config names.  Traces may be of any size.
    """
    from ordercast.trace.find import find
    from ordercast.trace.history import history

    if bool(paths) == (config is not None):
        raise UsageError("expected either the PATH of traces or --config FILE")
    changes = history(find(paths if config is None else [group_file(None, config).trace_path]))
    emit({"views": [_object(change) for change in changes]}, as_json, lambda: _lines(changes))
    return 0


def _object(change: Change) -> dict[str, Any]:
    still = change.standstill_ns
    return {
        "run": change.run,
        "id": change.id,
        "time": change.when() if change.wall_ns is not None else None,
        "time_ns": change.time_ns,
        "members": list(change.members),
        "cause": change.cause,
        "primary": change.primary,
        "installed_ns": {str(member): at for member, at in sorted(change.at.items())},
        "standstill_ms": None if still is None else round(still / 1e6, 3),
    }


def _lines(changes: list[Change]) -> str:
    if not changes:
        return "no view was installed in these traces"
    lines: list[str] = []
    several = len({change.run for change in changes}) > 1
    for k, change in enumerate(changes):
        if several and (k == 0 or changes[k - 1].run != change.run):
            lines.append(f"run {change.run}:")
        lines.append(f"{change.when()}  view {change.id} of {_names(change.members)}: {change.cause}{_more(change)}")
    return "\n".join(lines)


def _more(change: Change) -> str:
    lacking = [member for member in change.members if member not in change.at]
    more = [] if change.standstill_ns is None else [f"delivery stood still for {change.standstill_ns / 1e6:.3g} ms"]
    more += [f"not seen by {_names(lacking)}"] if lacking else []
    more += ["not primary"] if change.primary is False else []
    return f" ({'; '.join(more)})" if more else ""


def _names(members: tuple[int, ...] | list[int]) -> str:
    return ", ".join(map(str, members))

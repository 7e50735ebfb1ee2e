"""`ordercast member`: be one member of a group."""

from __future__ import annotations

from pathlib import Path

import click

from ordercast.cli.common import Choice, Whole


@click.command("member")
@click.option("--config", type=click.Path(path_type=Path), required=True, help="The group's file (group.toml).")
@click.option("--id", "me", type=Whole(1, 2**32 - 1), required=True, help="Which of its members this process is.")
@click.option("--work", default="", hidden=True, help="A share of a workload, as `ordercast run` hands it out.")
@click.option("--metrics", default="", metavar="[ADDRESS:]PORT", help="Serve metrics for Prometheus; on loopback.")
@click.option("--log", type=Choice("text", "json"), default="text", help="How it logs, on standard error.")
@click.option("--json", is_flag=True, expose_value=False, help="JSON lines; they are printed without it as well.")
def command(config: Path, me: int, work: str, metrics: str, log: str) -> int:
    """Be one member of a group, as its configuration says.

    Each line of standard input is sent as one message.  Deliveries and views are printed as they come, in the order
    that all members see, each as one JSON object on a line: {"event": "view", "time": "...", ...}, {"event": "message",
    "time": "...", "sender": 2, "counter": 1, "data": "..."} (data_base64 if it is no UTF-8).  SIGTERM (or Ctrl-C)
    leaves the group in good order: what was accepted is sent first; a second one leaves at once.  The end of standard
    input does not.
    """
    from ordercast.live import lifeline

    lifeline.hold()
    import msgspec

    from ordercast import config as configuration
    from ordercast.errors import UsageError
    from ordercast.live import jsonlog
    from ordercast.live.member import Work, main
    from ordercast.live.metrics import place

    if log == "json":
        jsonlog.install()
    at = place(metrics) if metrics else None
    checked = configuration.load(config, me)
    try:
        share = msgspec.json.decode(work, type=Work) if work else None
    except msgspec.MsgspecError as why:
        raise UsageError(f"--work: {why}") from None
    return main(checked, me, share, at)

"""`ordercast tagger`: number datagrams for a group that needs one order of them."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("tagger")
@click.option("--config", type=click.Path(path_type=Path), required=True, help="The group's file (group.toml).")
@click.option("--json", is_flag=True, expose_value=False, help="JSON lines; they are printed without it as well.")
def command(config: Path) -> int:
    """Number datagrams for a group, at the address that [tagger] of its configuration names.

    The tagger is no member: it keeps no messages, and nothing is lost with it.  While none runs, nothing new is
    ordered, which every member's status says; a new one may be started at any time, at the same address.  SIGTERM (or
    Ctrl-C) ends it.
    """
    from ordercast.live import lifeline

    lifeline.hold()
    from ordercast import config as configuration
    from ordercast.contract import TAGGER
    from ordercast.live.tagger import main

    return main(configuration.load(config, me=TAGGER))

"""`ordercast bench`: throughput, cost and latency of a protocol on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ordercast.cli.common import (
    Number,
    Whole,
    emit,
    json_option,
    members_on,
    members_option,
    mode_option,
    option_option,
    progress,
    protocol_option,
    protocol_options,
    rings_option,
    service_option,
    size_option,
)
from ordercast.limits import MEMBERS_MAX


def _lines(figures: dict[str, Any]) -> str:
    def number(name: str, unit: str) -> str:
        value = figures[name]
        return "-" if value is None else f"{value:,} {unit}".strip()

    if "violating" in figures:
        bounds = f"{figures['rate_least']:.2g} to {figures['rate_most']:.2g}"
        order = f"    quasi order        {figures['violating']} of {figures['judged']:,} frames violate it, {bounds}, "
    else:
        order = f"    same order         {'yes' if figures['same_order'] else 'NO'}, "
    what = f"{figures['protocol']}, {figures['members']} members, {figures['senders']} senders, {figures['size']} bytes"
    return "\n".join(
        (
            f"{what}, {figures['service']}, {figures['mode']}",
            f"    ordered messages   {number('msgs_s', '/s')}   {number('mb_s', 'MB/s')}",
            f"    processor time     {number('cpu_us_per_msg', 'us per message, over all members')}; "
            f"{figures['cpu_percent']:g} % of a core at the busiest",
            f"    latency            p50 {number('p50_us', 'us')}, p99 {number('p99_us', 'us')}",
            f"    without clocks     mean {number('mean_us_method1', 'us')} (by pairs), "
            f"{number('mean_us_method2', 'us')} (by echoes)",
            f"{order}{figures['view_changes']} view changes, "
            f"{figures['datagrams_lost']} datagrams lost at full buffers",
        )
    )


@click.command("bench")
@protocol_option
@members_option
@size_option
@click.option("--senders", type=Whole(1, MEMBERS_MAX), default=None, help="How many of them send; by default all.")
@click.option("--seconds", type=Number(0, 3600, above=True), default=5.0, show_default=True, help="Time measured.")
@click.option("--rate", type=Number(0, above=True), default=None, help="Messages per second in all; else a flood.")
@service_option
@click.option("--config", type=click.Path(path_type=Path), default=None, help="A group.toml that says the rest.")
@mode_option
@option_option
@rings_option
@click.option("--pure", type=Whole(1, MEMBERS_MAX), multiple=True, help="A gateway that sends and reads nothing.")
@click.option("--crossing", type=Number(0, 1), default=None, help="The share of messages that leave their ring.")
@click.option("--mtu", type=Whole(576, 65535), default=None, help="Members in namespaces on a bridge with this MTU.")
@click.option("--insecure", is_flag=True, help="Without sealing, to see what it costs.")
@json_option
def command(
    protocol: str,
    members: int,
    size: int,
    senders: int | None,
    seconds: float,
    rate: float | None,
    service: str | None,
    config: Path | None,
    mode: str,
    options: tuple[str, ...],
    rings: tuple[tuple[int, ...], ...],
    pure: tuple[int, ...],
    crossing: float | None,
    mtu: int | None,
    insecure: bool,
    as_json: bool,
) -> int:
    """Measure throughput, cost and latency of a protocol on this machine.

    Starts real processes; each reads the first eight bytes of every message it is delivered.  The figures: ordered
    messages per second at the slowest member after a warm-up, processor time of all members per message, and the
    one-way latency at the slowest member.  Exit code 1 if the members disagree on the order (of fifo and causal: on the
    order of any one sender's messages).  Where the order is not exact, the share of frames that violate it is told, and
    the members write a trace meanwhile.
    """
    from ordercast import config as configuration
    from ordercast import registry
    from ordercast.errors import UsageError
    from ordercast.lab.bench import BenchPlan, bench

    given = None
    if config is not None:
        if mtu is not None:
            raise UsageError("--mtu and --config: expected at most one of them")
        if insecure:
            raise UsageError("--insecure and --config: expected at most one of them")
        given = configuration.load(config)
        protocol, members, mode = given.protocol, len(given.members), given.net.mode
    if rings:
        if config is not None:
            raise UsageError("--ring and --config: expected at most one of them")
        members = members_on(rings, members)
    plan = BenchPlan(
        protocol=protocol,
        members=members,
        size=size,
        senders=members - len(set(pure)) if senders is None else senders,
        seconds=seconds,
        rate=rate or 0.0,
        service=service or "",
        mode=mode,
        mtu=mtu or 0,
        options=protocol_options(options, protocol, members),
        insecure=insecure,
        rings=rings,
        pure=pure,
        crossing=crossing,
    )
    with progress(f"{protocol}: {members} members, {seconds:g} s"):
        figures = bench(plan, given)
    emit(figures, as_json, lambda: _lines(figures))
    return 0 if figures["same_order"] or not registry.get(plan.protocol).exact else 1

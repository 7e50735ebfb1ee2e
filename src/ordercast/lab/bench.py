"""Throughput, cost and latency of a group on this machine: starts its members, lets them send, collects the figures.

All processes share the clock of the machine, so one-way latency is exact.  The figure for messages is that of the
slowest member inside a window that opens after a warm-up; the cost is the processor time of all members in that window.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from ordercast import config as configuration
from ordercast import keyfiles, registry
from ordercast.config import GroupConfig, Member, NetConfig, TraceConfig
from ordercast.contract import TAGGER
from ordercast.errors import RunError, UsageError
from ordercast.lab import echo, namespaces
from ordercast.lab.fleet import Child, Fleet, died, fleet
from ordercast.lab.load import QUIET_SECONDS, Spec
from ordercast.lab.namespaces import Host
from ordercast.lab.rings import MEMBER_PORT, Rings, bridged_rings, check_rings, loopback_rings
from ordercast.limits import DATAGRAM_BYTES_LOOPBACK, DATAGRAM_BYTES_MAX
from ordercast.live import build

WARM_UP_SECONDS = 0.5
START_SECONDS = 30.0  # for all members to be in one view
AHEAD_BYTES = 2 * 2**20  # of one sender that sends as fast as it can
AHEAD_MESSAGES_MIN = 16
KEY = "group.key"  # of a run, in its folder


class BenchPlan(msgspec.Struct):
    """One measurement."""

    protocol: str = "totem"
    members: int = 4
    size: int = 100
    senders: int = 4
    seconds: float = 3.0
    rate: float = 0.0  # messages per second of all senders together; 0: as fast as possible
    service: str = ""
    mode: str = "multicast"
    options: dict[str, Any] = {}
    mtu: int = 0  # above 0: members in network namespaces, on a bridge with this MTU, each ring on its own
    datagram_bytes: int = 0
    timeout_ms: int = 0
    warm_up: float = WARM_UP_SECONDS
    ahead: int = 0
    profile: str = ""
    trace: str = ""  # a folder for the traces of the members; by default they write none where the order is exact
    insecure: bool = False  # datagrams are not sealed
    rings: Rings = ()  # none: one network
    pure: tuple[int, ...] = ()
    crossing: float | None = None  # the share of messages for everybody; the others stay on their sender's ring


def free_ports(count: int, address: str = "127.0.0.1") -> list[int]:
    """UDP ports that nobody uses at this moment."""
    with contextlib.ExitStack() as stack:
        found = []
        for _ in range(count):
            probe = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            probe.bind((address, 0))
            found.append(probe.getsockname()[1])
        return found


def needs_tagger(info: registry.ProtocolInfo, options: Mapping[str, Any]) -> bool:
    """Whether a group with these options has a tagger."""
    return info.tagger is not None and getattr(msgspec.convert(options, info.options), "channel", "") == "tagger"


def make_config(plan: BenchPlan, base: Path, hosts: list[Host]) -> GroupConfig:
    info = registry.get(plan.protocol)
    if hosts:
        port = MEMBER_PORT - 1
        rings = bridged_rings(plan.rings, plan.mode, port)
        members = tuple(Member(k, host.address, MEMBER_PORT) for k, host in enumerate(hosts, 1))
    else:
        port, *ports = free_ports(plan.members + 1 + sum(map(len, plan.rings)))
        rings = loopback_rings(plan.rings, plan.mode, port, iter(ports[plan.members :]))
        members = tuple(Member(k, "127.0.0.1", at) for k, at in enumerate(ports[: plan.members], 1))
    largest = min(plan.mtu - 28, DATAGRAM_BYTES_MAX) if hosts else DATAGRAM_BYTES_LOOPBACK
    config = GroupConfig(
        group=f"bench-{secrets.token_hex(4)}",
        protocol=plan.protocol,
        members=members,
        options=msgspec.convert(plan.options, info.options),
        timeout_ms=plan.timeout_ms or build.timeout_here_ms(plan.members),
        datagram_bytes=plan.datagram_bytes or min(largest, DATAGRAM_BYTES_LOOPBACK),
        net=NetConfig(plan.mode, configuration.MULTICAST_ADDRESS, port, namespaces.INTERFACE if hosts else "127.0.0.1"),
        rings=rings,
        pure=plan.pure,
        trace=TraceConfig("off"),
        key="" if plan.insecure else KEY,
        insecure=plan.insecure,
        tagger=_tagger(hosts) if needs_tagger(info, plan.options) else None,
        base=base,
    )
    if config.key_path is not None:
        keyfiles.write(config.key_path)
    build.frame_limit(config)
    return config


def _tagger(hosts: list[Host]) -> Member:
    """Beside the first member."""
    return Member(TAGGER, hosts[0].address, 7401) if hosts else Member(TAGGER, "127.0.0.1", free_ports(1)[0])


def check(plan: BenchPlan) -> BenchPlan:
    info = registry.get(plan.protocol)
    if plan.senders > plan.members:
        raise UsageError(f"--senders {plan.senders}: expected at most the {plan.members} members")
    service = plan.service or info.default_service.word
    if service not in [s.word for s in info.provides]:
        words = ", ".join(s.word for s in info.provides)
        raise UsageError(f"--service {service}: {plan.protocol} provides {words}")
    check_rings(plan.rings, plan.members, info, plan.pure)
    if plan.crossing is not None and not plan.rings:
        raise UsageError(f"--crossing {plan.crossing:g}: expected --ring beside it")
    return msgspec.structs.replace(plan, service=service)


async def measure(plan: BenchPlan, config: GroupConfig | None = None) -> dict[str, Any]:
    """Run one measurement; `config` fixes protocol, members, addresses and options."""
    plan = check(plan)
    with contextlib.ExitStack() as stack:
        base = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ordercast-bench-")))
        hosts: list[Host] = []
        if plan.mtu:
            joined = (
                namespaces.bridges(plan.rings, plan.mtu) if plan.rings else namespaces.bridge(plan.members, plan.mtu)
            )
            hosts = stack.enter_context(joined)
        if config is None:
            config = make_config(plan, base, hosts)
        key = "" if config.key_path is None else str(config.key_path.absolute())
        exact = registry.get(config.protocol).exact
        written = plan.trace or ("" if exact else str(base / "trace"))
        trace = TraceConfig("deliver", written) if written else TraceConfig("off")
        changed = msgspec.structs.replace(config, trace=trace, state_dir=str(base / "s"), key=key)
        text = configuration.dump(changed)
        async with fleet(base / "logs") as group, fleet(base / "logs") as aside:
            if config.tagger is not None:
                file = base / "group-tagger.toml"
                file.write_text(text)
                await aside.start_tagger(file, hosts[0].enter if hosts else ())
            figures = await _run(plan, config, text, base, hosts, group)
        return figures if exact else figures | violations(Path(written))


def home(config: GroupConfig, me: int) -> int:
    """The ring on which a member's own messages begin."""
    return next((ring.number for ring in config.rings if me in ring.addresses), 0)


async def _run(
    plan: BenchPlan, config: GroupConfig, text: str, base: Path, hosts: list[Host], group: Fleet
) -> dict[str, Any]:
    answers: dict[str, dict[int, Any]] = {"ready": {}, "sent": {}, "result": {}}
    news = asyncio.Event()

    def said(child: Child, words: dict[str, Any]) -> None:
        for key, value in words.items():
            answers[key][child.member] = value
        news.set()

    async def all_said(key: str, seconds: float, what: str) -> dict[int, Any]:
        until = time.monotonic() + seconds
        while len(answers[key]) < len(group.children):
            gone = [child for child in group.children if not child.alive and child.member not in answers[key]]
            if gone:
                raise died(gone[0])
            news.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.1):
                    await news.wait()
            if time.monotonic() > until:
                silent = [str(c.member) for c in group.children if c.member not in answers[key]]
                raise RunError(f"bench: members {', '.join(silent)} {what} within {seconds:g} s")
        return answers[key]

    talkers = [me for me in config.ids if me not in config.pure][: plan.senders]
    for rank, me in enumerate(config.ids):
        file = base / f"group-{me}.toml"
        file.write_text(text)
        spec = Spec(
            str(file), me, plan.size, me in talkers, plan.rate / plan.senders, plan.seconds, plan.warm_up,
            plan.service, plan.ahead or max(AHEAD_MESSAGES_MIN, AHEAD_BYTES // max(1, plan.size)), plan.profile,
            len(config.members), rank / plan.rate if plan.rate else 0.0, plan.crossing, home(config, me),
        )  # fmt: skip
        arguments = ["-m", "ordercast.lab.load", msgspec.json.encode(spec).decode()]
        await group.start(me, arguments, said, hosts[rank].enter if hosts else ())
    await all_said("ready", START_SECONDS, "were not in one view")
    start = time.monotonic_ns() + 200_000_000
    for child in group.children:
        child.tell(start=start)
    wait = plan.warm_up + plan.seconds + 30
    sent = await all_said("sent", wait, "still have undelivered messages")
    for child in group.children:
        child.tell(total=sum(count - near * (home(config, by) != home(config, child.member))
                             for by, (count, near) in sent.items()))  # fmt: skip
    results = await all_said("result", QUIET_SECONDS + 5, "gave no result")
    for child in group.children:
        child.tell(end=True)
    await group.ended(5.0)
    return summary(plan, config, results)


def summary(plan: BenchPlan, config: GroupConfig, results: Mapping[int, dict[str, Any]]) -> dict[str, Any]:
    """One object of figures."""
    each = [r for r in results.values() if r["member"] not in config.pure]
    least = min(r["msgs"] for r in each) if plan.crossing is None else sum(r["own"] for r in each)
    user, system = (sum(r[key] for r in results.values()) for key in ("user_s", "system_s"))
    common = min(len(r["checkpoints"]) for r in each)
    prefixes = {tuple(r["checkpoints"][:common]) for r in each}
    total = sum(r["sent"] for r in each)
    complete = all(r["delivered"] == r["total"] for r in each)
    p50, p99 = ([r[key] for r in each if r[key] is not None] for key in ("p50_us", "p99_us"))
    status = [r["status"] for r in results.values()]
    percent = {me: round(100 * (r["user_s"] + r["system_s"]) / plan.seconds, 1) for me, r in sorted(results.items())}
    return {
        "protocol": config.protocol,
        "members": len(config.members),
        "senders": plan.senders,
        "size": plan.size,
        "service": plan.service,
        "mode": config.net.mode,
        "rings": len(config.rings) or 1,
        "crossing": plan.crossing,
        "rate": plan.rate,
        "seconds": plan.seconds,
        "datagram_bytes": config.datagram_bytes,
        "mtu": plan.mtu or None,
        "sealed": not config.insecure,
        "msgs_s": round(least / plan.seconds),
        "mb_s": round(least * plan.size / plan.seconds / 1e6, 3),
        "cpu_us_per_msg": round(1e6 * (user + system) / least, 3) if least else None,
        "cpu_percent": max(percent.values()),
        "cpu_percent_each": percent,
        "most_mib": round(max(r["most_mib"] for r in results.values()), 1),
        "system_share": round(system / (user + system), 2) if user + system else None,
        "p50_us": round(max(p50), 1) if p50 else None,
        "p99_us": round(max(p99), 1) if p99 else None,
        **echo.summary(r["skew_free"] for r in each),
        "same_order": len(prefixes) == 1 and complete and len({r["order"] for r in each}) == 1,
        "messages": total,
        "messages_per_frame": round(total / max(1, each[0]["frames"]), 1),
        "view_changes": max(r["views"] for r in each),
        "datagrams_lost": sum(s["datagrams"]["lost_here"] for s in status),
        "drops": sum(sum(s["drops"].values()) for s in status),
    }


def violations(trace: Path) -> dict[str, Any]:
    """Where the order is not exact: how many frames violate it, and the bounds of their share."""
    from ordercast.trace.load import load_columns
    from ordercast.verify.columns.model import Run
    from ordercast.verify.columns.quasi import tally
    from ordercast.verify.quasi import bounds

    ((header, columns),) = load_columns(trace)
    found = tally(Run(columns, header))
    low, high = bounds(found.violating, found.messages)
    return {"violating": found.violating, "judged": found.messages, "rate_least": low, "rate_most": high}


def bench(plan: BenchPlan, config: GroupConfig | None = None) -> dict[str, Any]:
    return asyncio.run(measure(plan, config))

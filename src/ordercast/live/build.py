"""From a configuration to a node: identity, stack, sockets' addresses, trace."""

from __future__ import annotations

import platform
import random
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from ordercast import addresses, places, registry
from ordercast import config as configuration
from ordercast.config import GroupConfig
from ordercast.contract import TAGGER, Event, Setup
from ordercast.drivers.sizes import frame_bytes, least_packet
from ordercast.drivers.terms import Agreement, Other, terms_of
from ordercast.errors import ConfigError
from ordercast.interfaces import one_processor
from ordercast.live.names import Names
from ordercast.live.node import Node
from ordercast.live.sealing import Sealing
from ordercast.live.sockets import NetAddresses
from ordercast.live.storage import Storage, ring_seq_now
from ordercast.registry import ProtocolInfo
from ordercast.replica.objects import Objects
from ordercast.replica.replica import Replica
from ordercast.stack import Node as StackNode
from ordercast.stack import Stack
from ordercast.state.layer import State
from ordercast.trace import record
from ordercast.trace.keep import Keep
from ordercast.trace.recorder import Expected, Recorder
from ordercast.trace.rows import RowFile
from ordercast.trace.schema import Header, Level
from ordercast.types import ALL_CONTINUE, Identity, MemberId, NetId, Peer, Service
from ordercast.version import __version__

PATIENCE = 4  # a turn may wait for a full send buffer for a quarter of T: nobody takes it for dead meanwhile
CROWD = 8  # members on one machine that still find each other within a few tens of milliseconds


def net_addresses(config: GroupConfig, me: MemberId, info: ProtocolInfo) -> NetAddresses:
    net, own = config.net, config.member(me)
    known = {m.id: (m.address, m.port) for m in config.everybody if not addresses.is_name(m.address)}
    here, everywhere = ("::1", places.ANY_IPV6) if config.ipv6 else ("127.0.0.1", places.ANY)
    named = me not in known
    return NetAddresses(
        me=me,
        addresses={me: (here, own.port)} | known if named else known,
        group=(net.address, net.port) if net.mode == "multicast" else None,
        interface=net.interface,
        hears_self=info.hears_self and me != TAGGER,
        hears_group=me != TAGGER,
        bind=(own.bind, own.bind_port) if own.bind else (everywhere, own.port) if named else None,
    )


def ring_addresses(config: GroupConfig, me: MemberId, info: ProtocolInfo) -> dict[NetId, NetAddresses]:
    """Of each network that a member is on; rings are numbered from 1, networks from 0."""
    if not config.rings:
        return {0: net_addresses(config, me, info)}
    return {
        ring.number - 1: NetAddresses(
            me=me,
            addresses=ring.addresses,
            group=(ring.net.address, ring.net.port) if ring.net.mode == "multicast" else None,
            interface=ring.net.interface,
            hears_self=info.hears_self,
            number=ring.number - 1,
        )
        for ring in config.rings
        if me in ring.addresses
    }


def named(config: GroupConfig, me: MemberId) -> Names | None:
    """The others that are known by name."""
    names = {m.id: (m.address, m.port) for m in config.everybody if m.id != me and addresses.is_name(m.address)}
    return Names(names, config.ipv6) if names else None


def sealing(config: GroupConfig, identity: Identity, storage: Storage, info: ProtocolInfo) -> Sealing | None:
    """With the configuration's key; members with an address that is their own may speak from there only."""
    if config.key_path is None:
        return None
    known = [(m.id, m.address) for m in config.everybody if not m.bind and not addresses.is_name(m.address)]
    known += [(id, host) for ring in config.rings for id, (host, _) in ring.addresses.items()]
    hosts = {id: frozenset(host for each, host in known if each == id) for id, _ in known}
    return Sealing(config.key_path, identity, storage, info.hears_self, hosts)


def frame_limit(config: GroupConfig) -> int:
    """The largest frame of this group; packets too small for it are a fault of the configuration."""
    packet_bytes = config.packet_bytes or configuration.packet_default(config.datagram_bytes)
    if registry.get(config.protocol).one_datagram:
        packet_bytes = min(packet_bytes, config.datagram_bytes)
    members, least = len(config.members), least_packet(len(config.members))
    if packet_bytes < least:
        what = f"packet_bytes {packet_bytes}: too small for {members} members"
        raise ConfigError([f"{what}: expected {least} or more"])
    return frame_bytes(packet_bytes, members)


def timeout_here_ms(members: int) -> int:
    """T for a group whose members all share this machine's processors: many of them need more time for each other."""
    return configuration.TIMEOUT_MS_LOOPBACK if members <= CROWD else configuration.TIMEOUT_MS


def trace_header(config: GroupConfig, run: str, service: Service, workload: dict[str, Any]) -> Header:
    """What a live run was."""
    info = registry.get(config.protocol)
    return Header(
        run=run,
        protocol=config.protocol,
        service=service.word,
        members=config.ids,
        promises=info.promised(service.word, config.partition),
        partition=config.partition,
        level=config.trace.level,
        live=True,
        timeout_ns=config.timeout_ns,
        options=msgspec.to_builtins(config.options),
        workload=workload,
        versions={"ordercast": __version__, "python": platform.python_version()},
    )


class Trace(msgspec.Struct, frozen=True):
    """How a member's trace is written."""

    run: str
    dir: Path
    level: Level
    service: Service
    workload: dict[str, Any] = {}
    expected: Expected | None = None


def make_node(
    config: GroupConfig,
    me: MemberId,
    on_events: Callable[[list[Event]], None],
    on_failure: Callable[[BaseException], None],
    *,
    on_other_terms: Callable[[Other], None],
    folder: Path | None,
    trace: Trace | None = None,
    objects: Mapping[str, Replica] | None = None,
) -> Node:
    """A node ready to start; with `objects` it has replicated state.  Everything that can be wrong with the machine
    shows here, before anything is sent."""
    info = registry.get(config.protocol)
    size = frame_limit(config)
    if getattr(config.options, "channel", "") == "lan" and not one_processor(config.net.interface):
        what = f"channel lan: receive steering of interface {config.net.interface} does not name exactly one processor"
        raise ConfigError([f"{what}: all would not hear one order; write one into its rps_cpus, or use the tagger"])
    storage = Storage(folder, me)
    recorder = None
    try:
        incarnation = storage.new_incarnation()
        identity = Identity(me, incarnation, config.ids, config.group, ring_seq_now())
        plans = ring_addresses(config, me, info)
        generator = random.Random(secrets.randbits(64))
        setup = Setup(identity, config.timeout_ns, config.options, size, generator, tuple(plans))
        setup.on_nets = {ring.number - 1: tuple(ring.addresses) for ring in config.rings if me in ring.addresses}
        setup.partition, setup.pure = config.partition, me in config.pure
        if trace is not None and trace.level > Level.OFF:
            recorder = _recorder(config, setup, trace)
        maker = info.tagger if me == TAGGER else info.factory
        assert maker is not None
        stack = maker(setup)
        machine = Objects(Peer(me, incarnation), config.partition == ALL_CONTINUE) if objects is not None else None
        if machine is not None:
            for name, object in (objects or {}).items():
                machine.expect(name, object)
            stack = Stack(StackNode(State(machine, setup, info.provides, storage.found()), [stack.top]))
        values = terms_of(config.protocol, config.options, config.timeout_ns, config.ids, config.partition)
        values |= {"objects": "yes"} if machine is not None else {}
        seals = sealing(config, identity, storage, info)
        secret = secrets.token_bytes(32) if seals is not None else b""
        agreement = Agreement(Peer(me, incarnation), config.ids, values, config.timeout_ns, on_other_terms, secret)
        return Node(
            info, stack, identity, plans, storage,
            on_events=on_events, on_failure=on_failure, recorder=recorder,
            frame_bytes=size, datagram_bytes=config.datagram_bytes, patience_ns=config.timeout_ns // PATIENCE,
            agreement=agreement, sealing=seals, names=named(config, me),
            tagger=config.tagger is not None, objects=machine,
        )  # fmt: skip
    except BaseException:
        if recorder is not None:
            recorder.close()
        storage.close()
        raise


def _recorder(config: GroupConfig, setup: Setup, trace: Trace) -> Recorder:
    identity = setup.identity
    head = trace_header(config, trace.run, trace.service, trace.workload)
    log = record.RecordWriter(trace.dir, record.recorded(head, setup)) if trace.level >= Level.RECORD else None
    life, size = (identity.me, identity.incarnation), config.trace.keep_mb << 20
    rows = RowFile(trace.dir, head, *life, keep=Keep(trace.dir, head, *life, size) if size else None)
    return Recorder(rows, identity.me, identity.incarnation, trace.level, trace.expected, log)

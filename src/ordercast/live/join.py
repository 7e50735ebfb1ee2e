"""`ordercast.join`: from keywords or a configuration to a group that can be entered."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ordercast import config as configuration
from ordercast import registry
from ordercast.config import GroupConfig
from ordercast.errors import UsageError
from ordercast.live.group import Group
from ordercast.replica.replica import Replica
from ordercast.toml_input import shown
from ordercast.types import PRIMARY_MAJORITY, MemberId, Service


def join(
    group: str | None = None,
    *,
    me: MemberId,
    members: int | Mapping[int, str] | Iterable[int] | None = None,
    protocol: str | None = None,
    port: int | None = None,
    mode: str | None = None,
    interface: str | None = None,
    options: Mapping[str, Any] | None = None,
    timeout_ms: int | None = None,
    datagram_bytes: int | None = None,
    packet_bytes: int | None = None,
    state_dir: str | Path | None = None,
    partition: str | None = None,
    key: str | Path | None = None,
    insecure: bool = False,
    at_least: int | None = None,
    timeout: float | None = None,
    objects: Mapping[str, Replica] | None = None,
    config: str | Path | Mapping[str, Any] | GroupConfig | None = None,
) -> Group:
    """A group to enter with `async with`.

    Either `config` names a group.toml (or is a dict of its shape), or the keywords say what it would: `members` is
    a number (all on this machine, ports counted up from `port`), or a mapping of id to address.  `key` names the file
    that `ordercast keygen` made; `insecure=True` goes without one, on loopback.  Without a `state_dir` nothing is kept
    on disk.  `partition` says what the parts of a split group may do, as in group.toml; with `objects` it is
    primary-majority unless it is said.

    Entering waits for the first view of `at_least` members, by default more than half of those configured (1: to begin
    alone); after `timeout` seconds it raises JoinTimeout with what is known.  Then it has the `objects`, by name, as
    the group has them; a group has objects at all members ({}: none yet, see `Group.replicate`) or at none.
    """
    if type(me) is not int:
        raise UsageError(f"join: me: {shown(me)}: expected the id of a member, a whole number")
    if config is not None:
        network = (members, port, mode, interface, datagram_bytes, packet_bytes)
        given = (group, protocol, options, timeout_ms, state_dir, partition, key, *network)
        if any(value is not None for value in given):
            raise UsageError("join: expected either config or the keywords that describe a group, not both")
        by_hand = isinstance(config, GroupConfig | Mapping)
        checked = configuration.make(config, me) if by_hand else configuration.load(config, me)  # type: ignore[arg-type]
        return _group(checked, me, checked.state_path(me), at_least, timeout, objects)
    if group is None or members is None:
        raise UsageError("join: expected a group's name and its members, or config")
    base_port = configuration.PORT if port is None else port
    net: dict[str, Any] = {"port": base_port}
    data: dict[str, Any] = {"group": group, "insecure": insecure, "net": net, "trace": {"level": "off"}}
    data["member"] = [{"id": id, "address": address} for id, address in _addresses(members, base_port).items()]
    net |= {key: value for key, value in (("mode", mode), ("interface", interface)) if value is not None}
    more = {"protocol": protocol, "timeout_ms": timeout_ms, "partition": partition or _policy(protocol, objects)}
    more["key"] = None if key is None else str(key)
    more |= {"datagram_bytes": datagram_bytes, "packet_bytes": packet_bytes}
    data |= {key: value for key, value in more.items() if value is not None}
    if options is not None:
        data["options"] = dict(options)
    if state_dir is not None:
        data["state_dir"] = str(state_dir)
    checked = configuration.make(data, me)
    folder = checked.state_path(me) if state_dir is not None else None
    return _group(checked, me, folder, at_least, timeout, objects)


def _group(
    config: GroupConfig,
    me: MemberId,
    folder: Path | None,
    at_least: int | None,
    timeout: float | None,
    objects: Mapping[str, Replica] | None,
) -> Group:
    members = len(config.members)
    if at_least is None:
        at_least = members // 2 + 1
    if type(at_least) is not int or not 1 <= at_least <= members:
        raise UsageError(f"join: at_least: {shown(at_least)}: expected a number of members from 1 to {members}")
    if timeout is not None and (type(timeout) not in (int, float) or not 0 < timeout < math.inf):
        raise UsageError(f"join: timeout: {shown(timeout)}: expected seconds, more than 0")
    if objects is not None:
        _check_objects(config, objects)
    return Group(config, me, folder=folder, at_least=at_least, timeout=timeout, objects=objects)


def _policy(protocol: str | None, objects: Any) -> str | None:
    """Where nothing is said: what a state that all share needs, if it can be had."""
    if objects is None or (protocol is not None and not registry.known(protocol)):
        return None
    has = registry.get(protocol or "totem").partitions
    return PRIMARY_MAJORITY if PRIMARY_MAJORITY in has else None


def _check_objects(config: GroupConfig, objects: Any) -> None:
    info = registry.get(config.protocol)
    if not info.views or not info.exact or Service.AGREED not in info.provides:
        raise UsageError(
            f"join: objects: {config.protocol} has no total order with views: expected totem, for instance"
        )
    if not isinstance(objects, Mapping) or not all(isinstance(each, Replica) for each in objects.values()):
        raise UsageError(
            f"join: objects: {shown(objects)}: expected a mapping of names to instances of Replica's classes"
        )


def _addresses(members: int | Mapping[int, str] | Iterable[int], port: int) -> dict[int, str]:
    if isinstance(members, Mapping):
        return dict(members)
    ids = range(1, members + 1) if isinstance(members, int) else members
    return {id: f"127.0.0.1:{port + id}" for id in ids}

"""`ordercast init`: the first group: group.toml, its key, and the line that starts each member."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ordercast.cli.common import Whole, emit, json_option, protocol_option
from ordercast.errors import UsageError
from ordercast.limits import MEMBERS_MAX
from ordercast.words import short

FILE, KEY = "group.toml", "group.key"
TEXT = """\
# One file for all members; copy it, and {key}, to each machine.  docs/operating/config.md tells every key.
group = {group}
protocol = "{protocol}"
key = "{key}"
{net}
{members}"""


def _members(given: tuple[str, ...], count: int | None) -> dict[int, str]:
    """id -> address: what was given, or so many on this machine."""
    from ordercast import addresses, config

    if given and count is not None:
        raise UsageError("--members and ID=ADDRESS: expected at most one of them")
    if not given:
        return {k: f"127.0.0.1:{config.PORT + k}" for k in range(1, (3 if count is None else count) + 1)}
    found: dict[int, str] = {}
    for text in given:
        id, equals, address = text.partition("=")
        if not (equals and id.isascii() and id.isdigit() and 1 <= int(id) < 2**32):
            raise UsageError(f"{short(text)}: expected ID=ADDRESS such as 1=10.0.0.1:7400")
        if int(id) in found:
            raise UsageError(f"{short(text)}: another member has this id: expected each once")
        try:
            host, port = addresses.host_and_port(address)
        except ValueError as why:
            raise UsageError(f"{short(text)}: {why}") from None
        found[int(id)] = addresses.written(host, port) if port else host
    return dict(sorted(found.items()))


def _text(group: str, protocol: str, members: dict[int, str]) -> str:
    import json

    from ordercast import addresses, interfaces

    here = all(interfaces.is_loopback(addresses.host_and_port(address)[0]) for address in members.values())
    net = "" if here else '\n[net]\nmode = "unicast"  # "multicast" with interface = "eth0" is faster in one network\n'
    entries = [f'[[member]]\nid = {id}\naddress = "{address}"\n' for id, address in members.items()]
    return TEXT.format(group=json.dumps(group), protocol=protocol, key=KEY, net=net, members="\n".join(entries))


@click.command("init")
@click.argument("given", metavar="[ID=ADDRESS]...", nargs=-1)
@click.option("--members", "count", type=Whole(1, MEMBERS_MAX), default=None,
              help=f"So many on this machine, at most {MEMBERS_MAX}.")  # fmt: skip
@click.option("--group", default="demo", show_default=True, help="The group's name.")
@protocol_option
@click.option("--dir", "folder", type=click.Path(path_type=Path), default=Path(), help="Where; by default here.")
@json_option
def command(given: tuple[str, ...], count: int | None, group: str, protocol: str, folder: Path, as_json: bool) -> int:
    """Write group.toml and a key for a first group, and print the line that starts each member.

    Without ID=ADDRESS the members (three, or --members) are all on this machine.  Nothing is overwritten.
    """
    from ordercast import config, keyfiles
    from ordercast.toml_input import Source

    file, key = folder / FILE, folder / KEY
    text = _text(group, protocol, _members(given, count))
    for path in (file, key):
        if path.exists():
            raise UsageError(f"{path}: is there already: expected a folder without it (--dir)")
    if not folder.is_dir():
        raise UsageError(f"--dir {folder}: expected a directory that is there")
    checked = config.make(Source.of_text(text, str(file)).data | {"insecure": False}, None, folder, here=False)
    made = keyfiles.write(key)
    try:
        file.write_text(text)
    except OSError as why:
        for path in (file, key):
            path.unlink(missing_ok=True)
        raise UsageError(f"{file}: cannot be written ({(why.strerror or '').lower()})") from None
    lines = {member.id: f"ordercast member --config {file} --id {member.id}" for member in checked.members}
    emit({"file": str(file), "key": made.name, "start": {str(k): line for k, line in lines.items()}}, as_json,
         lambda: _told(file, key, lines))  # fmt: skip
    return 0


def _told(file: Path, key: Path, lines: dict[int, Any]) -> str:
    head = f"wrote {file} and {key}: put both on each machine, then start each member there:"
    return "\n".join([head, *(f"    {line}" for line in lines.values())])

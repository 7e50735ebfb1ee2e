"""`ordercast keygen`: a new key for a group."""

from __future__ import annotations

from pathlib import Path

import click

from ordercast.cli.common import emit, json_option


@click.command("keygen")
@click.argument("file", type=click.Path(path_type=Path))
@json_option
def command(file: Path, as_json: bool) -> int:
    """Make a new key for a group: FILE gets 32 random bytes, and only its owner may read it.

    Copy it to each member's machine, beside group.toml, which names it: key = "group.key".  A file that is there
    already is never overwritten.
    """
    from ordercast import keyfiles

    key = keyfiles.write(file)
    emit({"file": str(file), "key": key.name}, as_json, lambda: f"key {key.name} in {file}")
    return 0

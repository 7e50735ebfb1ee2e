"""`ordercast protocols`: what can be chosen, and what it promises."""

from __future__ import annotations

from typing import Any

import click
from msgspec import Struct, structs

from ordercast import registry
from ordercast.cli.common import emit, json_option
from ordercast.toml_input import expected


def describe(name: str) -> dict[str, Any]:
    info = registry.get(name)
    return {
        "name": info.name,
        "summary": info.summary,
        "paper": info.paper,
        "services": [service.word for service in info.provides],
        "default_service": info.default_service.word,
        "views": info.views,
        "changes_views": info.changes_views,
        "exact": info.exact,
        "survives": sorted(info.survives),
        "promises": {service: list(ids) for service, ids in info.promises.items()},
        "partitions": list(info.partitions),
        "options": _options(info.options),
    }


def _options(options: type[Struct]) -> list[dict[str, Any]]:
    """Each with its default and what may be given for it."""
    default = options()
    out = []
    for field in structs.fields(options):
        note = registry.draw_of(field.type)
        legal = note.legal if note is not None and note.legal else expected(field.type)
        out.append({"name": field.name, "default": getattr(default, field.name), "legal": legal})
    return out


def _lines(protocols: list[dict[str, Any]]) -> str:
    lines = []
    for each in protocols:
        views = "views change" if each["changes_views"] else "fixed view" if each["views"] else "no views"
        lines.append(f"{each['name']}  ({', '.join(each['services'])}; {views})")
        lines.append(f"    {each['summary']}")
        lines.append(f"    paper: {each['paper']}")
        for service, ids in each["promises"].items():
            lines.append(f"    {service} promises: {' '.join(ids)}")
        lines.append(f"    partition policies: {', '.join(each['partitions'])}")
        for option in each["options"]:
            default = str(option["default"]).lower() if isinstance(option["default"], bool) else option["default"]
            lines.append(f"    option {option['name']}={default}: {option['legal']}")
    return "\n".join(lines)


@click.command("protocols")
@json_option
def command(as_json: bool) -> None:
    """List the protocols and what they promise."""
    protocols = [describe(name) for name in registry.names()]
    emit({"protocols": protocols}, as_json, lambda: _lines(protocols))

"""`ordercast protocols`: what can be chosen, and what it promises."""

from __future__ import annotations

from typing import Any

import click

from ordercast import registry
from ordercast.cli.common import emit, json_option


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
        "options": list(info.options.__struct_fields__),
    }


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
        if each["options"]:
            lines.append(f"    options: {', '.join(each['options'])}")
    return "\n".join(lines)


@click.command("protocols")
@json_option
def command(as_json: bool) -> None:
    """List the protocols and what they promise."""
    protocols = [describe(name) for name in registry.names()]
    emit({"protocols": protocols}, as_json, lambda: _lines(protocols))

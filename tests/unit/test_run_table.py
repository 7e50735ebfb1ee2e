"""The last lines of `ordercast run`: every promise is counted in one of its sums."""

from __future__ import annotations

from typing import Any

from ordercast.cli.run import _table

OBJ: dict[str, Any] = {
    "protocol": "dpg", "members": 4, "service": "quasi", "messages": 10, "asked": 10, "delivered": 10, "seconds": 2.0,
    "faults": [], "views": [], "verify": "plain", "violations": 0, "report": None, "directory": "out/run",
}  # fmt: skip


def verdicts(**words: str) -> list[dict[str, Any]]:
    return [
        {
            "promise": promise,
            "verdict": word.replace("_", " "),
            "judged": 1,
            "text": "name: why",
            "told_by": "",
            "example": [],
        }
        for promise, word in words.items()
    ]


def test_what_could_not_be_judged_is_counted_beside_what_had_nothing_to_judge() -> None:
    text = _table(OBJ | {"verdicts": verdicts(S1="holds", S2="holds", Q1="cannot_judge", L7="nothing_to_judge")})
    assert "2 of 4 promises hold, 0 broken, 1 cannot be judged, 1 had nothing to judge" in text
    assert "5/s" in text
    text = _table(OBJ | {"verdicts": verdicts(S1="holds")})
    assert "  1 of 1 promises hold, 0 broken\n" in text

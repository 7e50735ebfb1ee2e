"""Traces that others wrote, or of which a part is gone: refused with path and row, or not judged; by both alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bad_traces import live_directory
from msgspec.structs import replace

from ordercast.pipeline.ingest import read
from ordercast.pipeline.verify import UNREADABLE, judge_columns, judge_plain
from ordercast.sim.faults import Crash, Cut
from ordercast.sim.scenario import Load, Scenario
from ordercast.sim.world import run
from ordercast.trace.find import find
from ordercast.trace.parquet import write
from ordercast.trace.schema import Kind, Row
from ordercast.trace.trace import Trace
from ordercast.verify.columns import check as check_columns

FORMS = (judge_plain, judge_columns)


@pytest.fixture(scope="module")
def restarted() -> Trace:
    """Three members; one is killed, comes back and is delivered messages in its second life."""
    faults = (Crash(member=3, at_ms=100.0, down_ms=200.0),)
    scenario = Scenario(
        protocol="totem", members=3, messages=300, load=Load(rate=200.0), faults=faults, limit_ms=4000.0
    )
    trace = run(scenario, level="full").trace
    assert len({(row.member, row.incarnation) for row in trace.rows if row.member == 3}) == 2
    return Trace(replace(trace.header, live=True), trace.rows)


def judged(path: Path) -> list[list[dict[str, Any]]]:
    return [[row for unit in find([path]) for row in form(unit, None)] for form in FORMS]


# ----------------------------------------------------------------------------------------------------- refused alike


def first(kind: Kind, member: int | None = None) -> Callable[[Row], bool]:
    return lambda row: row.kind == kind and (row.member == member if member is not None else row.member > 0)


# name -> (which row, what it is made, words of the refusal)
ODD: dict[str, tuple[Callable[[Row], bool], dict[str, Any], str]] = {
    "the launcher submits": (first(Kind.START, 0), {"kind": int(Kind.SUBMIT), "counter": 1, "count": 1}, "'s event"),
    "the launcher delivers": (first(Kind.STABLE, 0), {"kind": int(Kind.DELIVER)}, "member's event"),
    "time goes back": (first(Kind.DELIVER, 2), {"time_ns": -5}, "time goes backwards"),
    "no view number": (first(Kind.VIEW), {"view_seq": None, "view_rep": None}, "view has no view_seq"),
    "half a view number": (first(Kind.DELIVER), {"view_rep": None}, "only half there"),
    "no members": (first(Kind.VIEW), {"members": None}, "view has no members"),
    "a third kind of view": (first(Kind.VIEW), {"view_kind": 3}, "of kind 3"),
    "no kind of view": (first(Kind.VIEW), {"view_kind": None}, "no view_kind"),
    "nobody sent it": (first(Kind.DELIVER), {"sender": None}, "deliver has no sender"),
    "in no life": (first(Kind.ORIGINATE), {"sender_incarnation": None}, "originate has no sender_incarnation"),
    "no counter": (first(Kind.DELIVER), {"counter": None}, "deliver has no counter"),
    "no count": (first(Kind.SUBMIT), {"count": None}, "submit has no count"),
    "a message of none": (first(Kind.DELIVER), {"count": 0}, "deliver has no count"),
    "a counter beyond all": (first(Kind.RECEIVE), {"counter": 2**62 + 1}, "counter is"),
    "empty groups": (first(Kind.DELIVER), {"groups": ()}, "groups is empty"),
    "components of words": (first(Kind.VIEW), {"detail": {"components": "none"}}, "its detail"),
    "components of numbers": (first(Kind.VIEW), {"detail": {"components": [1, 2]}}, "its detail"),
    "primary is a word": (first(Kind.VIEW), {"detail": {"primary": "no"}}, "its detail"),
    "a delay in words": (first(Kind.STABLE, 0), {"detail": {"delay_ns": "soon"}}, "its detail"),
    "a loss in words": (first(Kind.NOTE), {"detail": {"name": "t_loss", "ns": "much"}}, "whole number for ns"),
    "a probation of nobody": (first(Kind.NOTE), {"detail": {"name": "probation", "member": None}}, "whole number"),
    "a note without a name": (first(Kind.NOTE), {"detail": {"name": [1]}}, "its detail"),
    "queues in a list": (first(Kind.END), {"detail": {"queues": [3]}}, "its detail"),
    "traffic in words": (first(Kind.END), {"detail": {"traffic": {"received": "much"}}}, "its detail"),
    "fields of a fault": (first(Kind.STABLE, 0), {"kind": int(Kind.FAULT), "detail": {"fields": 7}}, "its detail"),
    "altered is a list": (first(Kind.DELIVER), {"detail": {"altered": [1]}}, "its detail"),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("kind", ["rows", "parquet"])
def test_an_odd_row_is_refused_with_path_and_row_by_both_forms_alike(
    restarted: Trace, name: str, kind: str, tmp_path: Path
) -> None:
    which, change, words = ODD[name]
    rows = list(restarted.rows)
    k = [k for k, row in enumerate(rows) if which(row)][3 if name == "time goes back" else 0]
    rows[k] = replace(rows[k], **change)
    odd = Trace(restarted.header, [])
    odd.rows = rows
    if kind == "rows":
        live_directory(tmp_path, odd)
    else:
        write(tmp_path / "x.parquet", [odd])
    plain, columns = ([row for row in of if row["state"] == UNREADABLE] for of in judged(tmp_path))
    assert plain == columns and len(plain) == 1, "one file, and the same of both"
    assert words in plain[0]["text"] and f"row {rows[k].index} of member {rows[k].member}" in plain[0]["text"]
    assert plain[0]["path"].endswith(
        f"member-{rows[k].member}-{rows[k].incarnation}.rows" if kind == "rows" else "x.parquet"
    )


@pytest.mark.parametrize("kind", ["rows", "parquet"])
def test_a_dummy_is_a_row_like_any_other(restarted: Trace, kind: str, tmp_path: Path) -> None:
    rows = list(restarted.rows)
    k = next(k for k, row in enumerate(rows) if first(Kind.DELIVER)(row))
    rows[k] = replace(rows[k], counter=0, count=0, digest=None, service=None, certainty="dummy")
    hollow = Trace(replace(restarted.header, promises=("S1", "S2", "S3")), rows)
    if kind == "rows":
        live_directory(tmp_path, hollow)
    else:
        write(tmp_path / "x.parquet", [hollow])
    plain, columns = judged(tmp_path)
    assert plain == columns and not [row for row in plain if row["state"] == UNREADABLE]


@pytest.mark.parametrize("change", [{"promises": ("S1", "S99")}, {"options": {"gateways": "2"}}])
def test_an_odd_header_is_refused(restarted: Trace, change: dict[str, Any], tmp_path: Path) -> None:
    odd = Trace(replace(restarted.header, **change), restarted.rows)
    write(tmp_path / "p" / "x.parquet", [odd])
    live_directory(tmp_path / "r", odd)
    for path in (tmp_path / "p", tmp_path / "r"):
        plain, columns = judged(path)
        assert plain == columns and [row["state"] for row in plain] == [UNREADABLE], path


def test_our_own_traces_are_not(restarted: Trace, tmp_path: Path) -> None:
    cut = Scenario(
        protocol="totem", members=4, messages=200, load=Load(rate=100.0), limit_ms=3000.0,
        faults=(Cut(pairs=("1-2", "1-3"), at_ms=200.0, until_ms=700.0),),
    )  # fmt: skip
    for k, trace in enumerate((restarted, run(cut, level="full").trace)):
        write(tmp_path / f"{k}" / "x.parquet", [trace])
        live_directory(tmp_path / f"{k}" / "live", trace)
        for of in judged(tmp_path / f"{k}"):
            assert not {row["state"] for row in of} & {UNREADABLE, "broken"}


# ------------------------------------------------------------------------------------------------- a part is gone


def lives(trace: Trace) -> list[tuple[int, int]]:
    return sorted({(row.member, row.incarnation) for row in trace.rows if row.member})


@pytest.mark.parametrize("how", ["gone", "damaged", "empty", "odd"])
def test_without_a_members_file_nothing_holds_and_nothing_is_broken(restarted: Trace, how: str, tmp_path: Path) -> None:
    for member, incarnation in lives(restarted):
        at = tmp_path / f"{how}-{member}-{incarnation}"
        live_directory(at, restarted)
        file = at / f"member-{member}-{incarnation}.rows"
        if how == "gone":
            file.unlink()
        elif how == "odd":
            data = bytearray(file.read_bytes())
            data[-len(data) // 2 :] = b"\xff" * (len(data) // 2)
            file.write_bytes(data)
        else:
            file.write_bytes(b"" if how == "empty" else b"nonsense" * 99)
        plain, columns = judged(at)
        for rows in (plain, columns):
            assert len([row for row in rows if row["state"] == UNREADABLE]) == (how != "gone")
            states = {row["promise"]: row["state"] for row in rows if row.get("promise")}
            assert set(states.values()) == {"cannot judge"}, (member, incarnation, states)
        (unit,) = find([at])
        for header, run_ in read(unit, []):
            assert {v.state for v in check_columns(run_, header)} == {"cannot judge"}


def test_a_break_is_seen_without_a_members_file(restarted: Trace, tmp_path: Path) -> None:
    rows = list(restarted.rows)
    k = [k for k, row in enumerate(rows) if row.member == 1 and row.kind == Kind.DELIVER][7]
    rows[k] = replace(rows[k], digest=5)
    live_directory(tmp_path, Trace(restarted.header, rows))
    next(tmp_path.glob("member-2-*.rows")).unlink()
    sender_is_there = rows[k].sender != 2
    for of in judged(tmp_path):
        states = {row["promise"]: row["state"] for row in of}
        assert states["S1"] == ("broken" if sender_is_there else "cannot judge")

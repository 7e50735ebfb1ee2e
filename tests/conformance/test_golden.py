"""The worked examples, replayed into the shipped code; unknown kinds and bad files are said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ordercast.cli import main
from ordercast.conformance import golden
from ordercast.errors import UsageError

GOLDEN = Path(__file__).parent.parent / "golden"
CASES = [case for path in sorted(GOLDEN.glob("*.json")) for case in golden.load(path) if case["kind"] in golden.kinds()]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_case(case: golden.Case) -> None:
    assert golden.replay_case(case) == []


def test_every_kind_has_vectors() -> None:
    assert {case["kind"] for case in CASES} == set(golden.kinds())


@pytest.mark.parametrize("family", ["dpg", "hybrid", "membership", "tomp", "totem", "toto"])
def test_nothing_of_a_shipped_family_is_left_out(family: str) -> None:
    cases = golden.load(GOLDEN / f"{family}.json")
    assert cases and {case["kind"] for case in cases} <= set(golden.kinds())


def golden_file(path: Path, *kinds: str) -> Path:
    known = next(case for case in CASES if case["kind"] == "packing")
    cases = [known if kind == "packing" else {"name": f"case {k}", "kind": kind} for k, kind in enumerate(kinds)]
    path.write_text(json.dumps({"format": golden.FORMAT, "cases": cases}))
    return path


def test_an_unknown_kind_is_told_and_never_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    some = golden_file(tmp_path / "some.json", "packing", "never", "never", "nowhere")
    result = golden.replay(some)
    assert result.passed == 1 and not result.failures and result.unknown == {"never": 2, "nowhere": 1}
    line = "some: 1 passed, 0 failed, 3 not replayed: no such kinds here: never, nowhere"
    assert main(["replay", str(some)]) == 1
    assert capsys.readouterr().out.splitlines() == [line, "not all was replayed of some; --partial allows it"]
    assert main(["replay", str(some), "--partial"]) == 0
    assert capsys.readouterr().out.splitlines() == [line]
    for words, code in (([], 1), (["--partial"], 0)):
        assert main(["replay", str(some), "--json", *words]) == code
        (told,) = json.loads(capsys.readouterr().out)["files"]
        assert (told["passed"], told["failed"], told["not_replayed"]) == (1, 0, 3)


def test_what_differs_fails_with_partial_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    some = golden_file(tmp_path / "some.json", "packing", "never")
    monkeypatch.setitem(golden.kinds(), "packing", lambda case: ["differs"])
    assert main(["replay", str(some), "--partial"]) == 1


@pytest.mark.parametrize(
    ("kinds", "said"),
    [(("never",), "x: 0 passed, 0 failed, 1 not replayed: no such kind here: never"), ((), "x: 0 passed, 0 failed")],
)
def test_a_file_of_which_nothing_was_replayed_has_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kinds: tuple[str, ...], said: str
) -> None:
    some, none = golden_file(tmp_path / "some.json", "packing"), golden_file(tmp_path / "x.json", *kinds)
    for words in ([], ["--partial"]):
        assert main(["replay", str(some), str(none), *words]) == 1
        assert capsys.readouterr().out.splitlines()[1:] == [said, "nothing at all could be replayed of x"]
    assert main(["replay", str(some), str(none), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["nothing_replayed"] == ["x"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "x.json: line 1: "),
        ("[]", "x.json: no golden vectors in it; expected"),
        ("{}", "x.json: no golden vectors in it; expected"),
        ('{"format": "other", "cases": []}', "x.json: no golden vectors in it; expected"),
        ('{"format": "ordercast-golden/1"}', "x.json: no golden vectors in it; expected"),
        ('{"format": "ordercast-golden/1", "cases": [{"name": "a"}]}', 'x.json: case 0 lacks "name" or "kind"'),
    ],
)
def test_a_file_that_is_none(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "x.json"
    file.write_text(text)
    with pytest.raises(UsageError, match=said):
        golden.load(file)

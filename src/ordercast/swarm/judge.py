"""One scenario, run and judged: what a seed, a shrinking step, a mutant and a regression all come down to.

The array checkers judge every run; the plain ones too where asked for, and always when something was found, and the two
must agree.  A core that raises is a failure of its own kind, named RAISES: its assertions state what only our own code
can break.  So is a driver that loses what the network brought.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from ordercast import registry
from ordercast.contract import Setup
from ordercast.errors import UsageError
from ordercast.sim.outcome import Outcome
from ordercast.sim.scenario import Scenario
from ordercast.sim.world import run
from ordercast.stack import Stack
from ordercast.state.machine import COMPLETE
from ordercast.swarm.runner import describe
from ordercast.swarm.shapes import one_order
from ordercast.trace.schema import Level
from ordercast.verify import check as check_plain
from ordercast.verify.catalogue import CATALOGUE, chosen
from ordercast.verify.columns import check_trace as check_columns
from ordercast.verify.verdict import BROKEN, CANNOT_JUDGE, Verdict

RAISES = "raises"  # in the place of a promise: the core, or the simulator, raised
DISAGREE = "disagree"  # the two forms of a checker do not say the same
NOTED = frozenset(("L1", "L2", "L8"))  # their bounds follow from notes of the membership (T_loss, probations)
OF_STATES = frozenset(("A1", "A2", "A3", "A4", "A5", "A6"))  # few notes tell of them: judged by both forms always
Maker = Callable[[Setup], Stack]


class Break(Struct, frozen=True):
    """A promise that did not hold, in words, with the rows that show it."""

    promise: str
    text: str
    example: list[dict[str, Any]] = []


class Judgement(Struct):
    """What became of a run."""

    breaks: list[Break]
    held: list[str]  # promises that were judged and hold
    unjudged: dict[str, str]  # promises that could not be judged, and why
    plain: bool  # judged by both forms
    outcome: Outcome | None = None

    @property
    def ok(self) -> bool:
        return not self.breaks

    @property
    def first(self) -> str:
        """The first broken promise: safety before liveness, in the catalogue's order."""
        return self.breaks[0].promise if self.breaks else ""


def level_for(scenario: Scenario) -> str:
    """The least that must be recorded so that everything promised can be judged."""
    info = registry.get(scenario.protocol)
    service = scenario.service or info.default_service.word
    levels = [
        Level.FULL if p.id in NOTED else p.level
        for p in chosen(info.promised(service, scenario.partition, bool(scenario.calls)))
        if not p.elsewhere
    ]
    return max(levels, default=Level.DELIVER).name.lower()


def judge(
    scenario: Scenario,
    *,
    maker: Maker | None = None,
    plain: bool = False,
    promises: Sequence[str] | None = None,
    level: str | None = None,
) -> Judgement:
    """Run it and hold it against its promises (or only those named)."""
    try:
        outcome = run(scenario, level=level or level_for(scenario), maker=maker)
        _assert_trains_came(scenario, outcome)
        _assert_marks_agree(scenario, outcome)
        _assert_states_agree(outcome)
    except UsageError:
        raise
    except Exception as error:
        return Judgement([Break(RAISES, describe(error))], [], {}, plain)
    return judge_outcome(outcome, plain=plain, promises=promises)


def _assert_trains_came(scenario: Scenario, outcome: Outcome) -> None:
    """No fault of the simulator damages a car on its way to a station (what is corrupted does not get so far)."""
    assert not outcome.drops["train"], f"{outcome.drops['train']} cars that nobody had damaged were refused"
    if not scenario.faults and not outcome.drops:
        assert not outcome.trains_lost, f"{outcome.trains_lost} trains were lost where no datagram was"


def _assert_marks_agree(scenario: Scenario, outcome: Outcome) -> None:
    """Where a tagger orders everything, or a LAN whose order no fault breaks, a contradiction is a fault of ours."""
    tagged = bool((outcome.trace.header.scenario or {}).get("tagger"))
    conflicts = outcome.notes["conflict"] if tagged or one_order(scenario) else 0
    assert not conflicts, f"{conflicts} marks contradicted each other"


def _assert_states_agree(outcome: Outcome) -> None:
    """Digests say which calls a state should hold; here is what it holds."""
    ledgers: dict[tuple[int, str], str] = {}
    for member, status in outcome.status.items():
        state = status.get("state", {})
        if state.get("standing") == COMPLETE:
            same = ledgers.setdefault((state["n"], state["h"]), state["ledger"]) == state["ledger"]
            assert same, f"member {member} has the history of another after {state['n']} calls, and not its state"


def judge_outcome(outcome: Outcome, *, plain: bool = False, promises: Sequence[str] | None = None) -> Judgement:
    trace = outcome.trace
    wanted = [id for id in trace.header.promises if promises is None or id in promises]
    wanted = [id for id in wanted if not CATALOGUE[id].elsewhere]
    verdicts = check_columns(trace, wanted)
    broken = [v for v in verdicts if v.state == BROKEN]
    plain = plain or bool(broken)
    both = [id for id in wanted if plain or id in OF_STATES]
    plainly = check_plain(trace, both) if both else []
    breaks = [Break(DISAGREE, text) for text in _differences([v for v in verdicts if v.promise in both], plainly)]
    broken = [v for v in plainly if v.state == BROKEN] or broken
    breaks = [Break(v.promise, v.text, v.example) for v in broken] + breaks
    held = [v.promise for v in verdicts if v.ok]
    unjudged = {v.promise: v.text for v in verdicts if v.state == CANNOT_JUDGE}
    return Judgement(breaks, held, unjudged, plain, outcome)


def _differences(columns: list[Verdict], plain: list[Verdict]) -> list[str]:
    """Promises of which the two forms do not say the same."""
    states = {v.promise: v.state for v in plain}
    found = [
        f"{v.promise}: the array form says {v.state}, the plain form {states.get(v.promise, 'nothing')}"
        for v in columns
        if states.get(v.promise) != v.state
    ]
    return found + [f"{id}: only the plain form knows it" for id in states if id not in {v.promise for v in columns}]

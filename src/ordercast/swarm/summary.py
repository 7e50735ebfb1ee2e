"""What a campaign came to: counts over its rows, in words, as JSON and as a page for the tree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

from ordercast.swarm.probes import expected
from ordercast.swarm.task import SeedRow
from ordercast.verify.quasi import bounds
from ordercast.version import __version__

HOUR_NS = 3600 * 10**9


class Summary:
    """Counts that rows are added to, one by one."""

    def __init__(self) -> None:
        self.runs = self.events = self.messages = self.deliveries = self.sim_ns = self.plain = 0
        self.protocols: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.families: Counter[str] = Counter()
        self.held: Counter[str] = Counter()
        self.unjudged: Counter[str] = Counter()
        self.probes: dict[str, Counter[str]] = {}
        self.left_out: dict[str, tuple[str, ...]] = {}
        self.broken: list[SeedRow] = []
        self.digests: dict[int, str] = {}
        self.violating = self.quasi = 0  # messages that violate quasi order, of how many

    def add(self, row: SeedRow) -> None:
        self.runs += 1
        self.events += row.events
        self.messages += row.messages
        self.deliveries += row.deliveries
        self.sim_ns += row.sim_ns
        self.plain += row.plain
        self.protocols[row.protocol] += 1
        self.faults.update(row.faults)
        self.families.update(row.on)
        self.held.update(row.held)
        self.unjudged.update(row.unjudged.keys())
        self.probes.setdefault(row.protocol, Counter()).update(row.probes)
        self.left_out[row.protocol] = row.left_out
        self.digests[row.seed] = row.digest
        self.violating += row.quasi[0]
        self.quasi += row.quasi[1]
        if not row.ok:
            self.broken.append(row)

    @classmethod
    def of(cls, rows: Iterable[SeedRow]) -> Summary:
        summary = cls()
        for row in rows:
            summary.add(row)
        return summary

    @property
    def sim_hours(self) -> float:
        return self.sim_ns / HOUR_NS

    def digest(self) -> str:
        """One fingerprint of all runs, the same in whatever order they finished."""
        out = blake2b(digest_size=16)
        for seed, digest in sorted(self.digests.items()):
            out.update(f"{seed}:{digest};".encode())
        return out.hexdigest()

    def _count(self, protocol: str, probe: str) -> int:
        return self.probes[protocol][probe] if protocol in self.probes else 0

    def reached(self, protocol: str) -> list[str]:
        return [probe for probe in expected(protocol) if self._count(protocol, probe)]

    def never(self, protocol: str) -> list[str]:
        return [probe for probe in expected(protocol) if not self._count(protocol, probe)]

    def as_dict(self) -> dict[str, Any]:
        return {
            "runs": self.runs,
            "ok": self.runs - len(self.broken),
            "broken": [
                {"seed": row.seed, "protocol": row.protocol, **{k: row.broken[0][k] for k in ("promise", "text")}}
                for row in self.broken
            ],
            "protocols": dict(sorted(self.protocols.items())),
            "events": self.events,
            "messages": self.messages,
            "deliveries": self.deliveries,
            "sim_hours": round(self.sim_hours, 4),
            "faults": dict(sorted(self.faults.items())),
            "fault_families": dict(sorted(self.families.items())),
            "left_out": {name: list(words) for name, words in sorted(self.left_out.items())},
            "probes": {
                name: {
                    "reached": {probe: self.probes[name][probe] for probe in self.reached(name)},
                    "never": self.never(name),
                }
                for name in sorted(self.protocols)
            },
            "promises": {id: self.held[id] for id in sorted(self.held, key=_by_number)},
            "cannot_judge": {id: self.unjudged[id] for id in sorted(self.unjudged, key=_by_number)},
            "judged_by_both_forms": self.plain,
            "quasi_order": {
                "violating": self.violating,
                "messages": self.quasi,
                "bounds": bounds(self.violating, self.quasi),
            },
            "digest": self.digest(),
        }

    def words(self) -> str:
        """For a person."""
        ok = self.runs - len(self.broken)
        lines = [
            f"{self.runs} runs ({_counts(self.protocols)}): {ok} ok, {len(self.broken)} broken",
            f"events {self.events}, messages {self.messages}, deliveries {self.deliveries}, "
            f"simulated {self.sim_hours:.2f} h; {self.plain} runs judged by both forms",
            f"faults: {_counts(self.faults) or 'none'}",
            f"promises held: {_counts(self.held, key=_by_number) or 'none'}",
        ]
        if self.unjudged:
            lines.append(f"not judged: {_counts(self.unjudged, key=_by_number)}")
        if self.quasi:
            low, high = bounds(self.violating, self.quasi)
            lines.append(f"quasi order: {self.violating} of {self.quasi} messages violate it, {low:.2g} to {high:.2g}")
        for name in sorted(self.protocols):
            probes = self.probes.get(name, Counter())
            reached = ", ".join(f"{probe} {probes[probe]}" for probe in self.reached(name))
            lines.append(f"probes reached by {name}: {reached or 'none'}")
            if self.never(name):
                lines.append(f"probes never reached by {name}: {', '.join(self.never(name))}")
            lines.append(f"left out for {name}: {', '.join(self.left_out[name]) or 'nothing'}")
        return "\n".join(lines)

    def page(self, title: str, command: str) -> str:
        """The same as Markdown, to be kept in the tree."""
        lines = [
            f"# {title}", "", f"ordercast {__version__}, `{command}`", "",
            "| what | figure |", "|---|---|",
            f"| runs | {self.runs} |", f"| broken | {len(self.broken)} |", f"| events | {self.events} |",
            f"| messages | {self.messages} |", f"| deliveries | {self.deliveries} |",
            f"| simulated hours | {self.sim_hours:.2f} |", f"| judged by both forms | {self.plain} |",
            f"| digest of all runs | `{self.digest()}` |", "",
            "| protocol | runs | probes reached | never reached | left out |", "|---|---|---|---|---|",
        ]  # fmt: skip
        for name, runs in sorted(self.protocols.items()):
            never = ", ".join(self.never(name)) or "-"
            left_out = ", ".join(self.left_out[name]) or "-"
            lines.append(f"| {name} | {runs} | {len(self.reached(name))} | {never} | {left_out} |")
        lines += ["", "| fault class | times |", "|---|---|"]
        lines += [f"| {name} | {count} |" for name, count in sorted(self.faults.items())]
        lines += ["", "| promise | runs in which it was judged and held | not judged |", "|---|---|---|"]
        ids = sorted({*self.held, *self.unjudged}, key=_by_number)
        lines += [f"| {id} | {self.held[id]} | {self.unjudged[id]} |" for id in ids]
        if self.broken:
            lines += ["", "| seed | protocol | broken |", "|---|---|---|"]
            lines += [f"| {row.seed} | {row.protocol} | {row.broken[0]['text']} |" for row in self.broken]
        return "\n".join(lines) + "\n"


def _by_number(id: str) -> tuple[int, int]:
    return id[0] != "S", int(id[1:]) if id[1:].isdigit() else 0


def _counts(counter: Counter[str], key: Any = None) -> str:
    return ", ".join(f"{name} {counter[name]}" for name in sorted(counter, key=key))

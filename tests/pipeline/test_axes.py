"""Every parameter of a sweep is a key of every table and a legend of every plot; loads sort as numbers, all shown."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import pytest

from ordercast.cli import main
from ordercast.pipeline import here, report
from ordercast.pipeline.collected import axes, collected, natural
from ordercast.pipeline.curves import CURVES_MAX
from ordercast.pipeline.experiment import from_dict
from ordercast.pipeline.sweep import Options, sweep_here

RATES = [1000, 90, 300, 40, 10]
EXPERIMENT: dict[str, Any] = {
    "name": "nets",
    "base": {"protocol": "totem", "members": 3, "messages": 12},
    "grid": {"load": {"rate": RATES}},
    "choice": {"network": {
        "lan": {"nets": [{"model": "lan"}]},
        "wan": {"nets": [{"model": "links", "delay": {"law": "uniform", "low_us": 5000, "high_us": 9000}}]},
    }},
}  # fmt: skip


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("swept")
    table = sweep_here(from_dict(EXPERIMENT), out, options=Options(level="full", traces=True), workers=1)
    assert table.num_rows == 10 and all(table["ok"].to_pylist())
    return out


def test_two_networks_are_never_mixed(swept: Path) -> None:
    tables = here.measure_here([swept])
    for name, rows in tables.items():
        assert axes(rows) == ["network", "load.rate"] and {row["network"] for row in rows} == {"lan", "wan"}, name
    assert len(tables["throughput"]) == 10 and all(row["runs"] == 1 for row in tables["throughput"])
    latency = [row for row in tables["latency"] if row["name"] == "originate"]
    medians = {net: max(row["p50"] for row in latency if row["network"] == net) for net in ("lan", "wan")}
    least = min(row["p50"] for row in latency if row["network"] == "wan")
    assert least > 5_000_000 > medians["lan"], "a median of both would lie between"


def test_loads_are_sorted_as_numbers(swept: Path) -> None:
    tables = here.measure_here([swept])
    for network in ("lan", "wan"):
        assert [row["load.rate"] for row in tables["throughput"] if row["network"] == network] == sorted(RATES)
    words = ["saturate, 2 senders, 1000 B", "saturate, 2 senders, 64 B", "saturate, 10 senders, 64 B", None, 3]
    assert sorted(words, key=natural) == [None, 3, words[1], words[0], words[2]]


def test_every_table_and_every_plot_of_a_report_says_them(swept: Path, tmp_path: Path) -> None:
    tables = here.measure_here([swept])
    content = report.content(None, tables)
    for table in content.tables:
        assert {"network", "load.rate"} <= set(table.columns), table.title
    latency = [plot for plot in content.plots if plot.title.startswith("Latency")]
    assert len(latency) == 2 and CURVES_MAX == 8, "ten curves do not fit into one plot"
    text = "".join(plot.svg for plot in latency)
    for network in ("lan", "wan"):
        for rate in RATES:
            assert f"network {network}, load.rate {rate}, " in text
    by_load = [plot.svg for plot in content.plots if "by load" in plot.title]
    assert len(by_load) == 2 and all("network lan" in svg and "network wan" in svg for svg in by_load)
    report.write_tables(tmp_path, tables)
    for file in tmp_path.glob("*.csv"):
        assert {"network", "load.rate"} <= set(next(csv.reader(file.open())))


def test_the_command_says_them(swept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["measure", str(swept), "--plain"]) == 0
    out = capsys.readouterr().out
    heads = re.findall(r"^totem agreed, 3 members, network (\w+), load.rate (\d+), .*: ", out, re.M)
    assert heads == [(net, str(rate)) for net in ("lan", "wan") for rate in sorted(RATES)]
    assert all(len(part.split("latency from submit:")) == 2 for part in out.split("\n\n")[1:]), "each with its own"


def test_a_table_is_shown_to_its_last_load() -> None:
    row = {"protocol": "p", "service": "s", "members": 3, "parameters": "{}", "load": "idle", "rate": None}
    rows = [row | {"name": "submit", "count": 1, **dict.fromkeys(("mean", "p50", "p90", "p99", "p99_9", "max"), k)}
            for k in range(999)]  # fmt: skip
    tables = collected({"latency": [line | {"parameters": f'{{"x": {k}}}'} for k, line in enumerate(rows)]})
    from ordercast.pipeline.render import page

    assert page(report.content(None, tables)).count('<td class="n">998</td>') == 1
    clash = collected({"latency": [rows[0] | {"parameters": '{"name": "a"}'}]})
    assert clash["latency"][0]["parameter name"] == "a" and clash["latency"][0]["name"] == "submit"

# %% [markdown]
# # Judge and measure runs with Spark
#
# Cells are marked with `# %%`, so that editors can run them one by one; the whole file also runs as a program:
# `python examples/pipeline.py`.

# %% A session: the one that is open, or a quiet one on all cores of this machine
from pathlib import Path
from tempfile import mkdtemp

from ordercast.pipeline.session import session

spark = session()
room = Path(mkdtemp(prefix="ordercast-example-"))

# %% [markdown]
# ## Sweep: two protocols, three loads, two seeds
# One simulated run per row, each in a child process inside a Spark task.

# %%
from ordercast.pipeline.experiment import from_dict  # noqa: E402
from ordercast.pipeline.sweep import Options, sweep  # noqa: E402

experiment = from_dict(
    {
        "name": "example",
        "repetitions": 2,
        "base": {"messages": 200, "members": 3},
        "grid": {"protocol": ["token_site", "totem"], "load": {"rate": [100, 300, 1000]}},
    }
)
table = sweep(spark, experiment, room / "sweep", options=Options(limit_s=60, traces=True))
print(table.select(["run", "protocol", "parameters", "ok", "messages", "latency_p50_ns", "broken"]).to_pandas())

# %% [markdown]
# ## Verify: one row per run and promise

# %%
from ordercast.pipeline.verify import summarise, verify_paths  # noqa: E402

verdicts = verify_paths(spark, [room / "sweep"])
verdicts.groupBy("promise", "state").count().orderBy("promise").show(50)
summary = summarise(verdicts)
print(f"{summary.runs} runs, {summary.broken_total} broken promises")

# %% [markdown]
# ## Measure: native aggregations over what the tasks found in each run

# %%
from ordercast.pipeline.measure import collect, measure_paths  # noqa: E402

measures = measure_paths(spark, [room / "sweep"])
measures.latency.where("name = 'submit'").select("protocol", "rate", "count", "mean", "p50", "p99").show()

# %% [markdown]
# ## Report: one HTML file

# %%
from ordercast.pipeline.report import write, write_tables  # noqa: E402
from ordercast.trace.find import find  # noqa: E402

tables = collect(measures)
page = write(room / "report.html", summary, tables, units=find([room / "sweep"]), engine="spark")
write_tables(room / "tables", tables)
print(f"open {page}")

"""The five papers reproduced: every table and figure by one command, what was published beside what comes out here.

How an item is written.  An item is a table, a figure, a listing or a claim of a paper.  It has two halves.

**Data**, in ``papers/data/NAME.toml`` (NAME: toto, totem, tomp, hybrid, dpg)::

    name = "toto"
    title = "Early delivery ..."            # of the paper
    authors = "..."

    [experiment.periodic]                   # runs, as in an experiment file of `sweep`: base, grid, choice, case, seeds
    seeds = [1, 2, 3]                       # or seed and repetitions
    limit_s = 60                            # wall seconds one run may take
    seconds = 0.5                           # about what one run takes; heavy runs are started first
    figures = ["latency", "index"]          # what is kept of a run: names of papers/figures.py, or FIGURES of NAME.py
    cut = [0.1, 0.1]                        # messages submitted in this share at the beginning and end do not count
    trace = "full"                          # "deliver" (default) is quicker, but has no notes
    base = {protocol = "toto", members = 8, messages = 800}
    [experiment.periodic.choice.load]       # axes named `load` here, `load.rate` if it stands in grid
    50 = {load = {rate = 6.25}}
    [experiment.periodic.quick]             # laid over the above with --quick: tables are merged, all else replaced
    seeds = [1]
    choice = {load = ["50"]}                # names of a choice, or of cases: only these are kept

    [experiment.dag]                        # points that are no simulations: COMPUTE["table"] of NAME.py
    compute = "table"
    base = {n = 5}                          # its parameters; base, grid, choice, case and seeds as above

    [[item]]
    kind = "table"                          # table, figure, claim, listing
    key = 2                                 # a number, or a word for a claim
    title = "Latency with periodic senders"
    where = "page 8, table 2"
    text = "What was run, what is to be seen, in a few sentences."
    experiments = ["periodic"]              # whose points the item's function is given
    beyond = false                          # true: no claim of the paper
    leads = ["src/...", "docs/..."]         # of a listing: where the thing is
    [[item.plot]]                           # drawn by the framework; `series` comes from the function
    name = "latency"
    x = "messages / s"
    y = "latency at the sender (ms)"
    log_x = false                           # also log_y; zero = false: the y axis does not begin at 0
    [[item.plot.published]]                 # drawn apart from ours
    label = "ToTo"
    x = [50, 100]
    y = [76.68, 42.31]
    [[item.row]]
    name = "ToTo, 50/s"                     # what the function calls it
    unit = "ms"
    published = 76.68                       # a number, a word, or nothing
    expected = 83.6                         # by a specification or calculation; if left out, what was published is
    relative = 0.04                         # or absolute = 0.06, or low and high; none of them: exactly so
    status = "stated"                       # of what it rests on: stated | fitted | assumed | predicted; a prediction
                                            # without `expected` and tolerance is shown, and not judged
    why = "An exact period of 160 ms allows no less than 80."   # needed where ours is outside of what was published
    see = "ordercast papers toto --table 4" # what a reader can run: a test or an item
    found = 91.0                            # only where ours is outside of what is expected, and `why` says why: what
                                            # we get, to the same tolerance; else the row fails
    quick = 0.2                             # with --quick this relative tolerance holds; without it only rows that are
                                            # exact or true or false are judged then
    shape = true                            # instead of a tolerance: the value stands beside what is expected, and is
                                            # judged by its order among others, in a row of its own

A shape or a sign is a row with ``expected = true`` whose value is True or False.

**Code**, in ``papers/NAME.py``::

    def table2(points: Points) -> Reduced:
        rows, series = {}, {}
        for load in points.values("load"):
            some = points.where(load=load, protocol="toto")       # a dot in an axis is an underscore here
            rows[f"ToTo, {load}/s"] = some.value("latency", "sender", "mean")   # mean over seeds, with its interval
        return Reduced(rows, {"latency": {"ToTo": curve(...)}})

    ITEMS = {"table2": table2, "claim-log": log}         # kind and key; a word after a hyphen
    COMPUTE = {"table": function}      # (parameters: dict, seed: int) -> dict of numbers, words, lists
    FIGURES = {"mine": function}       # (run: figures.Run) -> number, or dict of numbers

The function sees the points in a fixed order, whoever ran them, and must not use the time, chance or a set's order.
Points are known by what they are (paper, experiment, scenario with its seed, figures, version): experiments that items
share are run once, and a run that is done is not repeated.  While you write a figure's code, use --force.

Try it: ``ordercast papers NAME --table 2 --plain --quick --out /tmp/x --force``.
To plant a change in a test: ``reproduce.run(..., plant=lambda paper, scenario: another scenario)``.
"""

from __future__ import annotations

NAMES = ("toto", "totem", "tomp", "hybrid", "dpg")

# make setup     everything into .venv (once; python3 and make are all that must be there)
# make run       four real processes, one total order, verified by Spark
# make test      all tests, in three processes (one file: make test TESTS=tests/unit/test_wire.py; in one process: WORKERS=0)
# make lint      style, types, pages that are out of date
# make bench     figures of this machine
# make bench-setup  what the benchmarks in benchmarks/ need beside, into .venv (DuckDB, Polars, PySyncObj, SimPy)
# make campaign  thousands of random groups with random faults, judged; goes on where it was interrupted
# make mutants   known-bad variants of every protocol, each of which the swarm must find
# make fuzz      a million forged packets per protocol between honest members, ten million damaged inputs at every door; goes on where it was interrupted
# make membership  what faults cost in views, the whole table (long); goes on where it was interrupted
# make every-packet  a fault after every single packet of a view change (about half an hour)
# make every-way  every small causal order on every way through it, for ToTo (some minutes)
# make exhaustive  every execution of small groups of abcast and tomp hosts (about half a minute)
# make soak      ten minutes of crashes and pauses on real processes, verified (SOAK_PROTOCOL=causal; SOAK_RINGS="1,2,3 3,4,5")
# make docs      write the pages that follow from the code
# make papers    the tables and figures of the papers, published beside ours (about half an hour); goes on where it was interrupted
# make papers-docs  the same, and docs/papers from it
# make clean     remove what runs and tests left; make distclean: also .venv

PY = .venv/bin/python
ORDERCAST = .venv/bin/ordercast
RUN = --protocol totem --members 4 --messages 4000 --rate 1000 --size 100 --kill 3@1.2 --restart 3@2 --trace full --out out/run --force
BENCH = --protocol totem --members 4 --size 1000 --senders 4 --seconds 5
CAMPAIGN = --seeds 0:20000 --minutes 120 --out out/campaign --summary docs/campaigns/latest.md --quiet
MUTANTS = --seeds 0:200
SOAK_SECONDS = 600
SOAK_PROTOCOL = totem
TESTS = tests
WORKERS = 3

.PHONY: papers papers-docs fuzz every-way exhaustive every-packet membership help setup bench-setup run test lint bench campaign mutants soak docs pins clean distclean
.DEFAULT_GOAL = help

help:
	@sed -n 's/^# //p' Makefile

setup:
	@sh scripts/setup.sh
	@$(PY) -m compileall -q src

bench-setup:
	@sh scripts/setup.sh bench

run: setup
	$(ORDERCAST) run $(RUN)

test: setup
	$(PY) -m pytest -n $(WORKERS) $(TESTS)

lint: setup
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(PY) scripts/reference.py --check

bench: bench-setup
	$(ORDERCAST) bench $(BENCH)
	$(ORDERCAST) bench $(BENCH) --mode unicast
	$(PY) benchmarks/sim_vs_simpy.py

campaign: setup
	$(ORDERCAST) swarm $(CAMPAIGN)

mutants: setup
	$(PY) -m tests.mutants $(MUTANTS)

fuzz: setup
	$(PY) -m tests.fuzz
	$(PY) -m tests.fuzz --inputs 10000000

membership: setup
	$(PY) benchmarks/membership_figures.py

every-packet: setup
	$(PY) tests/transis/every_packet.py
	$(PY) tests/totem/gateway_crashes.py

every-way: setup
	$(PY) -m tests.toto.every_way

exhaustive: setup
	$(PY) tests/tomp/exhaustive.py

soak: setup
	SOAK_SECONDS=$(SOAK_SECONDS) SOAK_PROTOCOL=$(SOAK_PROTOCOL) SOAK_RINGS="$(SOAK_RINGS)" $(PY) -m pytest -s --timeout 7200 tests/live/test_soak.py

docs: setup
	$(PY) scripts/reference.py

papers: setup
	$(ORDERCAST) papers

papers-docs: papers
	$(PY) scripts/papers.py out/papers

pins: setup
	@sh scripts/pins.sh

clean:
	rm -rf out .pytest_cache .mypy_cache .ruff_cache .hypothesis dist build spark-warehouse metastore_db derby.log
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

distclean: clean
	rm -rf .venv

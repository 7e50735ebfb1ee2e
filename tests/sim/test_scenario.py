"""Scenarios: TOML and back, and one sentence for what cannot be meant."""

import tomllib
import typing

import msgspec
import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st

from ordercast.errors import ConfigError, UsageError
from ordercast.sim import faults
from ordercast.sim.law import Delay
from ordercast.sim.scenario import Clocks, Cost, Edge, Hosts, Load, Net, Scenario, Start
from ordercast.toml_input import Source

FLOATS = st.floats(0, 1e9)
WORDS = st.text(max_size=8)


def values(kind: typing.Any) -> st.SearchStrategy:
    """Any value of an annotated field."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        low, high = kind.__metadata__[0].ge or 0, kind.__metadata__[0].le
        return st.integers(max(low, 1), high) if args[0] is int else st.floats(max(low, 1e-3), high)
    if origin is typing.Literal:
        return st.sampled_from(args)
    if origin is tuple and args[-1] is not ...:
        return st.tuples(*map(values, args))
    if origin is tuple:
        return st.lists(values(args[0]), max_size=3).map(tuple)
    if args:
        return st.one_of([st.none() if arg is type(None) else values(arg) for arg in args])
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return structs(kind)
    return {int: st.integers(0, 2**60), float: FLOATS, str: WORDS, bool: st.booleans()}[kind]


def structs(kind: type[msgspec.Struct]) -> st.SearchStrategy:
    return st.builds(kind, **{field.name: values(field.type) for field in msgspec.structs.fields(kind)})


JSON = st.recursive(st.integers() | st.booleans() | WORDS | FLOATS, lambda x: st.lists(x) | st.dictionaries(WORDS, x))
SCENARIOS = st.builds(
    Scenario,
    protocol=WORDS,
    options=st.dictionaries(WORDS, JSON, max_size=3),
    members=st.integers(1, 64),
    seed=st.integers(0, 2**64 - 1),
    sizes=st.lists(st.integers(0, 10**6), max_size=3).map(tuple),
    load=structs(Load),
    nets=st.lists(structs(Net), max_size=2).map(tuple),
    hosts=structs(Hosts),
    clocks=structs(Clocks),
    start=structs(Start),
    timeout_ms=st.floats(1, 1e6),
    wire=st.booleans(),
    faults=st.lists(st.one_of([structs(kind) for kind in faults.FAULTS]), max_size=3).map(tuple),
    heal_ms=st.none() | st.floats(0, 1e6),
)


def reread(scenario: Scenario) -> Scenario:
    """Through TOML and back, unchecked: any values of the right types."""
    return msgspec.convert(tomllib.loads(scenario.to_toml()), Scenario)


@settings(max_examples=60, deadline=None)
@given(SCENARIOS)
def test_toml_and_back(scenario):
    assert reread(scenario) == scenario


@pytest.mark.parametrize("model", ["dpg-paper", "totem-paper"])
def test_a_model_and_back(model):
    scenario = Scenario(hosts=Hosts(model=model))
    assert Scenario.from_toml(scenario.to_toml()) == scenario and f'model = "{model}"' in scenario.to_toml()


def test_every_fault_class_and_back():
    every = tuple(kind() for kind in faults.FAULTS)
    assert reread(Scenario(faults=every)) == Scenario(faults=every)
    assert len({fault.word for fault in every}) == len(every) == len(typing.get_args(faults.AnyFault))
    assert all(fault.family for fault in every)


def test_a_file_as_people_write_it(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text(
        """
        protocol = "token_site"
        members = 4
        timeout_ms = 20

        [load]
        regime = "bursts"

        [[nets]]
        model = "links"
        delay = { law = "uniform", low_us = 50, high_us = 600 }

        [[faults]]
        fault = "loss"
        pairs = ["1>2", "3-*"]
        p = 0.5
        until_ms = 100
        """
    )
    scenario = Scenario.from_file(path)
    assert scenario.load.regime == "bursts"
    assert scenario.nets[0].delay == Delay("uniform", low_us=50, high_us=600)
    assert scenario.faults[0] == faults.Loss(pairs=("1>2", "3-*"), p=0.5, until_ms=100)
    assert Scenario.from_toml(scenario.to_toml()) == scenario


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("members =", "f.toml: not valid TOML: invalid value (at end of document)"),
        ("members = 'x'", "f.toml: line 1: members: x: expected a whole number from 1 to 64"),
        ("membrs = 3", "f.toml: line 1: membrs: unknown key membrs; did you mean members?"),
        ("xyzzy = 3", "f.toml: line 1: xyzzy: unknown key xyzzy: expected one of protocol, options, service, members,"),
        ("members = 65", "f.toml: line 1: members: 65: expected a whole number from 1 to 64"),
        ("seed = -1", "f.toml: line 1: seed: -1: expected a whole number from 0 to 2^64 - 1"),
        ("timeout_ms = 0", "f.toml: line 1: timeout_ms: 0: expected a number from 1 to 86400000"),
        ("timeout_ms = nan", "f.toml: line 1: timeout_ms: nan: expected a number from 1 to 86400000"),
        ("service = 'saf'", "service: saf: expected one of fifo, causal, agreed, safe, quasi; did you mean safe?"),
        ("datagram_bytes = 100", "f.toml: line 1: datagram_bytes: 100: expected a whole number from 548 to 65507"),
        ("senders = [9]", "f.toml: line 1: senders: member 9: expected members 1 to 3"),
        ("senders = [1,\n'b']", "f.toml: line 1: senders[1]: b: expected a whole number"),
        ("sizes = [-1]", "f.toml: line 1: sizes[0]: -1: expected a whole number from 0 to 33554432"),
        ("sizes = []", "f.toml: line 1: sizes: an empty array: expected at least one size"),
        ("closing = 3", "f.toml: line 1: closing: 3: expected heal_ms beside it"),
        ("load = 3", "f.toml: line 1: load: 3: expected a table"),
        ("[load]\nbatch = 0", "f.toml: line 2: load.batch: 0: expected a whole number from 1 to 1000000"),
        ("[[load.rates]]\nrate = -1", "f.toml: line 2: load.rates[0].rate: -1: expected a number from 0 to 1000000000"),
        ("[[load.rates]]\nmembers = [2]", "f.toml: line 1: load.rates[0].rate: is missing: expected a number"),
        (
            "senders = [1, 3]\n[[load.rates]]\nmembers = [2]\nrate = 5",
            "f.toml: line 3: load.rates[0].members: member 2: expected some of the senders 1, 3",
        ),
        (
            "[load]\nregime = 'saturate'\n[[load.rates]]\nrate = 5",
            "f.toml: line 2: load.regime: saturate: expected one of poisson, periodic, quasi, bursts beside load.rates",
        ),
        ("pack = 1", "f.toml: line 1: pack: 1: expected true or false"),
        (
            "[[nets]]\nmodel = 'links'\nedges = [{ a = 1, b = 2, us = 5, delay = { mean_us = 3 } }]",
            "f.toml: line 3: nets[0].edges[0].us: 5.0: expected nothing beside the edge's delay",
        ),
        (
            "[[nets]]\nmodel = 'links'\nedges = [{ a = 1, b = 2, delay = { law = 'uniform', low_us = 3 } }]",
            "f.toml: line 3: nets[0].edges[0].delay: high_us must not be below low_us",
        ),
        ("[clocks]\ndrift_percent = 11", "f.toml: line 2: clocks.drift_percent: 11: expected a number from 0 to 10"),
        ("nets = []", "f.toml: line 1: nets: an empty array: expected at least one"),
        ("[[nets]]\nmodel = 'x'", "f.toml: line 2: nets[0].model: x: expected one of lan, links, graph"),
        ("[[nets]]\nmembers = [1]", "f.toml: line 1: nets: member 2 sits on none"),
        (
            "[hosts]\nmodel = 'totem-papr'",
            "f.toml: line 2: hosts.model: totem-papr: expected dpg-paper or totem-paper; did you mean totem-paper?",
        ),
        ("[[nets]]\nmodel = 'graph'", "f.toml: line 1: nets[0].edges: an empty array: expected at least one"),
        ("[[nets]]\nmbit = inf", "f.toml: line 2: nets[0].mbit: inf: expected a number from 0 to 1000000000"),
        (
            "[[nets]]\n[[nets]]\n[[nets.edges]]\na = 1\nb = 2\n[[nets.edges]]\na = 1",
            "f.toml: line 6: nets[1].edges[1].b: is missing: expected a whole number",
        ),
        (
            "[[nets]] # one\n[[faults]]\nfault = 'partition'\ngroups = [[1],\n[2],\n[3]]\nuntil_ms = 'x'",
            "f.toml: line 7: faults[0].until_ms: x: expected a number",
        ),
        ("[[nets]]\ndelay = {law = 'unifrm'}", "line 2: nets[0].delay.law: unifrm: expected one of"),
        ("[[faults]]\nfault = 'los'", "f.toml: line 2: faults[0].fault: los: expected one of"),
        ("[[faults]]\nfault = 'los'", "; did you mean loss?"),
        ("[[faults]]\np = 1", "f.toml: line 1: faults[0].fault: is missing: expected one of"),
        ("faults = [{fault = 'loss'},\n3]", "f.toml: line 1: faults[1]: 3: expected a table"),
        ("[[faults]]\nfault = 'loss'\nprob = 1", "f.toml: line 3: faults[0].prob: unknown key prob"),
        ("[[faults]]\nfault = 'loss'\np = 2", "f.toml: line 3: faults[0].p: 2: expected a number from 0 to 1"),
        (
            "[[faults]]\nfault = 'cut'\npairs = ['1+2']",
            """f.toml: line 3: faults[0].pairs: 1+2: expected "1>2", "1-2" or "*" for an end (cut)""",
        ),
        ("[[faults]]\nfault = 'cut'\nnet = 1", "line 3: faults[0].net: 1: expected 0 to 0 (cut)"),
        ("[[faults]]\nfault = 'crash'\nmember = 4", "line 1: faults[0]: member 4: expected members 1 to 3 (crash)"),
        ("packet_bytes = 100", "f.toml: line 1: packet_bytes: 100: expected 1472 to 65507, or 0"),
        (
            "[[faults]]\nfault = 'pause'\nat_ms = 5\nuntil_ms = 1",
            "line 4: faults[0].until_ms: 1.0: expected at least at_ms, which is 5 (pause)",
        ),
    ],
)
def test_one_sentence_with_the_place(text, sentence):
    with pytest.raises(UsageError) as caught:
        Scenario.from_toml(text, "f.toml")
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_all_faults_at_once():
    with pytest.raises(UsageError) as caught:
        Scenario.from_toml("seed = -1\nmessages = -1", "f.toml")
    assert len(caught.value.faults) == 2


MANY = """
members = "x"
seed = -1
lod = 3
senders = [1, "b"]
[load]
rate = "fast"
regime = "burst"
[[nets]]
edges = [{ a = 1 }]
model = "net"
[[faults]]
fault = "los"
[[faults]]
fault = "loss"
p = "x"
[[faults]]
at_ms = 3
[[faults]]
fault = "pause"
mber = 2
"""


def test_all_faults_of_form_at_once():
    with pytest.raises(UsageError) as caught:
        Scenario.from_toml(MANY, "f.toml")
    found = caught.value.faults
    places = sorted(": ".join(text.split(": ")[:3]) for text in found)
    assert places == sorted(f"f.toml: line {place}" for place in [
        "2: members", "5: senders[1]", "7: load.rate", "8: load.regime", "10: nets[0].edges[0].b", "11: nets[0].model",
        "13: faults[0].fault", "16: faults[1].p", "17: faults[2].fault", "21: faults[3].mber", "4: lod",
    ])  # fmt: skip


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("seed = -1\ntimeout_ms = 0\n[load]\nrate = 'x'", ["load.rate", "timeout_ms", "seed"]),
        ("senders = [7]\nmembers = 'x'", ["members"]),  # nobody knows how many there are
        ("senders = [7]\nmembrs = 9", ["membrs"]),
    ],
)
def test_values_are_judged_beside_faults_of_form_if_they_can_be(text, places):
    with pytest.raises(UsageError) as caught:
        Scenario.from_toml(text, "f.toml")
    assert [fault.split(": ")[2] for fault in caught.value.faults] == places


def test_so_many_faults_are_told_and_the_rest_counted():
    with pytest.raises(UsageError) as caught:
        Scenario.from_toml("[[faults]]\nfault = 'loss'\np = 2\n" * 30, "f.toml")
    assert len(caught.value.faults) == 21 and caught.value.faults[-1] == "f.toml: and 10 more"


def test_unreadable_files(tmp_path):
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        Scenario.from_file(tmp_path / "none.toml")
    with pytest.raises(UsageError, match=r"is a directory: expected a file such as .*/scenario\.toml$"):
        Scenario.from_file(tmp_path)
    (tmp_path / "b.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="expected UTF-8"):
        Scenario.from_file(tmp_path / "b.toml")


def test_a_backward_jump_needs_the_disk():
    with pytest.raises(UsageError, match="exclude each other"):
        Scenario(faults=(faults.ClockJump(by_ms=-1), faults.Crash(disk=False))).check()


def test_writer_keeps_small_tables_on_a_line():
    edges = tuple(Edge(a=1, b=k, us=2.5) for k in range(2, 8))
    text = Scenario(members=7, nets=(Net(model="graph", edges=edges),)).to_toml()
    assert "{ a = 1, b = 2, us = 2.5 }" in text
    with pytest.raises(TypeError):
        tomli_w.dumps({"a": None})
    assert Hosts(receive=Cost(us=1)) != Hosts()


_KEYS = sorted(
    {name for kind in (Load, Net, Edge, Hosts, Cost, *faults.FAULTS) for name in kind.__struct_fields__} | {"fault"}
)
_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.sampled_from(["loss", "graph", "uniform"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYS) | WORDS, inner, max_size=4),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from(Scenario.__struct_fields__), _ANY, max_size=5))
def test_what_msgspec_refuses_is_told_and_nothing_else(table):
    """The walk that finds all faults and the conversion that stops at the first are of one mind."""
    source = Source("f.toml", table)
    walked = source.part(table, Scenario)
    try:
        converted = msgspec.convert(table, Scenario)
    except msgspec.ValidationError:
        with pytest.raises(ConfigError):
            source.refuse()
        assert all("\n" not in words for _, words in source.faults)
    else:
        assert not source.faults and repr(walked) == repr(converted)

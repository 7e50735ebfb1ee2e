"""Scenarios: TOML and back, and one sentence for what cannot be meant."""

import typing

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ordercast.errors import UsageError
from ordercast.sim import faults, toml
from ordercast.sim.law import Delay
from ordercast.sim.scenario import Clocks, Cost, Edge, Hosts, Load, Net, Scenario, Start

FLOATS = st.floats(0, 1e9)
WORDS = st.text(max_size=8)


def values(kind: typing.Any) -> st.SearchStrategy:
    """Any value of an annotated field."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Literal:
        return st.sampled_from(args)
    if origin is tuple:
        return st.lists(values(args[0]), max_size=3).map(tuple)
    if args:
        return st.one_of([st.none() if arg is type(None) else values(arg) for arg in args])
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return structs(kind)
    return {int: st.integers(0, 2**60), float: FLOATS, str: WORDS, bool: st.booleans()}[kind]


def structs(kind: type[msgspec.Struct]) -> st.SearchStrategy:
    hints = {name: h for name, h in typing.get_type_hints(kind).items() if name in kind.__struct_fields__}
    return st.builds(kind, **{name: values(hint) for name, hint in hints.items()})


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
    timeout_ms=FLOATS,
    wire=st.booleans(),
    faults=st.lists(st.one_of([structs(kind) for kind in faults.FAULTS]), max_size=3).map(tuple),
    heal_ms=st.none() | FLOATS,
)


def reread(scenario: Scenario) -> Scenario:
    """Through TOML and back, unchecked: any values of the right types."""
    import tomllib

    return msgspec.convert(tomllib.loads(scenario.to_toml()), Scenario)


@settings(max_examples=60, deadline=None)
@given(SCENARIOS)
def test_toml_and_back(scenario):
    assert reread(scenario) == scenario


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
        ("members =", "f.toml: not TOML: invalid value"),
        ("members = 'x'", "f.toml: members: expected int, got str"),
        ("membrs = 3", "f.toml: unknown key 'membrs'; did you mean members?"),
        ("members = 65", "f.toml: members: expected 1 to 64, got 65"),
        ("seed = -1", "f.toml: seed: expected 0 to 2^64 - 1, got -1"),
        ("timeout_ms = 0", "f.toml: timeout_ms: expected more than 0, got 0"),
        ("service = 'best'", "f.toml: service: expected one of fifo, causal, agreed, safe, quasi, got 'best'"),
        ("packet_bytes = 1000", "f.toml: packet_bytes: expected 1472 to 65507, got 1000"),
        ("datagram_bytes = 100", "f.toml: datagram_bytes: expected 548 to 65507, got 100"),
        ("senders = [9]", "f.toml: senders: expected members 1 to 3, got 9"),
        ("[[nets]]\nmodel = 'x'", "f.toml: nets[0].model: expected one of lan, links, graph, got 'x'"),
        ("[[nets]]\nmembers = [1]", "f.toml: nets: member 2 sits on none"),
        ("[[faults]]\nfault = 'los'", "f.toml: faults[0].fault: unknown fault 'los': expected one of"),
        ("[[faults]]\np = 1", "f.toml: faults[0]: expected the key fault"),
        ("[[faults]]\nfault = 'loss'\nprob = 1", "f.toml: faults[0]: unknown key 'prob'"),
        ("[[faults]]\nfault = 'loss'\np = 2", "f.toml: faults[0] (loss): p: expected 0 to 1, got 2"),
        ("[[faults]]\nfault = 'cut'\npairs = ['1+2']", """f.toml: faults[0] (cut): pairs: expected "1>2", "1-2" """),
        ("[[faults]]\nfault = 'crash'\nmember = 4", "faults[0] (crash): members: expected members 1 to 3, got 4"),
        (
            "[[faults]]\nfault = 'pause'\nat_ms = 5\nuntil_ms = 1",
            "faults[0] (pause): until_ms: expected at least at_ms",
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
    assert all(text.startswith("f.toml: ") for text in found)
    places = sorted(text.split(": ")[1] for text in found)
    assert places == sorted([
        "members", "senders[1]", "load.rate", "load.regime", "nets[0].edges[0]", "nets[0].model",
        "faults[0].fault", "faults[1].p", "faults[2]", "faults[3]", "unknown key 'lod'; did you mean load?",
    ])  # fmt: skip


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("seed = -1\ntimeout_ms = 0\n[load]\nrate = 'x'", ["load.rate", "seed", "timeout_ms"]),
        ("senders = [7]\nmembers = 'x'", ["members"]),  # nobody knows how many there are
        ("senders = [7]\nmembrs = 9", ["unknown key 'membrs'; did you mean members?"]),
    ],
)
def test_values_are_judged_beside_faults_of_form_if_they_can_be(text, places):
    with pytest.raises(UsageError) as caught:
        Scenario.from_toml(text, "f.toml")
    assert [fault.split(": ")[1] for fault in caught.value.faults] == places


def test_so_many_faults_are_told_and_the_rest_counted():
    with pytest.raises(UsageError) as caught:
        Scenario.from_toml("[[faults]]\nfault = 'loss'\np = 2\n" * 30, "f.toml")
    assert len(caught.value.faults) == 21 and caught.value.faults[-1] == "f.toml: and 10 more"


def test_unreadable_files(tmp_path):
    with pytest.raises(UsageError, match="cannot be read: no such file"):
        Scenario.from_file(tmp_path / "none.toml")
    (tmp_path / "b.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="not TOML: expected text in UTF-8"):
        Scenario.from_file(tmp_path / "b.toml")


def test_a_backward_jump_needs_the_disk():
    with pytest.raises(UsageError, match="exclude each other"):
        Scenario(faults=(faults.ClockJump(by_ms=-1), faults.Crash(disk=False))).check()


def test_writer_keeps_small_tables_on_a_line():
    edges = tuple(Edge(a=1, b=k, us=2.5) for k in range(2, 8))
    text = Scenario(members=7, nets=(Net(model="graph", edges=edges),)).to_toml()
    assert "{ a = 1, b = 2, us = 2.5 }" in text
    with pytest.raises(TypeError):
        toml.dumps({"a": None})
    assert Hosts(receive=Cost(us=1)) != Hosts()

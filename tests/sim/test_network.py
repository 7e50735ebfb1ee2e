"""Networks: when datagrams arrive, on one channel, on links, along a graph, on several nets."""

import random

import pytest

from ordercast.sim.faults import Cut, Partition
from ordercast.sim.law import Delay
from ordercast.sim.network import Graph, Lan, Links, media
from ordercast.sim.scenario import Edge, Load, Net, Scenario
from ordercast.sim.world import run
from ordercast.trace.schema import Kind

US = 1_000


def medium(net: Net, members: int = 3, hears_self: bool = False):
    (only,) = media(Scenario(members=members, nets=(net,)), random.Random(1), hears_self)
    return only


def notes(outcome, name):
    """(member, detail) of every note of this name."""
    kind = int(Kind.NOTE)
    return [(r.member, r.detail) for r in outcome.trace.rows if r.kind == kind and r.detail["name"] == name]


def tiny(**fields):
    fields = {"messages": 30, "load": Load(regime="periodic", rate=500.0), "limit_ms": 200.0, **fields}
    return run(Scenario(protocol="tiny", **fields), level="full")


def heard(outcome, kind="Word", net=None):
    """(source, receiver) -> how many packets of the kind it heard."""
    out = {}
    for member, got in notes(outcome, "got"):
        if got["kind"] == kind and net in (None, got["net"]):
            out[got["source"], member] = out.get((got["source"], member), 0) + 1
    return out


def test_lan_serialises_all_senders_and_reaches_all_at_once():
    lan = medium(Net(delay=Delay(mean_us=50), mbit=8.0, overhead_bytes=0))  # 1 us per byte
    assert isinstance(lan, Lan)
    assert lan.reach(0, 1, (2, 3), 100) == [(2, 150 * US), (3, 150 * US)]
    assert lan.reach(10 * US, 2, (1, 3), 100) == [(1, 250 * US), (3, 250 * US)]
    assert lan.reach(900 * US, 3, (1,), 100) == [(1, 1050 * US)]


def test_lan_with_a_random_delay_differs_by_receiver():
    lan = medium(Net(delay=Delay("uniform", low_us=10, high_us=1000), mbit=0))
    (_, one), (_, two) = lan.reach(0, 1, (2, 3), 100)
    assert one != two


def test_links_serialise_one_sender_only():
    links = medium(Net(model="links", delay=Delay(mean_us=50), mbit=8.0, overhead_bytes=0))
    assert isinstance(links, Links)
    assert links.reach(0, 1, (2, 3), 100) == [(2, 150 * US), (3, 150 * US)]
    assert links.reach(0, 2, (1,), 100) == [(1, 150 * US)]
    assert links.reach(0, 1, (3,), 100) == [(3, 250 * US)]


def test_links_with_a_delay_per_pair():
    links = medium(Net(model="links", delay=Delay(mean_us=50), mbit=0, edges=(Edge(a=1, b=2, us=700.0),)))
    assert links.reach(0, 1, (2, 3), 100) == [(2, 700 * US), (3, 50 * US)]
    assert links.reach(0, 2, (1,), 100) == [(1, 700 * US)]
    assert links.bound >= 700 * US


@pytest.mark.parametrize("model", ["links", "graph"])
def test_a_pair_or_edge_with_a_law_of_its_own(model):
    far = Edge(a=1, b=2, delay=Delay("uniform", low_us=700, high_us=900))
    net = medium(Net(model=model, delay=Delay(mean_us=50), mbit=0, edges=(far, Edge(a=1, b=3, us=100.0))))
    far_times = {at for k in range(40) for at in (net.reach(0, 1, (2,), 1)[0][1], net.reach(0, 2, (1,), 1)[0][1])}
    assert len(far_times) > 40 and min(far_times) >= 700 * US and max(far_times) <= 900 * US
    assert net.reach(0, 1, (3,), 1) == [(3, 100 * US)]
    assert net.bound >= 900 * US


def test_fifo_links_let_nobody_overtake():
    delay = Delay("uniform", low_us=1, high_us=1000)
    loose, strict = (medium(Net(model="links", delay=delay, mbit=0, fifo=fifo)) for fifo in (False, True))
    arrivals = [[m.reach(k, 1, (2,), 1)[0][1] for k in range(50)] for m in (loose, strict)]
    assert arrivals[0] != sorted(arrivals[0])
    assert arrivals[1] == sorted(set(arrivals[1]))


GRAPH = Net(
    model="graph",
    mbit=0,
    edges=(Edge(a=1, b=9, us=100.0), Edge(a=9, b=2, us=200.0), Edge(a=9, b=3, us=300.0), Edge(a=1, b=3, us=1000.0)),
)


def test_graph_takes_the_shortest_way_over_relays():
    graph = medium(GRAPH)
    assert isinstance(graph, Graph)
    assert graph.reach(0, 1, (2, 3), 100) == [(2, 300 * US), (3, 400 * US)]
    assert graph.reach(0, 3, (2,), 100) == [(2, 500 * US)]


def test_graph_carries_one_copy_per_edge():
    graph = medium(Net(model="graph", mbit=8.0, overhead_bytes=0, edges=GRAPH.edges))
    assert graph.reach(0, 1, (2, 3), 10) == [(2, 320 * US), (3, 420 * US)]  # the edge 1-9 is used once
    assert graph.reach(0, 1, (2,), 10) == [(2, 330 * US)]  # and busy for a second datagram


def test_graph_edges_and_relays_can_be_cut():
    cut = tiny(nets=(GRAPH,), faults=(Cut(pairs=("9>2",), edges=True),), messages=30)
    assert heard(cut) == {(1, 3): 10, (2, 1): 10, (2, 3): 10, (3, 1): 10}
    lost = [row for row in cut.trace.rows if row.kind == Kind.DROP and row.detail["packet"] == "Word"]
    assert [row.detail["reason"] for row in lost] == ["cut"] * 20
    dead = tiny(nets=(GRAPH,), faults=(Partition(shape="gateway", member=9),))
    assert heard(dead) == {}


def test_two_lans_joined_by_a_member_on_both():
    nets = (Net(members=(1, 2)), Net(members=(2, 3)))
    outcome = tiny(nets=nets)
    assert heard(outcome, net=0) == {(1, 2): 10, (2, 1): 10}
    assert heard(outcome, net=1) == {(2, 3): 10, (3, 2): 10}


def test_a_gateway_cut_parts_the_lans():
    nets = (Net(members=(1, 2)), Net(members=(2, 3)))
    outcome = tiny(nets=nets, faults=(Partition(shape="gateway", member=2),))
    assert heard(outcome) == {(1, 2): 10, (2, 1): 10}


def test_a_net_that_is_not_there_reaches_nobody():
    assert medium(Net(members=(1, 2))).others == {1: (2,), 2: (1,)}
    assert medium(Net(), hears_self=True).others[1] == (1, 2, 3)


@pytest.mark.parametrize("model", ["lan", "links", "graph"])
def test_token_site_runs_on_every_model(model):
    edges = GRAPH.edges if model == "graph" else ()
    net = Net(model=model, edges=edges, delay=Delay("exponential", low_us=20, mean_us=200))
    outcome = run(Scenario(protocol="token_site", messages=100, nets=(net,)))
    assert outcome.delivered == 100

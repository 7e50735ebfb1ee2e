"""Every promise a run can be judged by: its id, its name, its statement, and what a trace must hold to judge it.

Words: a *life* is one incarnation of a member.  A life *is in* the last regular view it installed; what it delivers in
that view, or in the transitional view right after it, belongs to that view.  One message is *before* another when some
life delivered it first.  The ideas are those of Chockler, Keidar and Vitenberg (2001) and of Moser, Amir, Melliar-Smith
and Agarwal (1994); docs/guarantees.md tells how each is checked.
"""

from __future__ import annotations

from msgspec import Struct

from ordercast.errors import UsageError
from ordercast.trace.schema import LEVEL_KINDS, Kind, Level


class Promise(Struct, frozen=True):
    """One line of the catalogue."""

    id: str
    name: str
    statement: str
    kinds: tuple[Kind, ...] = ()  # what a trace must record; empty with `elsewhere`
    elsewhere: str = ""  # what judges it, when a single trace cannot

    @property
    def level(self) -> Level:
        """The lowest level of tracing at which it can be judged."""
        return next(level for level in (Level.DELIVER, Level.FULL) if LEVEL_KINDS[level].issuperset(self.kinds))

    @property
    def safety(self) -> bool:
        return self.id.startswith("S")


_S, _O, _D, _V = Kind.SUBMIT, Kind.ORIGINATE, Kind.DELIVER, Kind.VIEW

# one promise, one paragraph
_ALL = (
    Promise("S1", "integrity", "what is delivered was submitted before by its sender, unaltered, to the same groups "
            "and with the same service", (_S, _O, _D)),
    Promise("S2", "no duplication", "a life delivers a message at most once", (_D,)),
    Promise("S3", "identity", "message numbers never repeat and leave no gap in one life, and every new life of a "
            "member has a larger incarnation", (_S, _O)),
    Promise("S4", "self inclusion", "a member is in every view it installs", (_V,)),
    Promise("S5", "view agreement", "a view has the same members and comes from the same views wherever it is "
            "installed", (_V,)),
    Promise("S6", "local monotonicity", "the views a member installs grow strictly, over restarts too", (_V,)),
    Promise("S7", "initial view", "nothing is accepted from, nor delivered to, a member before its first view",
            (_S, _D, _V)),
    Promise("S8", "linear primary", "primary views form one chain in which neighbours share a member, and nothing is "
            "delivered outside them", (_D, _V)),
    Promise("S9", "same view delivery", "whoever delivers a message delivers it in the same view", (_D, _V)),
    Promise("S10", "sending view delivery", "a message is delivered in the view it was originated in", (_O, _D, _V)),
    Promise("S11", "virtual synchrony", "lives that go from one view directly to the same next view delivered the same "
            "messages in it", (_D, _V)),
    Promise("S12", "transitional set", "a transitional set holds exactly those that go from its old view directly to "
            "its new one, but for members that fail on the way", (_V,)),
    Promise("S13", "failure atomicity", "lives in the same transitional view delivered the same messages before it, "
            "and the same in it", (_D, _V)),
    Promise("S14", "self delivery", "a member that goes on to the next view has delivered all it originated, and "
            "originates in the order of submission without leaving any out", (_O, _D, _V)),
    Promise("S15", "FIFO", "whoever delivers a message delivered all earlier ones of its sender in that view and group "
            "before", (_O, _D)),
    Promise("S16", "causal order", "whoever delivers a message delivered before what its sender had delivered when it "
            "originated it in that view", (_O, _D)),
    Promise("S17", "order, weak", "in each view one order explains what everybody delivered, or, where S18 is not "
            "promised, all who go on together", (_D,)),
    Promise("S18", "order, strong", "one order explains what everybody delivered in all views and partitions", (_D,)),
    Promise("S19", "no holes", "whoever delivers a message delivered before all that others delivered before it in "
            "that view, except, in a transitional view, messages of members that did not come along", (_D,)),
    Promise("S20", "safe", "when a safe message is delivered, every member of that view has received it, and none of "
            "them goes on to another view without delivering it", (_D, _V)),
    Promise("S21", "order across groups", "S17, S18 and S19 hold over the deliveries of all groups together", (_D,)),
    Promise("S22", "addressing", "a message goes only to members of its groups, and who ends a run in one view, in "
            "calm, was told the same members of each group", (_D, Kind.GROUP_VIEW)),
    Promise("S23", "once per gateway path", "a message has one sequence number on each ring and one timestamp "
            "everywhere", (_D,)),
    Promise("S24", "acknowledged is durable", "an acknowledged message is delivered by every member that recovers",
            elsewhere="the durable log's own check"),
    Promise("S25", "determinism", "the same seed, version and options give the same trace",
            elsewhere="two runs of a seed"),
    Promise("S26", "live equals core", "the recorded inputs of a live member give the recorded actions",
            elsewhere="ordercast replay"),
    Promise("Q1", "quasi order", "fewer messages than declared are out of the common order, or missing, in what "
            "members deliver while they are present", (_D, Kind.ABSENT, Kind.PRESENT)),
    Promise("A1", "equal states", "replicas that took part in one decision, and have applied as many calls since, all "
            "of them in a regular view, have equal states", (Kind.NOTE,)),
    Promise("A2", "one history", "a decision that every member of its view took is in the history of every later one, "
            "unless every disk that held it is lost; where all parts go on, what a member has when a view begins is in "
            "the history of what that view decides", (Kind.NOTE,)),
    Promise("A3", "nothing twice", "a call is applied at most once in a history, over restarts too", (Kind.NOTE,)),
    Promise("A4", "answered", "an answered call is in every later decision: a durable one always, or, where all parts "
            "go on, once all have met, any other as long as a member has it when the next view begins; a durable one "
            "is on the disk of every member of its view", (Kind.NOTE,)),
    Promise("A5", "complete in time", "when all members stay up and connected, or those of a view that has decided, "
            "each has the state, in time for its bytes",
            (Kind.NOTE, Kind.STABLE)),
    Promise("A6", "told", "a replica that takes another state over is told exactly the calls that this one lacks, once",
            (Kind.NOTE,)),
    Promise("L1", "precision", "those that stay up and connected end up in one view of exactly them, in time",
            (_V, Kind.STABLE)),
    Promise("L2", "no flapping", "after that no view changes; under a permanent fault of links only few do, and the "
            "largest core that is fully linked, if a majority, goes on delivering",
            (_V, Kind.STABLE)),
    Promise("L3", "delivery", "what is originated in that view is delivered by all of them, in time", (_O, _D)),
    Promise("L4", "termination", "every member of a view delivers what is originated in it, or the sender goes on to "
            "another view", (_O, _D, _V)),
    Promise("L5", "token", "every member handles the token once per rotation", (Kind.NOTE, Kind.STABLE)),
    Promise("L6", "drain", "when the load stops, all buffers run empty", (Kind.END,)),
    Promise("L7", "back-pressure ends", "whoever was refused because the group was busy can submit again, in time",
            (_S, Kind.REFUSE)),
    Promise("L8", "rejoin", "a member that restarts or resumes is in the common view in time", (_V, Kind.STABLE)),
    Promise("L9", "bounded wait", "once every machine's message follows all candidates, something is delivered",
            elsewhere="the core's own assertion"),
    Promise("L10", "roles settle", "under constant load a member changes its role at most twice in a view, and not "
            "after 20 s",
            (Kind.MODE, Kind.STABLE)),
    Promise("L11", "order resumes", "a member that returns delivers in the common order again, in time",
            (_D, Kind.ABSENT, Kind.PRESENT)),
    Promise("L12", "no stuck core", "nothing waits for a member outside its view", (Kind.END, _V)),
    Promise("L13", "good leave", "what a member accepted before it left is delivered by every member of its last view "
            "that it is for and that goes on from there, or is named where it left", (_S, _O, _D, _V, Kind.LEAVE)),
)  # fmt: skip

CATALOGUE: dict[str, Promise] = {promise.id: promise for promise in _ALL}


def chosen(ids: tuple[str, ...] | list[str]) -> list[Promise]:
    """The promises of these ids, in the catalogue's order, each once."""
    unknown = [id for id in ids if id not in CATALOGUE]
    if unknown:
        raise UsageError(f"unknown promise {unknown[0]!r}: expected S1 to S26, Q1, A1 to A6 or L1 to L13")
    return [promise for id, promise in CATALOGUE.items() if id in ids]

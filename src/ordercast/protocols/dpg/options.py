"""Options of DPG: the paper's cycles, counted in messages heard; 5 ms of silence count as one (E11)."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from ordercast.protocols.dpg.site import Cycles
from ordercast.registry import Draw

Count = Annotated[int, Meta(ge=1, le=100_000)]


class DpgOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """Cycles count messages heard."""

    channel: Annotated[Literal["tagger", "lan", "wan"], Draw("tagger")] = "tagger"  # whence one order of all datagrams
    rate: Annotated[float, Meta(gt=0, lt=1)] = 1 / 2000  # declared rate of violating messages: what Q1 judges
    marks: Annotated[Literal["excuse", "off", "none"], Draw("off")] = (
        "excuse"  # off: no marks while an own message is unplaced; none: never
    )
    own: bool = True  # false: own datagrams are ignored when they come back, as a LAN interface does
    late: Literal["deliver", "skip"] = "deliver"  # what turns out to precede something delivered
    report_cycle: Annotated[Count, Draw(3, 9)] = 5
    deliv_cycle: Annotated[Annotated[int, Meta(ge=0, le=100_000)], Draw(30, 90)] = 0  # 0: 60, more in large groups
    retr_cycle: Annotated[Count, Draw(5)] = 15
    rep_keep: Annotated[Count, Draw(20)] = 16
    gc_cycle: Annotated[Count, Draw(40)] = 24
    buffers: Annotated[Annotated[int, Meta(ge=1, le=100_000)], Draw(24)] = 400  # bodies a site keeps
    window: Annotated[Annotated[int, Meta(ge=0, le=1_000)], Draw(1, 3)] = 0  # own messages not yet delivered; 0: enough

    @property
    def hears_self(self) -> bool:
        return self.own or self.channel != "lan"

    def cycles(self, members: int) -> Cycles:
        return Cycles(self.deliv(members), self.retr_cycle, self.gc_cycle, self.rep_keep)

    def deliv(self, members: int) -> int:
        return self.deliv_cycle or max(60, 6 * members)

    def own_window(self, members: int, present: int) -> int:
        """So many that Deliv_Cycle can pass while they wait: a smaller window would stop the clock it waits for."""
        return self.window or max(8, -(-self.deliv(members) // present))

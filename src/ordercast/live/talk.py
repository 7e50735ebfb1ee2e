"""What drivers say to each other beside their cores' packets: terms, keys; and where members known by name are."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ordercast.contract import ALL, TAGGER, Packet
from ordercast.drivers.terms import Agreement
from ordercast.live.names import Names
from ordercast.live.outgoing import Outgoing
from ordercast.live.ports import Address
from ordercast.live.sealing import Sealing
from ordercast.live.sockets import NetSockets
from ordercast.types import MemberId, Nanoseconds, NetId


class Talk:
    """Of one member; `names` are looked up while their members are not heard."""

    def __init__(
        self,
        me: MemberId,
        nets: Mapping[NetId, NetSockets],
        outgoing: Outgoing,
        agreement: Agreement | None,
        sealing: Sealing | None,
        names: Names | None,
        clock: Callable[[], Nanoseconds],
    ) -> None:
        self._me, self._nets, self._outgoing, self._clock = me, nets, outgoing, clock
        self.agreement, self.sealing, self.names = agreement, sealing, names

    def start(self) -> None:
        """Say to everybody what this member runs with; look for those known by name."""
        self._places()
        if self.agreement is not None:
            self.say_all(self.agreement.first(self._clock()))
        if self.names is not None:
            self.names.start(self._moved)

    def stop(self) -> None:
        if self.names is not None:
            self.names.stop()

    def say(self, number: NetId, to: MemberId, said: Packet) -> None:
        """Another process that says it is this member hears what all hear."""
        self._outgoing.say(self._nets[number], ALL if to == self._me else to, said)

    def say_all(self, said: Packet) -> None:
        """To every member, and to the tagger, which hears no multicasts."""
        for number, net in self._nets.items():
            self.say(number, ALL, said)
            if self._me != TAGGER and net.address(TAGGER):
                self.say(number, TAGGER, said)

    def waits(self, now: Nanoseconds) -> list[str]:
        """Keys that this member lacks and names that mean nothing, in words."""
        said = [] if self.sealing is None else self.sealing.waits(now)
        return said if self.names is None else said + self.names.waits()

    def _first(self, number: NetId, to: MemberId) -> None:
        assert self.agreement is not None
        self.say(number, to, self.agreement.first(self._clock()))

    def _moved(self, addresses: Mapping[MemberId, Address]) -> None:
        """Members were found, or are somewhere else."""
        for number, net in self._nets.items():
            net.move(addresses)
            for member in addresses if self.agreement is not None else ():
                self._first(number, member)
        self._places()

    def _places(self) -> None:
        if self.sealing is not None:
            places = {place for net in self._nets.values() for place in net.places}
            self.sealing.guard.places = frozenset(places)

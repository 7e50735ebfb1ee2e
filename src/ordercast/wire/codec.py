"""Packets <-> bytes: one typed encoder and decoder per packet type, joined by the type's tag.

Typed MessagePack of array-like structs: every count is bounded in the type's annotations before anything is allocated,
nothing nests deeper than the types do, and what types cannot say a packet's own `check` refuses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Union

import msgspec

from ordercast.contract import Packet
from ordercast.errors import WireError

_encode = msgspec.msgpack.Encoder().encode


class Codec:
    """The packets of one protocol."""

    def __init__(self, packets: Sequence[type[Packet]]) -> None:
        assert packets
        self.packets = tuple(packets)
        self._decoder: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(Union[self.packets])  # noqa: UP007
        self._checked = {origin(p) for p in packets if origin(p).check is not Packet.check}

    def encode(self, packet: Packet) -> bytes:
        return _encode(packet)

    def size(self, packet: Packet) -> int:
        return len(_encode(packet))

    def decode(self, data: bytes | memoryview) -> Packet:
        """Raise WireError for anything that is not exactly one well-formed packet."""
        try:
            packet: Packet = self._decoder.decode(data)
        except msgspec.MsgspecError as why:
            raise WireError("packet", str(why)) from None
        except (RecursionError, UnicodeDecodeError, OverflowError) as why:
            raise WireError("packet", type(why).__name__) from None
        if type(packet) in self._checked:
            packet.check()
        return packet


def origin(packet: Any) -> type[Packet]:
    """The class behind a generic packet such as Data[Body]."""
    return getattr(packet, "__origin__", packet)  # type: ignore[no-any-return]

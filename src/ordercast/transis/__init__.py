"""The view-synchronous layer: reliable causal multicast and unicast, in views that change.  `link` puts it together."""

PROBES = (
    *("nack", "retransmit", "hold", "window", "drop", "gather", "install", "plan kept", "plan dropped"),
    *("intermediate view", "early packet", "flush nack", "flush blamed", "stuck link"),
)

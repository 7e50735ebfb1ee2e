"""`ordercast member --metrics`: what `status` tells, for Prometheus.

Its server answers from a thread of its own and changes nothing; figures are taken in the member's event loop, as its
status is.  No payload, no key: the key's name only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ordercast import addresses
from ordercast.errors import RunError, UsageError
from ordercast.live.delays import BOUNDS_MS, Delays
from ordercast.words import short

ANSWER_SECONDS = 2.0


def place(text: str) -> tuple[str, int]:
    """ADDRESS:PORT, or a PORT of loopback."""
    try:
        host, port = addresses.bind(f"127.0.0.1:{text}" if text.isdigit() else text)
    except ValueError:
        host, port = "", 0
    if not port:
        raise UsageError(
            f"--metrics {short(text)}: expected PORT (on loopback) or ADDRESS:PORT, such as 127.0.0.1:9400"
        )
    return host, port


class Metrics:
    """The answering side; `status` and `delays` are asked in the loop that started it."""

    def __init__(self, at: tuple[str, int], status: Callable[[], dict[str, Any]], delays: Delays) -> None:
        try:
            import prometheus_client as client
        except ImportError:
            raise UsageError(
                "--metrics needs prometheus-client: install it with pip install ordercast[metrics]"
            ) from None
        self._status, self._delays, self._loop = status, delays, asyncio.get_running_loop()
        self._registry = client.CollectorRegistry()
        self._registry.register(self)
        try:
            self._server, self._thread = client.start_http_server(at[1], at[0], self._registry)
        except OSError as why:
            words = (why.strerror or "").lower()
            raise UsageError(f"--metrics {addresses.written(*at)}: cannot be opened ({words})") from None

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def describe(self) -> Iterable[Any]:
        return ()  # what is collected depends on what happens

    def collect(self) -> Iterator[Any]:
        """Called in the server's thread."""

        async def now() -> dict[str, Any]:
            return self._status()

        try:
            status = asyncio.run_coroutine_threadsafe(now(), self._loop).result(ANSWER_SECONDS)
        except TimeoutError:
            raise RunError("the member is too busy to answer") from None
        yield from families(status, self._delays)


def families(status: dict[str, Any], delays: Delays) -> Iterator[Any]:
    """A status in Prometheus' words."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

    labels = ("group", "member")
    who = (status["group"], str(status["member"]))

    def counter(name: str, what: str, values: dict[str, int] | int, label: str = "") -> CounterMetricFamily:
        family = CounterMetricFamily(f"ordercast_{name}", what, labels=(*labels, *((label,) if label else ())))
        for key, value in values.items() if isinstance(values, dict) else (("", values),):
            family.add_metric((*who, key) if label else who, value)
        return family

    def gauge(name: str, what: str, values: dict[str, float] | float, label: str = "") -> GaugeMetricFamily:
        family = GaugeMetricFamily(f"ordercast_{name}", what, labels=(*labels, *((label,) if label else ())))
        for key, value in values.items() if isinstance(values, dict) else (("", values),):
            family.add_metric((*who, key) if label else who, value)
        return family

    view, key, datagrams, counts = status["view"], status["key"], status["datagrams"], status["counts"]
    primary = status["in_view"] and (view or {}).get("primary") is not False
    yield gauge("in_view", "1 in a view (a primary one, where that matters), else 0", float(primary))
    yield gauge("view_members", "members of the view", len(view["members"]) if view else 0)
    yield counter("views", "views installed, by cause", status["view_causes"], "cause")
    yield counter("submitted_messages", "messages accepted here", counts["submitted"])
    yield counter("delivered_messages", "messages delivered here", counts["delivered"])
    yield counter("datagrams_sent", "datagrams sent", counts["datagrams_sent"])
    yield counter("datagrams_received", "datagrams used", counts["datagrams_received"])
    lost = {name: datagrams[name] for name in ("lost_here", "unsent", "trains_lost")}
    yield counter("datagrams_lost", "datagrams lost here: unread, unsent, trains", lost, "where")
    yield counter("datagrams_sieved", "datagrams the kernel refused in a flood of strangers", datagrams["sieved"])
    yield counter("drops", "datagrams not used, by reason", status["drops"], "reason")
    peers = {str(peer["member"]): peer for peer in status["peers"]}
    yield counter("packets", "packets of each other member", {k: p["packets"] for k, p in peers.items()}, "from")
    frames = {k: p["frames_lost"] for k, p in peers.items()}
    yield counter("frames_lost", "frames of each other member that were asked for again", frames, "from")
    yield gauge("queue", "what waits, by queue", status["queues"], "queue")
    yield gauge("waits", "what this member waits for", len(status["waits"]))
    yield gauge("insecure", "1 if datagrams are not sealed", float(status["insecure"]))
    held = {} if key is None else {name: float(name == key["sends"]) for name in key["holds"]}
    yield gauge("key", "keys held, by name: 1 the one in use", held, "key")
    yield counter("key_changes", "changes of the key in use", 0 if key is None else key["changes"])
    family = HistogramMetricFamily(
        "ordercast_self_delivery_seconds", "from a submission to its delivery here", labels=labels
    )
    buckets, total = [], 0
    for bound, count in zip((*BOUNDS_MS, None), delays.counts, strict=True):
        total += count
        buckets.append(("+Inf" if bound is None else f"{bound / 1000:g}", float(total)))
    family.add_metric(who, buckets, delays.sum_ns / 1e9)
    yield family

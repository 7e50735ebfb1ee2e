"""What strangers cost: three sealed members on this machine, a flood of forged datagrams at one of them.

    python benchmarks/flood.py [--rates 10000 100000] [--seconds 10] [--out flood.json]

Told for each rate: how many came, the share of a core that the member under fire used more than before, its views
meanwhile, whether its status answered, and how long one view of all took to be back afterwards (0: it never went).
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from ordercast import config, keyfiles
from ordercast.lab.bench import free_ports
from ordercast.live import control
from ordercast.types import Peer
from ordercast.wire.seal import GroupKey, Sealer

TICKS = os.sysconf("SC_CLK_TCK")
STOP_SECONDS = 60.0


def flood(at: tuple[str, int], datagram: bytes, rate: int, seconds: float) -> None:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    begun, sent = time.monotonic(), 0
    while (passed := time.monotonic() - begun) < seconds:
        for _ in range(min(500, int(passed * rate) - sent)):
            sock.sendto(datagram, at)
            sent += 1
        time.sleep(0.0005)


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def whole(file: config.GroupConfig) -> bool:
    answers = [control.ask(file.state_path(member)) for member in file.ids]
    return all(isinstance(each, dict) and (each["view"] or {}).get("members") == [1, 2, 3] for each in answers)


def until_whole(group: config.GroupConfig) -> float:
    begun = time.monotonic()
    while not whole(group):
        if time.monotonic() - begun > STOP_SECONDS:
            raise SystemExit(f"the members were not in one view within {STOP_SECONDS:g} s")
        time.sleep(0.02)
    return time.monotonic() - begun


def asked(group: config.GroupConfig) -> dict[str, Any]:
    answer = control.ask(group.state_path(1))
    if isinstance(answer, str):
        raise SystemExit(f"member 1 {answer}")
    return answer


def measure(group: config.GroupConfig, pid: int, rate: int, seconds: float) -> dict[str, Any]:
    used = processor_seconds(pid)
    time.sleep(seconds)
    idle = processor_seconds(pid) - used
    before, used = asked(group), processor_seconds(pid)
    forged = bytearray(Sealer(GroupKey(b"f" * 32), group.group, Peer(2, 5)).seal(0, 1, bytes(300)))
    assert group.key_path is not None
    forged[3] = keyfiles.read(group.key_path).id
    at = (group.member(1).address, group.member(1).port)
    stranger = multiprocessing.Process(target=flood, args=(at, bytes(forged), rate, seconds))
    stranger.start()
    answered = True
    while stranger.is_alive():
        answered = answered and isinstance(control.ask(group.state_path(1)), dict)
        stranger.join(0.5)
    busy, after = processor_seconds(pid) - used, asked(group)
    dropped = {name: after["drops"].get(name, 0) - before["drops"].get(name, 0) for name in ("rate", "tag")}
    dropped["sieved"] = after["datagrams"]["sieved"] - before["datagrams"]["sieved"]
    return {
        "rate": rate,
        "came_per_s": round(sum(dropped.values()) / seconds),
        "opened": dropped["tag"],
        "sieved": dropped["sieved"],
        "core_percent": round(100 * (busy - idle) / seconds, 1),
        "new_views": sum(after["view_causes"].values()) - sum(before["view_causes"].values()),
        "status_answered": answered,
        "one_view_after_s": round(until_whole(group), 2),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ordercast-flood-") as name:
        base = Path(name)
        keyfiles.write(base / "group.key")
        port, *ports = free_ports(4)
        members = [{"id": k, "address": f"127.0.0.1:{at}"} for k, at in enumerate(ports, 1)]
        written = {"group": "flood", "key": "group.key", "net": {"port": port}, "member": members}
        group = config.make(written | {"trace": {"level": "off"}, "timeout_ms": 1000}, base=base)
        (base / "group.toml").write_text(config.dump(group))
        words = [sys.executable, "-m", "ordercast", "member", "--config", str(base / "group.toml"), "--id"]
        started = [
            subprocess.Popen([*words, str(k)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) for k in group.ids
        ]
        try:
            until_whole(group)
            figures = [measure(group, started[0].pid, rate, args.seconds) for rate in args.rates]
        finally:
            for process in started:
                process.terminate()
            ended = [process.wait(timeout=30) for process in started]
    for each in figures:
        print(json.dumps(each))
    if args.out is not None:
        args.out.write_text(json.dumps(figures, indent=1) + "\n")
    return int(any(ended))


if __name__ == "__main__":
    sys.exit(main())

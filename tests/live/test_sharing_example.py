"""examples/sharing.py as real processes, over a quasi order with a tagger."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import tomli_w

from ordercast.lab.bench import free_ports

from .conftest import ROOT, WAIT_SECONDS, Cli, environment


def test_three_sites_share_a_resource(cli: Cli, tmp_path: Path) -> None:
    port, at, *own = free_ports(5)
    members = [{"id": k, "address": f"127.0.0.1:{place}"} for k, place in enumerate(own, 1)]
    group = {
        "group": "sharing", "protocol": "dpg", "member": members, "net": {"port": port}, "insecure": True,
        "tagger": {"address": f"127.0.0.1:{at}"}, "trace": {"level": "off"}, "state_dir": str(tmp_path / "state"),
    }  # fmt: skip
    (tmp_path / "group.toml").write_text(tomli_w.dumps(group))
    tagger = cli.start("tagger", "--config", "group.toml")
    assert tagger.stdout is not None and '"ready"' in tagger.stdout.readline()
    sites = [
        subprocess.Popen(
            [sys.executable, str(ROOT / "examples" / "sharing.py"), str(k), "group.toml"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=environment(),
        )
        for k in (1, 2, 3)
    ]  # fmt: skip
    cli.started += sites
    done = [site.communicate(timeout=WAIT_SECONDS) for site in sites]
    assert [site.returncode for site in sites] == [0, 0, 0], done
    counts = [re.fullmatch(r"site (\d): (\d+) operations, \d+ time-outs\n", out) for out, _ in done]
    assert all(count is not None and int(count[2]) >= 3 for count in counts), done
    tagger.send_signal(signal.SIGTERM)
    assert tagger.wait(timeout=WAIT_SECONDS) == 0

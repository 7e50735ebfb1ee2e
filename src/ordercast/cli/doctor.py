"""`ordercast doctor`: what this machine needs to run ordercast, and the one line that fixes what is missing."""

from __future__ import annotations

import os
import re
import shutil
import socket
import struct
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import click
from msgspec import Struct, structs

from ordercast.cli.common import emit, json_option
from ordercast.errors import UsageError
from ordercast.limits import DATAGRAM_BYTES_LOOPBACK, RECEIVE_BUFFER_BYTES

PYTHON_MIN = (3, 11)
EXTRAS = "pip install 'ordercast[spark,plots]'"


class Finding(Struct, frozen=True):
    """One check.  `needed` false: something works less well, or some tests cannot run."""

    name: str
    ok: bool
    found: str
    fix: str = ""
    needed: bool = True


def python() -> Finding:
    found = sys.version.split()[0]
    return Finding("Python", sys.version_info >= PYTHON_MIN, found, "install Python 3.11 or newer")


def system() -> Finding:
    found = f"{os.uname().sysname} {os.uname().release}"
    return Finding("system", sys.platform == "linux", found, "run it on Linux: its sockets and namespaces are used")


def java() -> Finding:
    from ordercast.pipeline.session import java_version

    try:
        version, path = java_version()
    except UsageError as why:
        fix = "apt-get install -y --no-install-recommends default-jre-headless"
        fix = "unset JAVA_HOME" if "JAVA_HOME=" in str(why) else fix
        return Finding("Java", False, str(why).partition(": ")[0], fix)
    return Finding("Java", True, f"{version} at {path}")


def worker_python() -> Finding:
    name = "PYSPARK_PYTHON"
    value = os.environ.get(name)
    if not value:
        return Finding(name, True, f"not set; ordercast sets it to {sys.executable}")
    usable = shutil.which(value) is not None
    same = usable and os.path.realpath(shutil.which(value) or value) == os.path.realpath(sys.executable)
    if usable and not same:
        return Finding(name, True, f"{value}; ordercast uses {sys.executable} for its own sessions")
    return Finding(name, usable, value if usable else f"{value} cannot be started", f"unset {name}")


def spark_environment() -> Finding:
    name = "Spark environment"
    names = ("SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")
    found = [n for n in names if os.environ.get(n)]
    if not found:
        return Finding(name, True, "clean")
    return Finding(name, False, f"{', '.join(found)} change how Spark starts", f"unset {' '.join(found)}", needed=False)


def package(name: str, least: tuple[int, ...] = (), below: tuple[int, ...] = ()) -> Callable[[], Finding]:
    """Is a package of the spark extra here, in a version that works?  Read from its metadata, not imported."""

    def check() -> Finding:
        try:
            found = metadata.version(name)
        except metadata.PackageNotFoundError:
            return Finding(name, False, "not installed (verify, measure and report need it)", EXTRAS)
        version = tuple(int(part) for part in re.findall(r"\d+", found)[:2])
        bad = version < least or (below and version >= below)
        wanted = f"{'.'.join(map(str, least))} or newer" if version < least else f"below {'.'.join(map(str, below))}"
        return Finding(name, not bad, f"{found}, expected {wanted}" if bad else found, EXTRAS)

    return check


def multicast() -> Finding:
    """Send one datagram of full size to a multicast group on loopback and hear it."""
    name = "multicast on loopback"
    fix = 'ip link set lo up multicast on; ip route add 239.0.0.0/8 dev lo   (or use mode = "unicast")'
    group, here = "239.192.77.77", "127.0.0.1"
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ear,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mouth,
    ):
        try:
            ear.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            ear.bind((group, 0))
            member = struct.pack("4s4s", socket.inet_aton(group), socket.inet_aton(here))
            ear.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
            ear.settimeout(2.0)
            mouth.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(here))
            mouth.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
            mouth.sendto(bytes(DATAGRAM_BYTES_LOOPBACK), ear.getsockname())
            heard = len(ear.recv(DATAGRAM_BYTES_LOOPBACK + 1))
        except OSError as error:
            return Finding(name, False, f"does not work: {error}", fix)
    return Finding(name, heard == DATAGRAM_BYTES_LOOPBACK, f"{heard} bytes in one datagram", fix)


def receive_buffer() -> Finding:
    name = "net.core.rmem_max"
    fix = f"sysctl -w net.core.rmem_max={RECEIVE_BUFFER_BYTES}"
    try:
        size = int(Path("/proc/sys/net/core/rmem_max").read_text())
    except (OSError, ValueError) as error:
        return Finding(name, False, f"cannot be read: {error}", fix, needed=False)
    words = f"{size} bytes" + ("" if size >= RECEIVE_BUFFER_BYTES else ": bursts will be lost and sent again")
    return Finding(name, size >= RECEIVE_BUFFER_BYTES, words, fix, needed=False)


def namespaces() -> Finding:
    name = "network namespaces"
    fix = "run as root to include the tests that need them"
    if os.geteuid() != 0:
        return Finding(name, False, "not root: tests that need namespaces are not run", fix, needed=False)
    tool = shutil.which("unshare")
    if tool is None or shutil.which("ip") is None:
        return Finding(name, False, "unshare or ip is missing", "apt-get install -y util-linux iproute2", needed=False)
    done = subprocess.run([tool, "--net", "true"], capture_output=True, timeout=20, stdin=subprocess.DEVNULL)
    return Finding(name, done.returncode == 0, "root" if done.returncode == 0 else "refused here", fix, needed=False)


CHECKS: tuple[Callable[[], Finding], ...] = (
    python,
    system,
    java,
    package("pyspark", (4, 3), (5,)),
    package("pyarrow", (18,)),
    package("numpy", (1, 26)),
    package("pandas", (2,), (3,)),
    worker_python,
    spark_environment,
    multicast,
    receive_buffer,
    namespaces,
)


def _lines(findings: list[Finding]) -> str:
    width = max(len(f.name) for f in findings)
    lines = []
    for f in findings:
        mark = "ok     " if f.ok else "WRONG  " if f.needed else "note   "
        lines.append(f"{mark}{f.name.ljust(width)}  {f.found}")
        if not f.ok:
            lines.append(f"{' ' * (width + 9)}fix: {f.fix}")
    wrong = sum(not f.ok for f in findings if f.needed)
    lines.append(f"{wrong} of these must be fixed first" if wrong else "everything that is needed is here")
    return "\n".join(lines)


@click.command("doctor")
@json_option
def command(as_json: bool) -> int:
    """Check what this machine needs, and how to fix what is missing.

    Exit code 1 when something that is needed is wrong; a note is something that works less well.
    """
    findings = [check() for check in CHECKS]
    ok = all(f.ok for f in findings if f.needed)
    rows = [structs.asdict(f) | {"fix": "" if f.ok else f.fix} for f in findings]
    emit({"ok": ok, "checks": rows}, as_json, lambda: _lines(findings))
    return 0 if ok else 1

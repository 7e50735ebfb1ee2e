"""A cluster of Spark on this machine: a master and two workers of one core each, on loopback."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def start(log: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """A process of the cluster, without our package on its path."""
    import pyspark

    home = Path(pyspark.__file__).parent
    env = {"PATH": os.environ["PATH"], "HOME": str(log.parent), "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1",
           "SPARK_WORKER_DIR": str(log.parent / "work"), "SPARK_NO_DAEMONIZE": "1"}  # fmt: skip
    if "JAVA_HOME" in os.environ:
        env["JAVA_HOME"] = os.environ["JAVA_HOME"]
    with open(log, "wb") as out:
        return subprocess.Popen(
            [str(home / "bin" / "spark-class"), *arguments], env=env, stdout=out, stderr=out, stdin=subprocess.DEVNULL,
            cwd=log.parent, start_new_session=True,
        )  # fmt: skip


def wait_for(log: Path, pattern: str, process: subprocess.Popen[bytes]) -> str:
    for _ in range(1200):
        found = re.search(pattern, log.read_text(errors="replace"))
        if found:
            return found[0]
        assert process.poll() is None, log.read_text(errors="replace")[-2000:]
        time.sleep(0.1)
    raise AssertionError(f"{pattern!r} did not come: {log.read_text(errors='replace')[-2000:]}")


@contextmanager
def two_workers(room: Path) -> Iterator[str]:
    """The address of its master; `room` is for logs and work."""
    processes: list[subprocess.Popen[bytes]] = []
    try:
        log = room / "master.log"
        master = start(log, "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0",
                       "--webui-port", "0")  # fmt: skip
        processes.append(master)
        address = wait_for(log, r"spark://127\.0\.0\.1:\d+", master)
        for k in (1, 2):
            log = room / f"worker-{k}.log"
            arguments = ("--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", "1g")
            work = ("--work-dir", str(room / f"work-{k}"))
            processes.append(start(log, "org.apache.spark.deploy.worker.Worker", *arguments, *work, address))
        for k in (1, 2):
            wait_for(room / f"worker-{k}.log", r"Successfully registered with master", processes[k])
        yield address
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

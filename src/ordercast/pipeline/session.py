"""One quiet Spark session: embedded by default, on a cluster by its master, or the one you already have.

What Spark says while it starts goes to a log file in a temporary directory, whose last lines are shown if it fails;
stdout and stderr stay ours.  Nothing here reaches into the JVM, so a session of Spark Connect serves as well.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import ordercast
from ordercast.errors import RunError, UsageError, by_interrupt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession as SparkSession

JAVA_MIN = 17
# what other programs leave in the environment to change every Spark or Java started from it
_FOREIGN = ("PYSPARK_SUBMIT_ARGS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "PYSPARK_DRIVER_PYTHON")
_FOREIGN_EMBEDDED = ("SPARK_CONF_DIR", "SPARK_HOME", "SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "MASTER")
_SHIPPED = "_ordercast_shipped"  # set on sessions that have the package


def java_version(java: str | None = None) -> tuple[int, str]:
    """(major version, path) of the Java that Spark will use; UsageError in one sentence when it will not do."""
    home = os.environ.get("JAVA_HOME")
    java = java or (str(Path(home) / "bin" / "java") if home else shutil.which("java"))
    hint = "install one (Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME"
    if java is None or not os.access(java, os.X_OK):
        where = f"JAVA_HOME={home} has no bin/java" if home else "there is no java on the PATH"
        raise UsageError(f"Spark needs Java {JAVA_MIN} or newer, but {where}: {hint}")
    env = {key: value for key, value in os.environ.items() if key not in _FOREIGN}
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, env=env, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"Spark needs Java {JAVA_MIN} or newer, but {java} does not run ({error}): {hint}") from error
    found = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    if not found:
        raise UsageError(f"Spark needs Java {JAVA_MIN} or newer, but {java} does not say its version: {hint}")
    major = int(found[1])
    if major < JAVA_MIN:
        raise UsageError(f"Spark needs Java {JAVA_MIN} or newer, but {java} is Java {major}: {hint}")
    return major, java


def session(
    master: str | None = None, conf: Mapping[str, str] | None = None, *, app: str = "ordercast"
) -> SparkSession:
    """The session to work with: the active one if there is one and no master is named, else a new one.

    `master`: as Spark writes it (local[2], spark://host:port, yarn, k8s://…), or sc://host:port for Spark Connect.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise UsageError(f"this needs PySpark ({error}): install it with pip install 'ordercast[spark]'") from error
    active = SparkSession.getActiveSession()
    if active is not None and master is None:
        for key, value in (conf or {}).items():
            active.conf.set(key, value)
        return ship(active)
    if active is not None:
        raise UsageError(f"a Spark session is already open here, so master {master!r} cannot be used: stop it first")
    if master is not None and master.startswith("sc://"):
        builder = SparkSession.builder.remote(master).appName(app)
        for key, value in (conf or {}).items():
            builder = builder.config(key, value)
        return ship(_connect(builder))
    java_version()
    embedded = master is None or master.startswith("local")
    room = Path(tempfile.mkdtemp(prefix="ordercast-spark-"))
    settings = _settings(master or "local[*]", embedded, room, app) | dict(conf or {})
    with _environment(embedded), _quiet(room / "spark.log") as log, _interruptible(room):
        builder = SparkSession.builder
        for key, value in settings.items():
            builder = builder.config(key, value)
        try:
            spark = builder.getOrCreate()
        except Exception as error:
            _discard(room)
            raise RunError(
                f"Spark did not start with master {settings['spark.master']}: {_reason(error, log)}"
            ) from error
    atexit.register(_end, spark, room)
    return spark if embedded else ship(spark)


def _settings(master: str, embedded: bool, room: Path, app: str) -> dict[str, str]:
    """Spark's settings; what the caller gives in `conf` wins."""
    quiet_log = room / "log4j2.properties"
    quiet_log.write_text("rootLogger.level = error\nrootLogger.appenderRef.console.ref = console\n"
                         "appender.console.type = Console\nappender.console.name = console\n"
                         "appender.console.target = SYSTEM_ERR\nappender.console.layout.type = PatternLayout\n"
                         "appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex\n")  # fmt: skip
    settings = {
        "spark.master": master,
        "spark.app.name": app,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={quiet_log.as_uri()} -XX:+UseParallelGC",
        "spark.sql.warehouse.dir": (room / "warehouse").as_uri(),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.pyspark.python": sys.executable,
        "spark.pyspark.driver.python": sys.executable,
    }
    if embedded:
        settings |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.local.dir": str(room / "local"),
            "spark.sql.shuffle.partitions": "4",
            "spark.sql.artifact.isolation.enabled": "false",
        }
    return settings


@contextlib.contextmanager
def _environment(embedded: bool) -> Iterator[None]:
    """The environment the JVM and its Python workers inherit: our interpreter, our package, nobody else's options."""
    foreign = _FOREIGN + (_FOREIGN_EMBEDDED if embedded else ())
    if "PYSPARK_GATEWAY_PORT" in os.environ:  # under spark-submit everything was chosen by the user
        foreign = ()
    saved = dict(os.environ)
    for name in foreign:
        os.environ.pop(name, None)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(
        dict.fromkeys([package_root(), *filter(None, saved.get("PYTHONPATH", "").split(os.pathsep))])
    )
    if embedded:
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(saved)
        os.environ["PYSPARK_PYTHON"] = sys.executable


@contextlib.contextmanager
def _quiet(path: Path) -> Iterator[Path]:
    """What is started inside writes its stdout and stderr to `path` for the rest of its life."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError, OSError):
            stream.flush()
    kept: list[tuple[int, int]] = []
    with open(path, "ab") as log:
        for number in (1, 2):
            with contextlib.suppress(OSError):  # a closed stream stays closed
                kept.append((number, os.dup(number)))
            os.dup2(log.fileno(), number)
    try:
        yield path
    finally:
        for number, copy in kept:
            os.dup2(copy, number)
            os.close(copy)


@contextlib.contextmanager
def _interruptible(room: Path) -> Iterator[None]:
    """What is started inside can be interrupted, then and later, by whoever could do it before.

    PySpark's own handler of SIGINT asks the JVM on the connection where the main thread waits for an answer: it cancels
    nothing and makes tracebacks, so the handler that was there before comes back.
    """
    handler = signal.getsignal(signal.SIGINT)
    for name in ("root", "py4j.clientserver"):
        logging.getLogger(name).addFilter(_worth_telling)
    try:
        yield
    except BaseException as error:
        if by_interrupt(error):
            _end_java(error)
            atexit.register(_discard, room)
        raise
    finally:
        if handler is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, handler)


def _end_java(error: BaseException) -> None:
    """Interrupted while it waits for Java, PySpark leaves it behind for good; only those frames know which it is."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        for process in frame.f_locals.values():
            if isinstance(process, subprocess.Popen):
                with contextlib.suppress(Exception):  # it may not have come to be
                    process.kill()
                    process.wait()


def _worth_telling(record: logging.LogRecord) -> bool:
    """Not that Py4J was interrupted, which it tells with tracebacks: who interrupts knows."""
    error = record.exc_info[1] if record.exc_info else None
    return record.module not in ("java_gateway", "clientserver") or not by_interrupt(error)


def _connect(builder: object) -> SparkSession:
    try:
        return builder.getOrCreate()  # type: ignore[attr-defined, no-any-return]
    except ImportError as error:
        raise UsageError(
            f"Spark Connect needs more packages ({error}): install them with pip install 'ordercast[spark-connect]'"
        ) from error
    except Exception as error:
        raise RunError(f"Spark Connect did not answer: {str(error).splitlines()[0][:200]}") from error


def _reason(error: Exception, log: Path) -> str:
    """The line of Spark's log that says most, else the error's own first line."""
    with contextlib.suppress(OSError):
        lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
        telling = [line for line in lines if re.search(r"Exception|Error|error|not found", line)]
        if telling:
            return telling[0][:300]
    return (str(error).strip() or type(error).__name__).splitlines()[0][:300]


def _discard(room: Path) -> None:
    shutil.rmtree(room, ignore_errors=True)


def _end(spark: SparkSession, room: Path) -> None:
    # the JVM may be gone already, or somebody be tired of waiting for it; nothing is left to save
    with contextlib.suppress(Exception, KeyboardInterrupt), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spark.stop()
    _discard(room)


# ------------------------------------------------------------------------------------------ the package on executors


def package_root() -> str:
    """The directory (or zip) that holds the package."""
    return str(Path(ordercast.__file__).resolve().parent.parent)


def package_zip(path: Path) -> Path:
    """Write the package as a zip that Python imports from: the same bytes for the same sources."""
    base = Path(ordercast.__file__).resolve().parent
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for source in sorted(base.rglob("*")):
            if source.is_file() and "__pycache__" not in source.parts:
                name = str(Path("ordercast") / source.relative_to(base))
                out.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), source.read_bytes())
    return path


def ship(spark: SparkSession) -> SparkSession:
    """Make this package importable in the session's executors; once per session.

    The file stays until this process ends: executors that start later fetch it then.
    """
    if not hasattr(spark, _SHIPPED) and Path(ordercast.__file__).is_file():
        room = Path(tempfile.mkdtemp(prefix="ordercast-ship-"))
        atexit.register(_discard, room)
        spark.addArtifacts(str(package_zip(room / "ordercast.zip")), pyfile=True)
        setattr(spark, _SHIPPED, True)
    return spark


def cores(spark: SparkSession) -> int:
    """How many tasks run at once, as far as the configuration tells; a hint for cutting work, never for results."""
    master = spark.conf.get("spark.master", "") or ""
    if found := re.fullmatch(r"local\[(\d+|\*)(?:,.*)?\]", master):
        return os.cpu_count() or 1 if found[1] == "*" else int(found[1])
    if master == "local":
        return 1
    for key in ("spark.cores.max", "spark.default.parallelism"):
        if value := spark.conf.get(key, None):
            return max(1, int(value))
    executors, each = spark.conf.get("spark.executor.instances", None), spark.conf.get("spark.executor.cores", None)
    return max(2, int(executors or 2) * int(each or 1))

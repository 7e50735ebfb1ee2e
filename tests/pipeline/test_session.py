"""What is said before Spark starts, and what the pipeline never does."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import ordercast
from ordercast.cli.spark_options import Setting
from ordercast.errors import UsageError
from ordercast.pipeline.scatter import spread
from ordercast.pipeline.session import java_version, package_zip

PACKAGE = Path(ordercast.__file__).parent


def fake_java(directory: Path, version: str) -> Path:
    java = directory / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2020-01-01' >&2\n")
    java.chmod(0o755)
    return java


def test_java_is_found_and_old_ones_are_refused_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version, major in (("17.0.2", 17), ("25", 25)):
        fake_java(tmp_path / version, version)
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / version))
        assert java_version()[0] == major
    for version, major in (("1.8.0_292", 8), ("11.0.1", 11)):
        fake_java(tmp_path / version, version)
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / version))
        with pytest.raises(UsageError, match=f"needs Java 17 or newer, but .* is Java {major}: install one"):
            java_version()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(UsageError, match="has no bin/java"):
        java_version()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="there is no java on the PATH"):
        java_version()


def test_a_package_for_executors_is_importable(tmp_path: Path) -> None:
    path = package_zip(tmp_path / "x.zip")
    assert path.read_bytes() == package_zip(tmp_path / "y.zip").read_bytes()
    names = zipfile.ZipFile(path).namelist()
    assert "ordercast/__init__.py" in names and not any("__pycache__" in name for name in names)
    program = "import ordercast, ordercast.swarm.work; print(ordercast.__file__)"
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(path)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=env, check=True)
    assert str(path) in done.stdout


def test_settings_of_the_command_line() -> None:
    assert Setting().convert("spark.a=b=c", None, None) == ("spark.a", "b=c")
    for bad in ("spark.a", "=b", " spark.a=b"):
        with pytest.raises(Exception, match="expected KEY=VALUE"):
            Setting().convert(bad, None, None)


def test_work_is_spread_evenly_and_always_alike() -> None:
    weights = [5.0, 1.0, 1.0, 1.0, 1.0, 1.0, 5.0, 1.0]
    found = spread(weights, 2)
    loads = [sum(w for w, task in zip(weights, found, strict=True) if task == k) for k in (0, 1)]
    assert loads == [8.0, 8.0] and found == spread(weights, 2)


@pytest.mark.parametrize("path", sorted((PACKAGE / "pipeline").rglob("*.py")), ids=lambda path: path.stem)
def test_only_the_dataframe_api(path: Path) -> None:
    """No RDD, no context, no way into the JVM: then it also runs through Spark Connect."""
    forbidden = {"rdd", "sparkContext", "_jvm", "_jsparkSession", "_jdf", "_sc", "_jsc", "parallelize", "toJavaRDD"}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute):
            assert node.attr not in forbidden, f"{path.name}:{node.lineno}"
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pyspark"):
            assert node.module == "pyspark.sql", f"{path.name}:{node.lineno}"


def test_pages_need_no_spark() -> None:
    program = (
        "import sys\n"
        "from ordercast.pipeline import experiment, here, numbers, plots, render, report, sweep, verify\n"
        "assert 'pyspark' not in sys.modules and 'matplotlib' not in sys.modules\n"
    )
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, sys.path)))
    subprocess.run([sys.executable, "-c", program], check=True, env=env)

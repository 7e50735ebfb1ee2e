#!/bin/sh
# Writes constraints.txt from a fresh environment with the newest versions that pyproject.toml allows.
set -eu
cd "$(dirname "$0")/.."
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
extras=$(sed -n 's/^EXTRAS=//p' scripts/setup.sh)
.venv/bin/python -m venv "$fresh"
"$fresh/bin/python" -m pip install -q -U pip setuptools hatchling editables
"$fresh/bin/python" -m pip install -q --no-build-isolation -e ".[$extras]" --group test --group lint --group bench
{
    head -n 1 constraints.txt
    "$fresh/bin/python" -m pip freeze --all | grep -E '^[A-Za-z0-9_.-]+=='
} >"$fresh/constraints.txt"
cp "$fresh/constraints.txt" constraints.txt

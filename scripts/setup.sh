#!/bin/sh
# Makes .venv with everything in it, once; quick when there is nothing to do.  Needs python3 and nothing else.
# With the word `bench` also what the benchmarks compare us with.
# What Debian must provide (venv, Java) is installed when we are root, else named with the line that installs it.
set -eu
cd "$(dirname "$0")/.."

EXTRAS=sweep,spark,spark-connect,plots,fast,metrics
LOG=.venv/setup.log
MARK=.venv/.ready
BENCH_MARK=.venv/.bench-ready

fail() {
    echo "setup: $*" >&2
    exit 1
}

# debian PACKAGE WHAT: install a package as root, else say what is missing and how to get it
debian() {
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        echo "setup: $2 is missing; installing Debian's $1 ..." >&2
        { DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$1" ||
            { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$1"; }; } \
            >/tmp/ordercast-apt.$$ 2>&1 </dev/null || {
            tail -n 5 /tmp/ordercast-apt.$$ >&2
            rm -f /tmp/ordercast-apt.$$
            fail "$2 is missing and apt-get could not install $1: install it by hand, then run make setup again"
        }
        rm -f /tmp/ordercast-apt.$$
    else
        fail "$2 is missing: run \`sudo apt-get install -y --no-install-recommends $1\`, then make setup again"
    fi
}

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

find_python() {
    for name in ${PYTHON:-} python3 python3.13 python3.12 python3.11; do
        if command -v "$name" >/dev/null 2>&1 && new_enough "$name"; then
            "$name" -c 'import sys; print(sys.executable)' # the real one behind a shim
            return
        fi
    done
    fail "Python 3.11 or newer is missing (python3 is $(python3 -V 2>&1 || echo not here)): install it, or name it with make setup PYTHON=..."
}

java_version() {
    java=${JAVA_HOME:+$JAVA_HOME/bin/}java
    "$java" -version 2>&1 </dev/null | sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9]*\).*/\2/p' | head -n 1
}

state() { cat pyproject.toml constraints.txt scripts/setup.sh | cksum && pwd; }

version=$(java_version || true)
if [ "${version:-0}" -lt 17 ]; then
    [ -z "${JAVA_HOME:-}" ] || fail "JAVA_HOME=$JAVA_HOME holds no Java 17 or newer, which Spark needs: unset it or change it"
    debian default-jre-headless "Java 17 or newer, which Spark needs,"
fi

done_before() { [ -f "$1" ] && [ "$(cat "$1")" = "$(state)" ] && .venv/bin/python -c '' 2>/dev/null; }

pip() {
    .venv/bin/python -m pip "$@" >>$LOG 2>&1 </dev/null || {
        grep -v '^WARNING: Location' $LOG | tail -n 8 >&2
        fail "pip could not install everything; the whole output is in $LOG"
    }
}

everything() {
    python=$(find_python)
    "$python" -c 'import ensurepip, venv' 2>/dev/null || {
        debian python3-venv "Python's venv module"
        "$python" -c 'import ensurepip, venv' 2>/dev/null || fail "$python has no venv module: expected one with it"
    }
    echo "setup: installing into .venv, once; this takes a minute or two ..." >&2
    rm -f $MARK
    "$python" -m venv --clear .venv
    pip install --disable-pip-version-check -c constraints.txt pip setuptools hatchling editables
    pip install --disable-pip-version-check -c constraints.txt --no-build-isolation -e ".[$EXTRAS]" \
        --group test --group lint
    state >$MARK
    echo "setup: done; try .venv/bin/ordercast --help" >&2
}

done_before $MARK || everything
if [ "${1:-}" = bench ] && ! done_before $BENCH_MARK; then
    echo "setup: installing what the benchmarks compare with ..." >&2
    pip install --disable-pip-version-check -c constraints.txt --group bench
    state >$BENCH_MARK
fi

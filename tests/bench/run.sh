#!/bin/sh
# Times gradc beside PyTorch (and JAX): sets up what is missing, then bench.py.
# The virtual environment with PyTorch is build/bench-venv, or PEERS_VENV.
#
#   sh tests/bench/run.sh [what bench.py takes; see --help]
set -u
cd "$(dirname "$0")/../.." || exit 3
. tests/setup.sh

venv=${PEERS_VENV:-build/bench-venv}
need_build
need python3 python3-venv g++
if [ ! -x "$venv/bin/python" ]; then
    say "making $venv"
    python3 -m venv "$venv" || die "no virtual environment could be made"
fi
if ! "$venv/bin/python" -c 'import torch, jax, optax' 2>/dev/null; then
    say "installing the packages of tests/bench/peers/requirements.txt"
    "$venv/bin/python" -m pip install -q -r tests/bench/peers/requirements.txt ||
        die "PyTorch and JAX can't be installed here"
fi
mkdir -p build/bench
build build Release gradc >build/bench/make.txt 2>&1 || {
    tail -n 30 build/bench/make.txt
    die "the build failed; all of it: build/bench/make.txt"
}
exec "$venv/bin/python" tests/bench/bench.py "$@"

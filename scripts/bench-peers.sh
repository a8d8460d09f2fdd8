#!/usr/bin/env bash
# "make bench-peers": compares GraphNB with PyTorch Geometric, DGL and GraphBolt on this machine; see
# bench/README.md. ARGS go to the driver: make bench-peers ARGS="--quick --only sample,gemm".
#   PEERS_VENV    the peers' Python environment, created if missing (.venv-peers)
#   PEERS_NEWEST_VENV  a second one, with PyG on the newest PyTorch (.venv-peers-newest); "none" leaves
#                 its engines out, as --quick does
#   PEERS_PYTHON  the Python to create them with; torch 2.2.1 and DGL 2.1.0 have wheels for 3.10 and 3.11
#   PYG_LIB_SRC   a checkout of pyg-lib with third_party/parallel-hashmap, built if no wheel is found
#   PEERS_TORCH_INDEX  an index with PyTorch's CPU-only wheel; PyPI's wheel adds 2 GB of CUDA
set -euo pipefail
cd "$(dirname "$0")/.."
bash scripts/need.sh go
venv=${PEERS_VENV:-.venv-peers}
newest=${PEERS_NEWEST_VENV:-.venv-peers-newest}
for arg; do
  if [ "$arg" = --quick ]; then newest=none; fi
done

find_python() {
  local p
  for p in ${PEERS_PYTHON:-} python3.11 python3.10 python3 "$HOME"/.pyenv/versions/3.1[10].*/bin/python3; do
    if "$p" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info[:2] not in ((3, 10), (3, 11)))' 2>/dev/null; then
      echo "$p"
      return
    fi
  done
  echo "missing: Python 3.10 or 3.11, for which PyTorch 2.2.1 and DGL 2.1.0 have wheels" >&2
  echo "  to fix: install one (pyenv install 3.11, apt install python3.11-venv) or name it with PEERS_PYTHON" >&2
  return 1
}

# environment VENV LIST makes a Python environment that has the packages of LIST, and pyg-lib if possible.
environment() {
  local venv=$1 list=$2 python=$1/bin/python3 stamp=$1/requirements.stamp base pip torch
  if ! [ -x "$python" ] || ! cmp -s "$list" "$stamp"; then
    base=$(find_python)
    echo "making $venv with $("$base" -V) (a minute or two, and 5 GB where only PyPI is reachable)"
    [ -x "$python" ] || "$base" -m venv "$venv"
    pip=("$python" -m pip install --quiet --disable-pip-version-check --timeout 60)
    torch=$(grep '^torch==' "$list")
    # The CPU-only wheel if it is available, else PyPI's with its CUDA libraries.
    "${pip[@]}" --retries 0 --index-url "${PEERS_TORCH_INDEX:-https://download.pytorch.org/whl/cpu}" --no-deps "$torch" 2>/dev/null \
      || "${pip[@]}" "$torch"
    "${pip[@]}" --requirement "$list"
    cp "$list" "$stamp"
  fi
  if ! "$python" -c 'import pyg_lib' 2>/dev/null; then
    PYTHONPATH=bench "$python" -m peers.pyglib
  fi
}

environment "$venv" bench/requirements.txt
export PEERS_NEWEST=
if [ "$newest" != none ]; then
  environment "$newest" bench/requirements-newest.txt
  PEERS_NEWEST=$newest/bin/python3
fi
mkdir -p build
go build -o build/gnb ./gnb/cmd/gnb
go build -o build/productslike ./bench/productslike
exec env PYTHONPATH=bench "$venv/bin/python3" -m peers "$@"

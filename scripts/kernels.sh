#!/usr/bin/env bash
# Compiles cuda/kernels/*.cu to the PTX beside them, in a venv of its own with one wheel (23 MB).
#   scripts/kernels.sh            writes the PTX, and fails where a kernel is over cuda/kernels/limits.json
#   scripts/kernels.sh --check    writes nothing: fails where PTX differs, or a kernel is over its limits
#   scripts/kernels.sh --limits   writes the PTX, and takes what the kernels use now as their limits
# The exit status is 3 where the compiler cannot be had, which the first line of output explains.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=.venv-cuda
if ! text=$(bash docker/install.sh python $venv scripts/requirements-cuda.txt 2>&1); then
  echo "no compiler for CUDA kernels: ${text##*$'\n'}"
  exit 3
fi
exec $venv/bin/python3 -X utf8 scripts/nvrtc.py cuda/kernels "$@"

#!/usr/bin/env bash
# Compiles internal/cuda/kernels/*.cu to the PTX beside them, in a separate venv with one wheel (23 MB).
#   scripts/kernels.sh            writes the PTX, and fails if a kernel exceeds internal/cuda/kernels/limits.json
#   scripts/kernels.sh --check    writes nothing: fails if PTX differs, or a kernel exceeds its limits
#   scripts/kernels.sh --limits   writes the PTX, and records the kernels' present use as their limits
# The exit status is 3 if the compiler is unavailable; the first line of output says why.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=.venv-cuda
if ! text=$(bash docker/install.sh python $venv scripts/requirements-cuda.txt 2>&1); then
  echo "no compiler for CUDA kernels: ${text##*$'\n'}"
  exit 3
fi
exec $venv/bin/python3 -X utf8 scripts/nvrtc.py internal/cuda/kernels "$@"

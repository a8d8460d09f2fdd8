#!/usr/bin/env bash
# "make latency": measures waiting times in a notebook and the cost of the panel: the time from an edited
# cell to its first output and its first loss, in the kernel and, if there is a C compiler, in the GPU
# kernel; then the processor time of an update of the panel (aim: under 5 ms) and training's cost per
# update. Arguments go to internal/nbtest/latency.py: --repeats N, --json FILE. Nothing else should run
# meanwhile.
set -euo pipefail
cd "$(dirname "$0")/.."
bash scripts/need.sh go python
bash scripts/venv.sh
bash docker/install.sh kernel .venv >/dev/null
kernels=(graphnb)
if command -v "$(go env CC)" >/dev/null; then
  bash docker/install.sh kernel .venv --cuda >/dev/null
  kernels+=(graphnb-cuda)
else
  echo "there is no C compiler ($(go env CC)): cells for GPUs are left out"
fi
.venv/bin/python3 internal/nbtest/latency.py "$@" "${kernels[@]}"
echo
go test -run '^$' -bench 'Frame|Update' ./gnb/internal/live | awk '
  /^Benchmark/ { printf "%-34s %9.3f ms of processor time\n", $1, $3 / 1e6 }
  /FAIL/ { print; bad = 1 }
  END { exit bad }'

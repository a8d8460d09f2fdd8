#!/usr/bin/env bash
# Runs every test, or with the argument "race" some under the race detector, prints "N passed, N failed, N skipped", and
# succeeds if none failed. With CI=true or GNB_STRICT=1, a test may be skipped for a prerequisite only that this machine
# lacks (internal/testneed).
set -euo pipefail
cd "$(dirname "$0")/.."
bash scripts/need.sh go python
. scripts/go-env.sh
bash scripts/venv.sh
. scripts/gotest.sh
strict=
if [ "${CI:-}" = true ] || [ "${GNB_STRICT:-}" = 1 ]; then strict=strict; fi
# The Python for the NumPy checks.
export GNB_PYTHON=$PWD/.venv/bin/python3
if [ "${1:-}" = race ]; then
  # By default, the race detector waits a second at the end of each process for reports.
  export GORACE=atexit_sleep_ms=50
  # Packages whose code or tests start goroutines run once more under the race detector; it finds nothing in others. Package
  # tensor runs the operations of backendtest on several threads. Tests say themselves if they do not run under it
  # (internal/testneed). Examples repeat what tests have run.
  race=$(grep -rlE --include='*.go' '^\s*go (func|[a-z]+[.(])|\.Go\(|\bparallel\.[A-Z]|t\.Parallel' \
    internal/parallel internal/mapped graphops/sample graphops/dataset graphops/datasets graphops/tensor multigpu gnb/internal/live gnb/internal/screen gnb/internal/plane gnb/internal/feed gnb/internal/recorder gnb/runs gnb/serve gnb/remote gnb/kg gnb/events graphops/temporal gnb/sweep |
    grep -v /testdata/ | sed 's|^|./|; s|/[^/]*$||' | sort -u)
  # What is compiled does not name the checkout's folder, so that a clone in another folder does not compile it again.
  race_flags=(-race -trimpath -short -skip=^Example)
  # shellcheck disable=SC2086 # words
  gotest race "${race_flags[@]}" -p=$packages ./gnb $race
  gotest_cuda race-cuda "${race_flags[@]}" -p=$packages ./internal/cuda ./internal/cuda/nccl
  summarize
  exit
fi
bash scripts/browser.sh || echo "the tests of notebooks in a browser are skipped" >&2
bash scripts/cluster-tools.sh || true # says why not, and that their tests are skipped
compile ./...
# The tests of notebooks in a browser wait most, and run beside the others, before those of -tags cuda.
waiting() {
  gotest lab -p=1 ./internal/labtest
  # shellcheck disable=SC2086 # words
  gotest_cuda cuda -p=1 $cuda
}
background waiting
# The packages that take minutes start first, so that none of them runs alone at the end.
# shellcheck disable=SC2046 # words
gotest test -p=$packages ./gnb ./internal/nbtest/notebooks ./gnb/links ./gnb/cmd/gnb ./internal/nbtest $(go list ./... | grep -v /internal/labtest$)
summarize $strict

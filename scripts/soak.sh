#!/usr/bin/env bash
# Runs the tests that "make test" shortens or leaves out, once or until SOAK (default 10m) is over or one fails: every
# fault at every stage, with own workers, under mpirun and Slurm, and on two hosts; every digest on every division;
# long trainings; large files; the notebooks as they are saved; all cases on the interpreter of kernels; and under the
# race detector the tests that "make test" leaves out there. Then it builds the binaries of a release
# (scripts/release.sh) and does what a newcomer does in a fresh clone, but for "make test" (scripts/stranger.sh).
#
# With CI=true or GNB_STRICT=1 it fails if tests are skipped, as "make test" does.
set -euo pipefail
cd "$(dirname "$0")/.."
bash scripts/need.sh go python
. scripts/go-env.sh
bash scripts/venv.sh
bash scripts/browser.sh || echo "the tests of notebooks in a browser are skipped" >&2
bash scripts/cluster-tools.sh || true # says why not, and that their tests are skipped
# PyTorch's torchrun, for a test on two hosts: a virtual environment of some GB. Without it the test is skipped.
if ! [ -x .cluster/torch/bin/torchrun ] && ! command -v torchrun >/dev/null && [ -d .cluster ]; then
  { python3 -m venv .cluster/torch && .cluster/torch/bin/pip install -q torch==2.15.0 numpy; } ||
    echo "torchrun cannot be had, so its test on two hosts is skipped" >&2
fi
. scripts/gotest.sh
strict=
if [ "${CI:-}" = true ] || [ "${GNB_STRICT:-}" = 1 ]; then strict=strict; fi
export GNB_PYTHON=$PWD/.venv/bin/python3
export GORACE=atexit_sleep_ms=50
soak=${SOAK:-10m}
case $soak in
  *h) seconds=$((${soak%h} * 3600)) ;;
  *m) seconds=$((${soak%m} * 60)) ;;
  *) seconds=${soak%s} ;;
esac
flags+=(-timeout=3h -shuffle=on) # gnb/cmd/gnb takes more than an hour on two cores where GNB_DATA has real graphs
soaked="./multigpu/... ./gnb/... ./graphops/sample/... ./graphops/dataset/convert ./graphops/tensor/... ./internal/nbtest ./internal/nbtest/tutorials ./docker"
raced="./gnb ./multigpu/... ./graphops/sample ./graphops/dataset/convert/... ./graphops/tensor/..."
waiting() {
  GNB_SOAK=1 gotest notebooks -p=1 ./internal/nbtest/notebooks
  # shellcheck disable=SC2086 # words
  GNB_SOAK=1 gotest_cuda cuda -p=1 $cuda
}
under_race() { # the cases of "make test", because those of GNB_SOAK take many times as long under the race detector
  # shellcheck disable=SC2086 # words
  GNB_RACE=all gotest race -race -short -p=1 $raced
}
for ((round = 1; round == 1 || SECONDS < seconds; round++)); do
  background waiting
  background under_race
  # shellcheck disable=SC2086 # words
  GNB_SOAK=1 gotest test -p=$packages $soaked
  summarize $strict
  rm -f "$events"/*.* "$events"/skipped
  echo "round $round passed, $SECONDS s of $seconds"
done
bash scripts/release.sh
bash scripts/stranger.sh demo data lab doctor # "make test" as a stranger is what .ci/run runs in a fresh clone

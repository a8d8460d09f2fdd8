#!/usr/bin/env bash
# Repeats the tests that start and kill processes, in random order, until SOAK (default 10m) is over
# or one fails. Then it runs more tests under the race detector, the notebooks and the tests with -tags cuda,
# builds the binaries of a release (scripts/release.sh), and runs all steps of a newcomer in a fresh clone
# (scripts/stranger.sh).
set -euo pipefail
cd "$(dirname "$0")/.."
bash scripts/need.sh go python
bash scripts/venv.sh
export GNB_PYTHON=$PWD/.venv/bin/python3
export GNB_SOAK=1 # every fault at 20 random moments
soak=${SOAK:-10m}
case $soak in
  *h) seconds=$((${soak%h} * 3600)) ;;
  *m) seconds=$((${soak%m} * 60)) ;;
  *) seconds=${soak%s} ;;
esac
rounds=0
while [ "$SECONDS" -lt "$seconds" ]; do
  go test -count 1 -shuffle on ./multigpu/... ./gnb/... ./graphops/sample/... ./internal/nbtest
  rounds=$((rounds + 1))
  echo "round $rounds passed, $SECONDS s of $seconds"
done
# The tests that "make test" does not repeat under the race detector.
GNB_SOAK= go test -race -short -count 1 -timeout 60m ./gnb ./multigpu/...
# Compiles Kubeflow Trainer's controller, installs JupyterLab in an empty folder, and kills ranks under Slurm and mpirun.
go test -count 1 -run "TestTrainJobIsBuiltByTrainer|TestInstallScript|TestBatchScript|TestAgain" ./docker
# The notebooks as they are saved, and the cases on the interpreter of kernels that "make test" leaves out.
go test -count 1 -timeout 60m ./notebooks ./tutorials
if command -v "$(go env CC)" >/dev/null; then (. scripts/cuda-env.sh && go test -count 1 -timeout 60m -tags cuda ./cuda/...); fi
bash scripts/release.sh
bash scripts/stranger.sh

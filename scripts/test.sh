#!/usr/bin/env bash
# Every test. Ends with "N passed, N failed, N skipped", and succeeds when none failed. With CI=true or
# GNB_STRICT=1 no more tests may skip than .ci/skips.txt says; what this machine lacks does not count.
set -euo pipefail
cd "$(dirname "$0")/.."
bash scripts/need.sh go python
bash scripts/venv.sh
bash scripts/browser.sh || echo "the tests of notebooks in a browser are skipped" >&2
strict=()
if [ "${CI:-}" = true ] || [ "${GNB_STRICT:-}" = 1 ]; then strict=(-skips .ci/skips.txt); fi
# The NumPy checks run on it.
export GNB_PYTHON=$PWD/.venv/bin/python3
# The race detector's runtime waits a second at each process's end, in case a report is under way.
export GORACE=atexit_sleep_ms=50
# Where goroutines meet: these run once more under the race detector.
race=$(go list ./internal/parallel/... ./internal/mapped/... ./graphops/sample/... ./graphops/dataset/... \
  ./graphops/tensor/... ./multigpu/... ./gnb/internal/live/... ./gnb/runs ./gnb)
# What these tests start and wait for adds nothing to that, and takes minutes under it.
noRace='Identity|Foreign|Float16|Overwritten|PowerCut|NoFileOfA|TPE|Sobol|DirectoryWrittenAnew|InferWrites|FortyChanges|AreRefused|AnotherLibrary|NotBlock|RunDirOf|NoLabels|OptionsSay|GivenZeroes|Patience|TestDoctor|FlippedBits|PNG|Notebook|TestMemory$'
# The GPU's tests, but for packages without a file that the tag chooses.
cuda=$(go list ./cuda/... | grep -v -e /cuda/kernels$ -e /cuda/internal/ptx$)
# A browser wants the processors for itself.
alone=./internal/labtest
exec go run ./internal/testrun -budget .ci/budget.txt ${strict[@]+"${strict[@]}"} -alone "$alone" -cuda "${cuda//$'\n'/ }" -cudarace "./cuda ./cuda/nccl" -raceskip "$noRace" -race "${race//$'\n'/ }" ./...

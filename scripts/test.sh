#!/usr/bin/env bash
# Runs every test, or with the argument "race" some under the race detector, prints "N passed, N failed, N skipped", and
# succeeds if none failed. With CI=true or GNB_STRICT=1, at most as many tests as .ci/skips.txt allows may be skipped;
# skips for prerequisites that this machine lacks do not count.
set -euo pipefail
cd "$(dirname "$0")/.."
bash scripts/need.sh go python
. scripts/go-env.sh
bash scripts/venv.sh
strict=()
if [ "${CI:-}" = true ] || [ "${GNB_STRICT:-}" = 1 ]; then strict=(-skips .ci/skips.txt); fi
# The Python for the NumPy checks.
export GNB_PYTHON=$PWD/.venv/bin/python3
# One package more than there are cores, because many tests wait for processes, kernels and registries.
packages=$(($(getconf _NPROCESSORS_ONLN) + 1))
# -again 3: a stall of the machine does not lose a whole run. A test that timed out and passes alone is listed, to be mended,
# and counted; no other failure is tried again, so a difference of one bit fails the run even if it shows only once.
testrun=(go run ./internal/testrun -again 3 -slowest 20 -p "$packages" -budget .ci/budget.txt ${strict[@]+"${strict[@]}"})
if [ "${1:-}" = race ]; then
  # By default, the race detector waits a second at the end of each process for reports.
  export GORACE=atexit_sleep_ms=50
  # Packages whose code or tests start goroutines run once more under the race detector; it finds nothing in others. Package
  # tensor runs the operations of backendtest on several threads.
  race="./gnb $(grep -rlE --include='*.go' '^\s*go (func|[a-z]+[.(])|\.Go\(|\bparallel\.[A-Z]|t\.Parallel' \
    internal/parallel internal/mapped graphops/sample graphops/dataset graphops/datasets graphops/tensor multigpu gnb/internal/live gnb/internal/screen gnb/internal/plane gnb/internal/feed gnb/runs gnb/serve gnb/remote gnb/kg gnb/sweep |
    grep -v '/testdata/\|/backendtest/' | sed 's|^|./|; s|/[^/]*$||' | sort -u)"
  # These tests start other processes, or repeat what other tests have run: the race detector finds nothing more in
  # them and makes them take minutes. "make soak" runs them under it.
  noRace='Identity|Foreign|Float16|Overwritten|PowerCut|NoFileOfA|TPE|Sobol|DirectoryWrittenAnew|InferWrites|FortyChanges|AreRefused|AnotherLibrary|NotBlock|RunDirOf|NoLabels|OptionsSay|GivenZeroes|Patience|TestDoctor|FlippedBits|PNG|Notebook|TestMemory$|FoundAmong|KillMatrix|CompareLive|InfiniteOptimizer|TensorBoardAfter|SweepGoesOn|RemovedDirectory|Precision|NotesAreSaid|TestDevice$|Arxiv|RealGraphs|HostileWrapping|HostileArchives|Opposites$|TestReal$|LayerNormHasTheBits|PathsGiveEqualBits|DeviceHasTheBits|TestLook|MetricsDoNotDependOn|FullGraphOnAnyWorld|VirtualRanksInAnyProgram|FaultyProgram|DivergenceEnds|WorldSizeShows|LaborDigests|BeladyHits|CacheHits|UnevenShares|EmbeddingBits|EmbeddingLearns|EmbeddingAgainst|EmbeddingResume|VirtualRanksGiveEqualBits|MisuseIsASentence|TypedResume|ScheduleResumes|TypesInParts|SparseTypes|EdgeFeatures|EvaluateOnParts|EmbeddingOnParts|RestartsAtRandom|NotFiniteNames|InterruptCooperative|TestBestBy|TestSplitIsEvaluated|LogDrawn|JumpingKnowledge|TrainAverage|TestAccumulate|TrainOnTypes|OwnLoss|ClassWeights|TrainSchedules|TrainPlateau|RelationFanouts|LearnMissing|TestTrainLabor$|ShopProgram|EmbeddingEvaluation|EmbeddingReads|InferHidden|PlanAndScaling|EmbeddingPlan|PlannedMessages|SparseByExchange|LoadersTravel|TrainOnParts$|EmbeddingCooperative|BeladyChanges|WorkersFromEnvironment|OddRunsTrain|WhatDefaultsMean|ResumeWithOtherSizes|ProgramsOwnFailures|TestBatchesOf|StepsWithoutEpochs|LongRunsDoNotGrow|ReportsMicroF1|TrainDividedTopology|CooperativeIsOneWorker|CooperativeRounding|InProcesses|TestLevels$|IsNumPys$|RealWordnet|RealTriples|TestRoad$|^Example|TrainFromDisk/float16|TrainByExchange/1_worker|TrainByExchange/2_workers$|TrainByExchange/4_workers$|TrainByExchange/4_workers,_sampled|EveryCollectiveBetweenProcesses/^[12]$'
  exec "${testrun[@]}" -raceskip "$noRace" -race "${race//$'\n'/ }" -cudarace "./cuda ./cuda/nccl"
fi
bash scripts/browser.sh || echo "the tests of notebooks in a browser are skipped" >&2
bash scripts/cluster-tools.sh || true # says why not, and that their tests are skipped
# The packages with tests that -tags cuda selects.
cuda=$(grep -rl --include='*_test.go' '^//go:build cuda' cuda | sed 's|^|./|; s|/[^/]*$||' | sort -u)
# The tests of notebooks in a browser wait most, and run beside the others.
exec "${testrun[@]}" -beside ./internal/labtest -cuda "${cuda//$'\n'/ }" ./...

#!/usr/bin/env bash
# Changes one operator at a time in N (default 40) places drawn with SEED (default 1), and lists the changes that the quick
# tests of their package do not find. PKG chooses the packages.
set -euo pipefail
cd "$(dirname "$0")/.."
bash scripts/need.sh go
. scripts/go-env.sh
packages=${PKG:-./graphops/... ./gnb/internal/feed ./gnb/internal/plane ./gnb/internal/recipe ./gnb/internal/runfile ./gnb/internal/saving ./gnb/internal/tally ./multigpu/checkpoint ./internal/atomicfile ./internal/philox}
exec go run ./internal/mutate -n "${N:-40}" -seed "${SEED:-1}" $packages

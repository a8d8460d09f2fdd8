#!/usr/bin/env bash
# Runs the benchmarks: those that match BENCH (default all) in PKG (default all), COUNT times. A
# claim about speed takes COUNT=10 and benchstat.
set -euo pipefail
cd "$(dirname "$0")/.."
bash scripts/need.sh go
mkdir -p build
# One package after the other: side by side they would measure each other.
# shellcheck disable=SC2086 # PKG may list several packages
go test -p 1 -run '^$' -bench "${BENCH:-.}" -benchmem -count "${COUNT:-1}" ${PKG:-./...} | grep -v 'no test files' | tee build/bench.txt
echo "kept in build/bench.txt"

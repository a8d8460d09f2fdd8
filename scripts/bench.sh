#!/usr/bin/env bash
# Measures this machine's limits and the share of them that GraphNB reaches, then runs the Go
# benchmarks that match BENCH (default all) in PKG (default all), COUNT times. With BENCH or PKG set,
# only the benchmarks run. A claim about speed requires COUNT=10 and benchstat. The output is kept in
# build/bench.txt.
set -euo pipefail
cd "$(dirname "$0")/.."
bash scripts/need.sh go
mkdir -p build
shares() {
  go build -o build/gnb ./gnb/cmd/gnb
  for threads in 1 "$(nproc)"; do
    echo "# $threads threads"
    build/gnb bench limits --threads "$threads"
    build/gnb bench gemm --threads "$threads"
    build/gnb bench gemm --threads "$threads" --m 65536 --n 256 --k 128 --trans-b
    build/gnb bench gemm --threads "$threads" --m 256 --n 128 --k 65536 --trans-a
    build/gnb bench spmm --threads "$threads" --dataset 'rmat?scale=18&degree=28&features=0&classes=0'
    build/gnb bench gather --threads "$threads" --dataset 'rmat?scale=20&degree=16&features=128'
    build/gnb bench sample --threads "$threads" --dataset 'rmat?scale=20&degree=16&features=0&classes=0'
    build/gnb bench train --threads "$threads" --dataset 'rmat?scale=18&degree=16&features=128'
  done
  build/gnb bench allreduce
}
{
  if [ -z "${BENCH:-}${PKG:-}" ]; then shares; fi
  # One package at a time: in parallel, the benchmarks would slow each other down.
  # shellcheck disable=SC2086 # PKG may list several packages
  go test -p 1 -run '^$' -bench "${BENCH:-.}" -benchmem -count "${COUNT:-1}" ${PKG:-./...} | grep -v 'no test files'
} | tee build/bench.txt
echo "kept in build/bench.txt"

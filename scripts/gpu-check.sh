#!/usr/bin/env bash
# Everything on this machine's GPU: tests, training beside the CPU's, benchmarks. Results go to
# bench/results. With a bundle in build/gpu-check (scripts/gpu-bundle.sh) no Go is needed.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ ! -x build/gpu-check/gpucheck ]; then
  if [ -f build/gpu-check.tar.gz ]; then tar -C build -xzf build/gpu-check.tar.gz; else bash scripts/gpu-bundle.sh; fi
fi
exec build/gpu-check/gpucheck -out bench/results "$@"

#!/usr/bin/env bash
# Packs what a machine with a GPU needs for its check into build/gpu-check.tar.gz: the tests' binaries, gnb
# and gpucheck, built with -tags cuda. There it takes the driver, and cuBLAS and NCCL where they are: no
# network, no Go, no compiler.
set -euo pipefail
cd "$(dirname "$0")/.."
bash scripts/need.sh go
# shellcheck source=scripts/cuda-env.sh
. scripts/cuda-env.sh
dir=build/gpu-check
rm -rf "$dir"
mkdir -p "$dir"
for package in cuda cuda/cublas cuda/nccl cuda/backend cuda/sampler cuda/store; do
  go test -c -tags cuda -trimpath -ldflags='-s -w' -o "$dir/$(basename "$package").test" "./$package"
done
go build -tags cuda -trimpath -ldflags='-s -w' -o "$dir/gnb" ./gnb/cmd/gnb
CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o "$dir/gpucheck" ./cuda/internal/gpucheck
tar -C build -czf build/gpu-check.tar.gz gpu-check
bytes=$(stat -c %s build/gpu-check.tar.gz)
echo "build/gpu-check.tar.gz: $((bytes / 1000000)) MB; unpack it on the machine with the GPU and run gpu-check/gpucheck"
if [ "$bytes" -gt 60000000 ]; then
  echo "it is over 60 MB"
  exit 1
fi

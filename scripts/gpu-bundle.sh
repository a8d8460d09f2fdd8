#!/usr/bin/env bash
# Packs the check for a machine with a GPU into build/gpu-check.tar.xz: the test binaries, gnb, productslike and
# gpucheck, built with -tags cuda, ogbn-arxiv with features if GNB_DATA has it, and the digest of the sources. The
# machine needs only the driver, and cuBLAS and NCCL for their tests: no network, no Go, no compiler. With
# --interpreted the bundle also has a gnb that runs on the PTX interpreter, for a machine without a GPU.
set -euo pipefail
cd "$(dirname "$0")/.."
bash scripts/need.sh go
# shellcheck source=scripts/cuda-env.sh
. scripts/cuda-env.sh
dir=build/gpu-check
rm -rf "$dir"
mkdir -p "$dir"
{
  git rev-parse HEAD 2>/dev/null || echo "no-git"
  bash scripts/gpu-sources.sh
} >"$dir/COMMIT"
for package in cuda cuda/cublas cuda/nccl cuda/backend cuda/sampler cuda/store; do
  go test -c -tags cuda -trimpath -ldflags='-s -w' -o "$dir/$(basename "$package").test" "./internal/$package"
done
go build -tags cuda -trimpath -ldflags='-s -w' -o "$dir/gnb" ./gnb/cmd/gnb
CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o "$dir/gpucheck" ./internal/cuda/internal/gpucheck
CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o "$dir/productslike" ./bench/productslike
if [ "${1:-}" = --interpreted ]; then
  go build -tags 'cuda gnb_interpreted' -trimpath -ldflags='-s -w' -o "$dir/gnb-interpreted" ./gnb/cmd/gnb
fi
data=${GNB_DATA:-../shared/data}/ogbn_arxiv
if [ -d "$data/graphsaint" ]; then
  "$dir/gnb" data convert "$data/graphsaint" "$dir/data/arxiv" --undirected --features "one-hot:$data/gpt_preds/ogbn-arxiv.csv" >/dev/null
else
  echo "without ogbn-arxiv: there is no $data"
fi
tar -C build -c gpu-check | xz -T0 -5 >build/gpu-check.tar.xz
bytes=$(stat -c %s build/gpu-check.tar.xz)
echo "build/gpu-check.tar.xz: $((bytes / 1000000)) MB; unpack it on the machine with the GPU and run gpu-check/gpucheck"
if [ "$bytes" -gt 60000000 ]; then
  echo "it is over 60 MB"
  exit 1
fi

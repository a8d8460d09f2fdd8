#!/usr/bin/env bash
# Runs all checks on this machine's GPU: tests, training compared with the CPU, measurements; the arguments are
# gpucheck's flags. Results go to bench/results unless -out is given. With a bundle in build/gpu-check.tar.xz
# (scripts/gpu-bundle.sh), Go is not needed. A bundle of other sources is rebuilt if Go is installed, else refused.
set -euo pipefail
cd "$(dirname "$0")/.."
bundle=build/gpu-check
gpu=$(compgen -G '/proc/driver/nvidia/gpus/*' || compgen -G '/dev/nvidia[0-9]*' || true)
if [ ! -x $bundle/gpucheck ] && [ -f $bundle.tar.xz ]; then
  if command -v xz >/dev/null; then tar -C build -xJf $bundle.tar.xz; else python3 -m tarfile -e $bundle.tar.xz build; fi
fi
made=$(sed -n 2p $bundle/COMMIT 2>/dev/null || true)
here=$(bash scripts/gpu-sources.sh)
if [ "$made" != "$here" ] || { [ -z "$gpu" ] && [ ! -x $bundle/gnb-interpreted ] && command -v go >/dev/null; }; then
  if ! command -v go >/dev/null; then
    if [ -z "$made" ]; then echo "there is no bundle in $bundle.tar.xz, and no Go to make one: run \"make gpu-bundle\" where there is"; exit 1; fi
    echo "the bundle in $bundle.tar.xz is stale: it was made of commit $(head -1 $bundle/COMMIT) with other sources than those here; run \"make gpu-bundle\" where there is Go"
    exit 1
  fi
  bash scripts/gpu-bundle.sh $([ -n "$gpu" ] || echo --interpreted)
fi
args=("$@")
case " $* " in *" -out "* | *" -out="*) ;; *) args=(-out "$([ -n "$gpu" ] && echo bench/results || echo build/gpu-results)" "$@") ;; esac
exec $bundle/gpucheck "${args[@]}"

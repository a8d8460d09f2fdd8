#!/usr/bin/env bash
# Static binaries of gnb for every target of .goreleaser.yaml, in build/dist; nothing is published. It tests the
# binary for this machine by training on the smallest graph. It builds goreleaser into .bin, two minutes the first time.
set -euo pipefail
cd "$(dirname "$0")/.."
bash scripts/need.sh go
key=$(cat tools/release/go.mod tools/release/go.sum; go env GOVERSION)
if ! [ -x .bin/goreleaser ] || [ "$(cat .bin/goreleaser.stamp 2>/dev/null)" != "$key" ]; then
  echo "building goreleaser (two minutes the first time)"
  mkdir -p .bin
  GOBIN=$PWD/.bin GOWORK=off CGO_ENABLED=0 go -C tools/release install -ldflags=-s tool
  printf '%s' "$key" >.bin/goreleaser.stamp
fi
log=$(.bin/goreleaser check 2>&1 && .bin/goreleaser release --snapshot --clean 2>&1) || { printf '%s\n' "$log" >&2; exit 1; }
ls -l build/dist/*.tar.gz
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
gnb=("build/dist/gnb_$(go env GOOS)_$(go env GOARCH)"*/gnb)
GNB_HOME=$home "${gnb[0]}" version
GNB_HOME=$home GNB_RUNS=$home/runs "${gnb[0]}" train karate --epochs 5 --workers 2

#!/usr/bin/env bash
# Builds the tools that tools/go.mod pins into .bin. Once they are there, this takes no time.
set -euo pipefail
cd "$(dirname "$0")/.."
key=$(cat tools/go.mod tools/go.sum; go env GOVERSION)
stamp=.bin/tools.stamp
if [ -x .bin/golangci-lint ] && [ "$(cat "$stamp" 2>/dev/null)" = "$key" ]; then exit 0; fi
bash scripts/need.sh go
echo "building golangci-lint (a minute and a half the first time)"
mkdir -p .bin
GOBIN=$PWD/.bin GOWORK=off CGO_ENABLED=0 go -C tools install -ldflags=-s tool
printf '%s' "$key" > "$stamp"

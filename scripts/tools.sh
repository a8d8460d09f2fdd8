#!/usr/bin/env bash
# Builds the tools of "make check" into .bin, at the versions that the modules in tools pin. It skips tools
# that are already built.
set -euo pipefail
cd "$(dirname "$0")/.."
key=$(cat tools/go.{mod,sum} tools/actionlint/go.{mod,sum}; go env GOVERSION)
stamp=.bin/tools.stamp
if [ -x .bin/golangci-lint ] && [ -x .bin/actionlint ] && [ "$(cat "$stamp" 2>/dev/null)" = "$key" ]; then exit 0; fi
bash scripts/need.sh go
echo "building golangci-lint and actionlint (a minute and a half the first time)"
mkdir -p .bin
for module in tools tools/actionlint; do
  GOBIN=$PWD/.bin GOWORK=off CGO_ENABLED=0 GOGC=${GOGC:-400} go -C $module install -ldflags=-s tool
done
printf '%s' "$key" > "$stamp"

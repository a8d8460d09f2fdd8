#!/usr/bin/env bash
# Builds the tools of "make check" into .bin, at the versions that the modules in tools pin: gotestsum, and unless that is
# all that is asked for ("scripts/tools.sh gotestsum") golangci-lint and actionlint. It skips tools that are already built.
set -euo pipefail
cd "$(dirname "$0")/.."
modules=(tools/gotestsum)
if [ "${1:-}" != gotestsum ]; then modules+=(tools tools/actionlint); fi
for module in "${modules[@]}"; do
  stamp=.bin/${module//\//-}.stamp
  key=$(cat $module/go.{mod,sum}; go env GOVERSION)
  if [ "$(cat "$stamp" 2>/dev/null)" = "$key" ]; then continue; fi
  bash scripts/need.sh go
  echo "building the tools of $module ($([ $module = tools ] && echo "a minute and a half" || echo "some seconds"))"
  mkdir -p .bin
  GOBIN=$PWD/.bin GOWORK=off CGO_ENABLED=0 GOGC=${GOGC:-400} go -C $module install -ldflags=-s tool
  printf '%s' "$key" > "$stamp"
done

#!/usr/bin/env bash
# Runs every fuzz target for FUZZTIME (default 1m), one after the other. Go keeps a
# failing input under testdata/fuzz, and the tests run it from then on.
set -euo pipefail
cd "$(dirname "$0")/.."
bash scripts/need.sh go
failed=0
for pkg in $(go list ./...); do
  for target in $(go test -list '^Fuzz' "$pkg" | grep '^Fuzz' || true); do
    echo "$pkg $target"
    go test -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-1m}" -fuzzminimizetime 10x "$pkg" || failed=1
  done
done
exit $failed

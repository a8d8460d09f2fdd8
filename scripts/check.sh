#!/usr/bin/env bash
# The quick checks that a change should pass before it is committed. Each step runs even if an
# earlier one failed; the exit status is 1 if any failed.
set -uo pipefail
cd "$(dirname "$0")/.."
bash scripts/need.sh go || exit 1
bash scripts/tools.sh || exit 1
failed=()

step() { # name, command…
  local name=$1 start=$EPOCHREALTIME text
  shift
  if text=$("$@" 2>&1); then
    printf 'ok    %-12s' "$name"
  else
    printf 'FAIL  %-12s' "$name"
    failed+=("$name")
  fi
  awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf " %5.1f s\n", b - a }'
  if [[ " ${failed[*]:-} " == *" $name "* ]]; then printf '%s\n' "$text"; fi
}

with_cuda() { # command…
  (. scripts/cuda-env.sh && "$@")
}

step build go build ./...
step vet go vet ./...
step darwin env GOOS=darwin go vet ./...
step windows env GOOS=windows go build ./...
step arm64 env GOARCH=arm64 go build ./...
step lint .bin/golangci-lint run --allow-parallel-runners ./... # gofumpt and goimports too
if command -v "$(go env CC)" >/dev/null; then
  step cuda-vet with_cuda go vet -tags cuda ./cuda/... ./gnb/...
  step cuda-lint with_cuda .bin/golangci-lint run --allow-parallel-runners --build-tags cuda ./cuda/... ./gnb/...
else
  echo "skip  -tags cuda     no C compiler ($(go env CC))"
fi
step actions .bin/actionlint -shellcheck= -pyflakes= .github/workflows/*.yml
step imports go test -short ./internal/archtest
step tests go run ./internal/testrun -cuda ./cuda/... -short ./...

if [ ${#failed[@]} -gt 0 ]; then
  echo "make check: failed: ${failed[*]}"
  exit 1
fi

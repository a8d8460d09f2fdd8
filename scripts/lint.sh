#!/usr/bin/env bash
# Lints by .golangci.yml, with -tags cuda if there is a C compiler. "scripts/lint.sh quick" is the part in "make check": it
# leaves out staticcheck and vet's nilness, since these take much of the processor time. It uses -tags cuda for the
# packages that have files for this tag only: linting a package needs all that it imports compiled, with the same tags.
# Linting tests needs them compiled too: with two files of import paths, without and with -tags cuda, it leaves out the
# tests of other packages. "scripts/lint.sh" and "make lint" run everything.
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/go-env.sh
bash scripts/tools.sh || exit 1
set_of=()
if [ "${1:-}" = quick ]; then
  all=$(sed -n '/^  enable:/,/^  settings:/s/^    - //p' .golangci.yml | grep -vx staticcheck | paste -sd,)
  mkdir -p build
  sed '/enable: \[nilness\]/d' .golangci.yml > build/golangci-quick.yml
  set_of=(--enable-only "$all" --config build/golangci-quick.yml)
fi

lint() { GOGC=800 .bin/golangci-lint run --allow-parallel-runners ${set_of[@]+"${set_of[@]}"} "$@"; }

divided() { # file, package…: lints the packages, and the tests of those that the file lists; without a file, all tests
  local listed=${1:-/dev/null} status=0 all with without
  all=$(go list "${@:2}") || return
  mapfile -t with < <(if [ -n "$1" ]; then grep -Fxf "$listed" <<< "$all"; else echo "$all"; fi | sed "s|^$module|.|")
  mapfile -t without < <(if [ -n "$1" ]; then grep -vFxf "$listed" <<< "$all"; fi | sed "s|^$module|.|")
  if [ ${#with[@]} -gt 0 ]; then lint "${with[@]}" || status=1; fi
  if [ ${#without[@]} -gt 0 ]; then (set_of=("${set_of[@]/unused,/}") && lint --tests=false "${without[@]}") || status=1; fi # tests may use what nothing else does
  return $status
}

module=$(go list -m)
failed=0
if ! command -v "$(go env CC)" >/dev/null; then
  lint ./... || failed=1
elif [ "${1:-}" = quick ]; then
  divided "${2:-}" ./... || failed=1
  # shellcheck disable=SC2046 # words
  (. scripts/cuda-env.sh && GOFLAGS="$GOFLAGS -tags=cuda,grpcnotrace" divided "${3:-}" $(grep -rl --include='*.go' '^//go:build.*cuda' internal/cuda gnb/internal | sed 's|^|./|; s|/[^/]*$||' | sort -u)) || failed=1
else
  (. scripts/cuda-env.sh && lint --build-tags cuda,grpcnotrace ./...) || failed=1
  # Without -tags cuda, the linter sees the packages that have files for that case only.
  lint ./internal/cuda ./internal/cuda/cublas ./internal/cuda/nccl ./gnb/internal/device || failed=1
fi
if [ "${1:-}" = quick ]; then # the linters that "make lint" enables include the formats
  diff=$(.bin/golangci-lint fmt --diff) || failed=1
  if [ -n "$diff" ]; then
    printf '%s\n' "$diff" "run: .bin/golangci-lint fmt FILE…"
    failed=1
  fi
fi
exit $failed

#!/usr/bin/env bash
# The quick checks that a change should pass before it is committed. Each step runs even if an
# earlier one failed; the exit status is 1 if any failed. The tests run beside the other steps.
# scripts/lint.sh includes go vet; "make lint" lints more. "make test" checks the types for macOS;
# scripts/platforms.sh compiles for other platforms.
set -uo pipefail
cd "$(dirname "$0")/.."
bash scripts/need.sh go || exit 1
. scripts/go-env.sh
bash scripts/tools.sh || exit 1
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

step() { # name, command…: runs the command, and keeps what it prints for report
  local name=$1 start=$EPOCHREALTIME status=0
  shift
  "$@" > "$out/$name" 2>&1 || status=$?
  printf '%s %s %s\n' "$status" "$start" "$EPOCHREALTIME" > "$out/$name.status"
}

failed=()
report() { # name: prints the step's line, and its output if it failed
  local status start end word=ok
  read -r status start end < "$out/$1.status"
  if [ "$status" != 0 ]; then
    word=FAIL
    failed+=("$1")
  fi
  printf '%-5s %-12s %5.1f s\n' $word "$1" "$(awk -v a="$start" -v b="$end" 'BEGIN { print b - a }')"
  if [ $word = FAIL ]; then cat "$out/$1"; fi
}

run() { # name, command…
  step "$@"
  report "$1"
}

# The compiler reads CPATH itself. In CGO_CFLAGS, as scripts/mpi-env.sh sets it, the folders of MPI's headers would make
# the go command compile the standard library's packages with cgo, and all that import them, again.
vet_mpi() {
  CPATH=$("$mpicc" -show | tr ' ' '\n' | sed -n 's/^-I//p' | paste -sd:) go vet -tags mpi ./multigpu/mpi # the one package with files for this tag
}

# Linking and running the quick tests of a package that links many others takes longest. They run only if the last
# commit or a later change touches the package, or a package of this module that it or its tests import. "make test" runs
# them all.
many=200 # above it, linking takes 0.4 to 3.5 s of processor time; a test that imports only package testing links 124 packages

changed() { # prints the import paths of the packages that changed files belong to, and "all" if any package may have changed
  git diff --name-only HEAD~1 > "$out/diff" 2>/dev/null || echo go.mod > "$out/diff" # without history
  git ls-files --others --exclude-standard >> "$out/diff"
  if grep -qxE 'go\.(mod|sum)' "$out/diff"; then echo all; fi
  local folder
  sed -E 's|/testdata/.*|/|; s|/?[^/]*$||' "$out/diff" | sort -u | while read -r folder; do
    until [ -z "$folder" ] || compgen -G "$folder/*.go" >/dev/null; do
      case $folder in */*) folder=${folder%/*} ;; *) folder= ;; esac
    done
    echo "$module/$folder"
  done
}

near() { # flags and packages of go list: prints those of the packages whose quick tests run, and keeps the others in left
  go list -test -f '{{if not .ForTest}}{{.ImportPath}} {{len .Deps}} {{join .Imports " "}} {{join .TestImports " "}} {{join .XTestImports " "}}{{end}}' "$@" > "$out/imports" || return
  awk -v many=$many -v left="$out/left" '
    FILENAME == ARGV[1] { changed[$1]; next }
    $1 ~ /\.test$/ { links[substr($1, 1, length($1) - 5)] = $2; next }
    NF { for (i = 1; i <= NF; i++) if ($i in changed) near[$1] }
    END { for (p in links) if (links[p] <= many || p in near || "all" in changed) print p; else print p >> left }
  ' "$out/changed" "$out/imports" | sort
}

quick_tests() { # flags and packages of go test
  .bin/gotestsum --format pkgname-and-test-fails --format-hide-empty-pkg --hide-summary skipped --no-color -- \
    -short -vet=off -ldflags=-s '-toolexec=env GOGC=off GOMEMLIMIT=2GiB' -timeout=20m "$@"
}

tests() {
  local cuda= status=0
  if [ -n "$tagged" ] && command -v "$(go env CC)" >/dev/null; then
    (. scripts/cuda-env.sh && quick_tests -p=1 -tags="$tags" $tagged) &
    cuda=$!
  fi
  if [ -n "$plain" ]; then quick_tests -p="$packages" $plain || status=1; fi
  if [ -n "$cuda" ]; then wait $cuda || status=1; fi
  return $status
}

# compile compiles all packages, and the tests that run, which are only linked later. The compiler takes two thirds of the processor time if it collects its garbage only where it would use more
# than 2 GB.
compile() {
  local -x GOGC=off GOMEMLIMIT=2GiB
  go list -export -f '{{""}}' ./... | { grep . || true; } || return
  go list -export -test -f '{{""}}' $plain | { grep . || true; } || return
  if command -v "$(go env CC)" >/dev/null; then
    (. scripts/cuda-env.sh && go list -export -test -tags "$tags" -f '{{""}}' $tagged | { grep . || true; })
  fi
}

module=$(go list -m)
tags=cuda,grpcnotrace # this flag replaces the tag of scripts/go-env.sh
changed > "$out/changed"
touch "$out/left"

# The packages with tests that -tags cuda selects.
cuda=$(grep -rl --include='*_test.go' '^//go:build cuda' internal/cuda | sed 's|^|./|; s|/[^/]*$||' | sort -u)
# One package more than there are cores, because many tests wait for processes.
packages=$(($(getconf _NPROCESSORS_ONLN) + 1))
plain=$(near ./...) && tagged=$(near -tags "$tags" $cuda) || exit 1
echo "$plain" > "$out/plain"
echo "$tagged" > "$out/tagged"
run build compile
set -m # a process group of its own, so that Ctrl-C ends the tests too
step tests tests &
trap 'kill -- -$!; exit 130' INT TERM
set +m
if ! command -v "$(go env CC)" >/dev/null; then
  echo "skip  -tags cuda     no C compiler ($(go env CC))"
fi
run lint bash scripts/lint.sh quick "$out/plain" "$out/tagged"
mpicc=$(PATH=$PATH:$PWD/.cluster/openmpi/bin command -v mpicc || true)
if [ -n "$mpicc" ]; then
  run mpi vet_mpi
fi
run actions .bin/actionlint -shellcheck= -pyflakes= .github/workflows/*.yml
wait
report tests
if [ -s "$out/left" ]; then
  echo "left to make test: packages that link more than $many others, where neither they nor what they import changed since HEAD~1:"
  sed "s|^$module/||" "$out/left" | sort -u | paste -sd' ' | fold -s -w 120 | sed 's/^/  /'
fi

if [ ${#failed[@]} -gt 0 ]; then
  echo "make check: failed: ${failed[*]}"
  exit 1
fi

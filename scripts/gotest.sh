# To be sourced: runs tests by gotestsum, several "go test" beside each other, and sums them up.
bash scripts/tools.sh gotestsum
events=$(mktemp -d -t gnb.XXXXXX)
export TMPDIR=$events/tmp # of the tests; summarize lists what they leave in it
mkdir "$TMPDIR"
beside=() # running "go test" in the background
# With a process group of its own, a background job does not ignore Ctrl-C, and so can end.
trap 'for job in ${beside[@]+"${beside[@]}"}; do kill -- "-$job" 2>/dev/null; done; chmod -R u+w "$events"; rm -rf "$events"' EXIT
trap 'exit 130' INT TERM

# Flags of go test. The compiler takes two thirds of the processor time if it collects its garbage only where it would use
# more than 2 GB. "make check" vets, and no test reads symbols or a debugger's tables.
garbage='-toolexec=env GOGC=off GOMEMLIMIT=2GiB'
flags=(-vet=off -ldflags=-s "$garbage" -timeout=20m)
# One package more than there are cores, because many tests wait for processes, kernels and registries.
packages=$(($(getconf _NPROCESSORS_ONLN) + 1))
# The packages with tests that -tags cuda selects, and this flag, which replaces the tags of scripts/go-env.sh.
cuda=$(grep -rl --include='*_test.go' '^//go:build cuda' internal/cuda | sed 's|^|./|; s|/[^/]*$||' | sort -u)
tagged=-tags=cuda,grpcnotrace

# gotest NAME FLAG… PACKAGE…: runs "go test" with the flags. It prints a line for each package, with the name before it, and
# the output of failed tests, and keeps the events, the arguments and the environment for summarize.
gotest() {
  local name=$1
  shift
  printf '%s\0' "${flags[@]}" "$@" > "$events/$name.args"
  env -0 > "$events/$name.env"
  .bin/gotestsum --format pkgname-and-test-fails --format-hide-empty-pkg --hide-summary skipped,failed,output --no-color \
    --jsonfile "$events/$name.json" -- "${flags[@]}" "$@" 2>&1 | sed -u "/^DONE\|^$/d; s/^/$name: /" || echo "$name" >> "$events/failed"
}

# gotest_cuda NAME FLAG… PACKAGE…: the same with -tags cuda, if there is a C compiler.
gotest_cuda() {
  if command -v "$(go env CC)" >/dev/null; then
    (. scripts/cuda-env.sh && gotest "$1" $tagged "${@:2}")
  else
    echo "$1: skipped: there is no C compiler ($(go env CC))" | tee -a "$events/skipped"
  fi
}

# background COMMAND…: runs it beside what follows, until summarize.
background() {
  set -m
  "$@" </dev/null &
  beside+=($!)
  set +m
}

# compile compiles packages without their tests, because tests that start at the same time would each compile them.
compile() { go list -export -e -f '{{""}}' "$garbage" "$@" | { grep . || true; }; }

# summarize waits for all tests, and prints skips, the slowest tests and, last, "N passed, N failed, N skipped". It fails if a
# test failed or, with the argument strict, was skipped for another reason than a prerequisite that the machine lacks.
summarize() {
  wait
  beside=()
  python3 scripts/tests.py "$events" $SECONDS "$@"
}

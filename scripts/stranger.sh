#!/usr/bin/env bash
# Simulates a newcomer who clones this repository: another user without root, an empty home, no ../shared, no
# caches, the system's own Python and commands. It clones the commit that is checked out, runs the given steps
# there, and prints how long each took; the exit status is 1 if one failed.
#
#   scripts/stranger.sh [demo] [data] [lab] [doctor] [test]     default: all
#
#   demo    make demo
#   data    the tests that use the public graphs, which are absent: they must pass or skip
#   lab     make lab, until it prints its URL and a kernel completes names; then Ctrl-C must end all processes
#   doctor  gnb doctor, with the kernel that an earlier step installed
#   test    make test
#
# Run by root, it uses the user "nobody"; otherwise, the current user. Modules come from this machine's module
# cache, through a server that acts as a module proxy, and then from the proxy in GOPROXY.
set -euo pipefail
cd "$(dirname "$0")/.."
bash scripts/need.sh go python make
if [ $# -eq 0 ]; then set -- demo data lab doctor test; fi
for step; do
  case $step in
    demo | data | doctor | lab | test) ;;
    *) sed -n 's/^#   \(scripts\)/\1/p' "$0" >&2; exit 2 ;;
  esac
done

place=$(mktemp -d "${TMPDIR:-/tmp}/stranger-XXXXXX")
clone=$place/empty/graphnb # nothing else is in "empty"
server=
# shellcheck disable=SC2317 # the trap calls it
end() {
  if [ -n "$server" ]; then kill "$server" 2>/dev/null || true; fi
  chmod -R u+w "$place" 2>/dev/null || true
  rm -rf "$place"
}
trap end EXIT
trap 'exit 130' INT TERM

become=()
if [ "$(id -u)" = 0 ]; then become=(setpriv --reuid=nobody --regid="$(id -g nobody)" --clear-groups --inh-caps=-all); fi
mkdir -p "$place/empty" "$place/home" "$place/tmp"
git -c safe.directory='*' clone --quiet --no-local "file://$PWD" "$clone"
if [ "$(id -u)" = 0 ]; then chown -R nobody "$place"; fi
chmod 755 "$place"

# A newcomer has no commands in this user's own directories.
paths=''
IFS=: read -ra all <<<"$PATH"
for dir in "${all[@]}"; do
  case $dir in "$HOME"/*) continue ;; esac
  if "${become[@]}" test -x "$dir" 2>/dev/null; then paths=$paths${paths:+:}$dir; fi
done
environment=(HOME="$place/home" PATH="$paths" TMPDIR="$place/tmp" USER=nobody LOGNAME=nobody LANG=C.UTF-8)
# Keep this machine's settings for reaching the package registries.
for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE NODE_EXTRA_CA_CERTS \
  PIP_CERT PIP_INDEX_URL PIP_FIND_LINKS PIP_DEFAULT_TIMEOUT GONOSUMDB GOSUMDB GOPRIVATE GNB_CHROMIUM; do
  if [ -n "${!name:-}" ]; then environment+=("$name=${!name}"); fi
done
cache=$(go env GOMODCACHE)/cache/download
if [ -d "$cache" ]; then
  mkfifo "$place/port"
  python3 - "$cache" >"$place/port" <<'PY' &
import functools, http.server, sys
class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_): pass
s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=sys.argv[1]))
print(s.server_address[1], flush=True)
s.serve_forever()
PY
  server=$!
  read -r port <"$place/port"
  environment+=("GOPROXY=http://127.0.0.1:$port,$(go env GOPROXY)")
fi

as() { (cd "$clone" && exec "${become[@]}" env -i "${environment[@]}" "$@" <"${stdin:-/dev/null}"); }

if ! as go version >/dev/null || ! as bash scripts/need.sh go python make; then
  echo "skipped: a stranger on this machine has not what the README asks for; its go and python3 must not be in $HOME"
  exit 0
fi
echo "a stranger: $(as id -un 2>/dev/null || id -u), $(as go version), $(as "$(as bash scripts/python.sh)" -V), commit $(git rev-parse --short HEAD)"

# left prints the processes that run in the clone or from its files.
left() {
  local p dir
  for p in /proc/[0-9]*; do
    dir=$(readlink "$p/cwd" 2>/dev/null || true)
    case $dir in "$place"*) printf '%s %s\n' "${p#/proc/}" "$(tr '\0' ' ' <"$p/cmdline" 2>/dev/null | cut -c 1-100)" ;; esac
  done
}

demo() { as make demo; }
doctor() {
  local name=graphnb
  if ! [ -e "$clone/.venv/share/jupyter/kernels/graphnb" ]; then name=graphnb-demo; fi
  as go run ./gnb/cmd/gnb doctor --prefix .venv --name $name 2>&1 | grep -v -e nvml -e cgo-gcc -e '^ *[0-9]* |' -e '^ *|'
}
# data_tests prints, for the tests in graphops and gnb that use the public graphs, the pattern of their names and their
# packages. A function of the tests uses them if it calls testneed.RealData or testneed.DataDir, or a function of the
# tests of its package that uses them.
data_tests() {
  python3 - <<'PY'
import collections, glob, os, re
bodies = collections.defaultdict(dict)  # of the functions, by package
for file in glob.glob("graphops/**/*_test.go", recursive=True) + glob.glob("gnb/**/*_test.go", recursive=True):
    with open(file) as f:
        for name, body in re.findall(r"^func (\w+)(.*?)^}", f.read(), re.S | re.M):
            bodies[os.path.dirname(file)][name] = body
tests, packages = [], []
for package, functions in sorted(bodies.items()):
    using = {name for name, body in functions.items() if re.search(r"testneed\.(RealData|DataDir)\b", body)}
    while True:
        more = {name for name, body in functions.items() if any(re.search(rf"(?<![.\w]){u}\(", body) for u in using)} - using
        if not more:
            break
        using |= more
    found = sorted(name for name in using if name.startswith("Test"))
    if found:
        packages.append("./" + package)
        tests += found
print("^(" + "|".join(sorted(set(tests))) + ")$", *packages)
PY
}
data() {
  local pattern packages
  read -r pattern packages < <(data_tests)
  # shellcheck disable=SC2086 # words
  as env "GNB_PYTHON=$clone/.venv/bin/python3" go test -v -timeout=20m -run "$pattern" $packages >"$place/data.log" || { grep -v '^ *--- PASS\|^=== ' "$place/data.log"; return 1; }
  grep -q ' needs data: ' "$place/data.log" || { echo "no test did without the public graphs"; return 1; }
}
whole() { as make test; }

lab() {
  local log=$place/lab.log url='' pid start=$SECONDS status=0
  echo y >"$place/yes" # JupyterLab asks after Ctrl-C
  set -m               # a process group of its own, as in a terminal
  # A shell's background job, as this script may be, ignores Ctrl-C, and so would Lab.
  stdin=$place/yes as env --default-signal=INT make lab ARGS="--no-browser --port=0" >"$log" 2>&1 &
  pid=$!
  set +m
  while [ -z "$url" ] && kill -0 $pid 2>/dev/null && [ $((SECONDS - start)) -lt 900 ]; do
    sleep 0.5
    url=$(grep -oE 'http://127\.0\.0\.1:[0-9]+/[^ ]*token=[^ ]*' "$log" | head -n 1 || true)
  done
  if [ -n "$url" ]; then
    echo "its URL after $((SECONDS - start)) s"
    as .venv/bin/python3 internal/nbtest/complete.py --patience 900 --kernel graphnb 'import "github.com/graphnb/graphnb/gnb"

%%
ds := gnb.Must(gnb.Lo|)' >"$place/names" || status=1
    if grep -q '"Load"' "$place/names"; then echo "names complete after $((SECONDS - start)) s"; else
      echo "names do not complete: $(cat "$place/names")"
      status=1
    fi
  else
    echo "it printed no URL"
    status=1
  fi
  kill -INT -- -$pid 2>/dev/null || true # Ctrl-C
  for _ in {1..200}; do
    if ! kill -0 -- -$pid 2>/dev/null && [ -z "$(left)" ]; then break; fi
    sleep 0.1
  done
  if [ -n "$(left)" ]; then
    echo "left 20 s after Ctrl-C:"
    left
    kill -KILL -- -$pid 2>/dev/null || true
    status=1
  fi
  if [ $status != 0 ]; then tail -n 40 "$log"; fi
  return $status
}

failed=()
for step; do
  start=$SECONDS
  name=$step
  if [ "$step" = test ]; then step=whole; fi
  echo "== $name"
  if $step; then
    echo "== $name: ok, $((SECONDS - start)) s"
  else
    echo "== $name: FAILED after $((SECONDS - start)) s"
    failed+=("$name")
  fi
done
if [ ${#failed[@]} -gt 0 ]; then
  echo "scripts/stranger.sh: failed: ${failed[*]}"
  exit 1
fi

#!/usr/bin/env bash
# Installs what notebooks need. make, the tests and the images all call this script.
#
#   docker/install.sh python VENV LIST      a virtual environment with the pinned packages of LIST
#   docker/install.sh kernel VENV [FLAG…]   the kernel "Go (GraphNB)" in it, and gnb, built with the Go
#                                           on PATH: GoNB, goimports and gopls at the versions pinned in
#                                           gnb/cmd/gnb/internal/kernel/tools.mod; flags are those of gnb install
#   docker/install.sh lab VENV [FLAG…]      everything that an image has: JupyterLab (docker/requirements.txt),
#                                           the kernel, and gnb in VENV/bin
#
# Parts already installed from the same list, sources and Go are kept; a run then takes seconds. Go
# itself must be installed already: scripts/need.sh says how, and the images copy it.
set -euo pipefail
here=$PWD
cd "$(dirname "$0")/.."
root=$PWD

usage() {
  sed -n 's/^#   \(docker.*\)/\1/p' "$root/docker/install.sh" >&2
  exit 2
}

environment() { # venv
  local venv=$1
  if ! moved "$venv" && [ -x "$venv/bin/python3" ] && "$venv/bin/python3" -c 'import pip' 2>/dev/null; then return; fi
  bash scripts/need.sh python
  rm -rf "$venv"
  "$(bash scripts/python.sh)" -m venv "$venv"
  echo "$venv" > "$venv/place.stamp"
}

# The programs in an environment begin with the path of its Python, so they fail after the environment was moved or
# copied. An environment that another program made has no place.stamp and counts as not moved.
moved() { # venv
  [ -f "$1/place.stamp" ] && [ "$(cat "$1/place.stamp")" != "$1" ]
}

python() { # venv, list
  local venv=$1 list=$2 stamp
  stamp=$venv/$(tr / - <<<"${list#"$root/"}").stamp # one stamp per list
  if ! moved "$venv" && [ -x "$venv/bin/python3" ] && cmp -s "$list" "$stamp"; then return; fi
  echo "making ${venv#"$root/"} with the packages of ${list#"$root/"}"
  environment "$venv"
  rm -f "$stamp"
  # Python compiles a module at its first import; most modules are never imported.
  if ! "$venv/bin/python3" -m pip install --quiet --disable-pip-version-check --no-compile --requirement "$list"; then
    echo "pip could not install what $list lists; it needs the Python Package Index, or a mirror set with PIP_INDEX_URL" >&2
    exit 1
  fi
  cp "$list" "$stamp"
}

# compile builds gnb as DIR/gnb, and shows how far it is: with empty caches this takes minutes.
compile() { # dir, whether this is the first time
  local log=$1/log total=0 build n start=$SECONDS said=0 bar
  trap 'kill $build 2>/dev/null; exit 130' INT TERM # a shell's background programs do not get Ctrl-C
  if [ "$2" = first ]; then
    # The packages that are not in Go's cache yet; to list them gets the modules.
    go list -deps -f '{{if .Stale}}x{{end}}' ./gnb/cmd/gnb >"$1/stale" 2>"$log" &
    build=$!
    while kill -0 $build 2>/dev/null; do
      progress "getting Go modules: $(grep -c downloading "$log" || true) so far"
      sleep 0.3
    done
    if ! wait $build; then
      progress
      cat "$log" >&2
      return 1
    fi
    total=$(grep -c x "$1/stale" || true)
  fi
  GOGC=${GOGC:-400} go build -v -buildvcs=false -ldflags=-s -o "$1/gnb" ./gnb/cmd/gnb >"$log" 2>&1 &
  build=$!
  while kill -0 $build 2>/dev/null; do
    n=$(grep -c '^[a-z][^ :]*$' "$log" || true)
    if [ "$total" -gt 0 ]; then
      if [ "$n" -gt "$total" ]; then n=$total; fi
      bar=$(printf '%24s' '' | tr ' ' '#')
      bar=${bar:0:24*n/total}
      progress "compiling gnb [$(printf '%-24s' "$bar" | tr ' ' .)] $n of $total packages"
    else
      progress "compiling gnb, $n packages"
    fi
    sleep 0.3
  done
  if ! wait $build; then
    progress
    grep -v '^[a-z][^ :]*$' "$log" >&2 || true
    return 1
  fi
  progress
  trap - INT TERM
  if [ $((SECONDS - start)) -gt 5 ]; then echo "compiled gnb in $((SECONDS - start)) s"; fi
}

# progress shows a line in place of the last one if this is a terminal; else the first line and then one in 20 s. Without
# a text it removes the line. start and said are compile's.
progress() { # [text]
  if [ -t 2 ]; then
    printf '\r\033[K%s' "${1:+$1, $((SECONDS - start)) s}" >&2
  elif [ $# -gt 0 ] && [ $((SECONDS - start)) -ge $said ] && [ $((SECONDS - start)) -ge 3 ]; then
    echo "$1, $((SECONDS - start)) s"
    said=$((SECONDS - start + 20))
  fi
}

kernel() { # venv, flags of gnb install
  local venv=$1
  shift
  bash scripts/need.sh go
  . scripts/go-env.sh
  # Build first, and show the compiler's output only on failure: the C compiler prints pages of warnings about NVIDIA's header.
  local exe status=0
  exe=$(mktemp -d)
  # The go command does not link again a program that it finds at its place, built from the same sources.
  if cp "$venv/share/jupyter/graphnb/bin/gnb" "$exe/gnb" 2>/dev/null && ! "$exe/gnb" version >/dev/null 2>&1; then rm "$exe/gnb"; fi
  local once=first
  if [ -e "$venv/share/jupyter/graphnb/bin/gnb" ]; then once=again; fi
  compile "$exe" $once || status=1
  if [ $status = 0 ]; then "$exe/gnb" install --prefix "$venv" --dev "$root" "$@" || status=$?; fi
  rm -rf "$exe"
  return $status
}

lab() { # venv, flags of gnb install
  environment "$1"
  # Run both at once: pip mostly waits for the network, Go uses the processor.
  local pip failed=0
  python "$1" "$root/docker/requirements.txt" &
  pip=$!
  kernel "$@" || failed=1
  wait $pip || failed=1
  if [ $failed = 1 ]; then return 1; fi
  ln -sf ../share/jupyter/graphnb/bin/gnb "$1/bin/gnb"
  # Do not fetch news from jupyter.org, and do not ask whether to. Wait for the kernel's answer to Tab.
  mkdir -p "$1/share/jupyter/lab/settings"
  echo '{"@jupyterlab/apputils-extension:notification": {"fetchNews": "false"}, "@jupyterlab/completer-extension:manager": {"providerTimeout": 5000}}' >"$1/share/jupyter/lab/settings/overrides.json"
  mkdir -p "$1/etc/jupyter"
  cp "$root/docker/jupyter_server_config.py" "$1/etc/jupyter/"
}

# An environment reached through a symbolic link gets programs with the path of the directory itself, so that they run
# after the link is gone.
physical() { # an absolute path
  if [ -d "$1" ]; then (cd "$1" && pwd -P); else echo "$1"; fi
}

absolute() { # a path, relative to the caller's directory
  case $1 in /*) echo "$1" ;; *) echo "$here/$1" ;; esac
}

if [ $# -lt 2 ]; then usage; fi
step=$1 venv=$(physical "$(absolute "$2")")
shift 2
case $step in
  python)
    if [ $# -ne 1 ]; then usage; fi
    python "$venv" "$(absolute "$1")"
    ;;
  kernel) kernel "$venv" "$@" ;;
  lab) lab "$venv" "$@" ;;
  *) usage ;;
esac

#!/usr/bin/env bash
# "make lab": JupyterLab with the kernel "Go (GraphNB)" of this checkout, at a copy of notebooks/quickstart.ipynb.
# It installs its requirements into .venv (minutes the first time, later seconds; it says what it does), copies the
# notebooks into my-notebooks (scripts/copies.sh), prints the URL, and opens a browser if there is one. The first time, it builds gopls, which completes names, while Lab
# already runs (build/editor.log); kernels use it once it is built. Arguments are passed to "jupyter lab".
# Ctrl-C ends Lab and its kernels.
set -euo pipefail
cd "$(dirname "$0")/.."
bash scripts/need.sh go python
bash docker/install.sh lab .venv --editor-later
editor=.venv/share/jupyter/graphnb/bin/editor

# build_editor builds gopls beside Lab, at low priority, and ends with it: this shell becomes Lab below.
build_editor() {
  local log=build/editor.log lab=$$ build
  mkdir -p build
  set -m # a process group of its own, which can be ended whole
  nice -n 10 bash docker/install.sh kernel .venv >$log 2>&1 </dev/null &
  build=$!
  while kill -0 $build 2>/dev/null; do
    if ! kill -0 "$lab" 2>/dev/null; then
      kill -- -$build 2>/dev/null || true
      return
    fi
    sleep 1
  done
  if wait $build; then
    echo "gopls is built: Tab completes names, Shift+Tab shows their documentation"
  else
    echo "gopls could not be built, so Tab completes only the names of GraphNB's packages; see the end of $log; the next \"make lab\" tries again" >&2
  fi
}
if ! [ -e $editor/tools.stamp ]; then
  echo "gopls, which completes names, is being built while Lab runs (some three minutes, this once)"
  build_editor &
fi

bash scripts/copies.sh
export JUPYTER_PREFER_ENV_PATH=1 # a kernel of the same name that the user has is not this checkout's
args=(--ServerApp.root_dir="$PWD" --LabApp.default_url=/lab/tree/my-notebooks/quickstart.ipynb --ip=127.0.0.1 --log-level=WARN)
if [ "$(id -u)" = 0 ]; then args+=(--allow-root); fi
# A server without a display has no browser to open; the URL is printed either way.
if [ "$(uname)" = Linux ] && [ -z "${DISPLAY:-}${WAYLAND_DISPLAY:-}${BROWSER:-}" ]; then args+=(--no-browser); fi
exec .venv/bin/jupyter lab "${args[@]}" "$@"

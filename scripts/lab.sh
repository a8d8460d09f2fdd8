#!/usr/bin/env bash
# "make lab": JupyterLab with the kernel "Go (GraphNB)" of this checkout, at notebooks/explore.ipynb.
# It makes what it needs in .venv the first time (two minutes; later seconds), prints the URL, and
# opens a browser where there is one. Arguments go to "jupyter lab". Ctrl-C ends it and its kernels.
set -euo pipefail
cd "$(dirname "$0")/.."
bash scripts/need.sh go python
bash scripts/venv.sh
bash docker/install.sh lab .venv
export JUPYTER_PREFER_ENV_PATH=1 # a kernel of the same name that the user has is not this checkout's
args=(--ServerApp.root_dir="$PWD" --LabApp.default_url=/lab/tree/notebooks/explore.ipynb --ip=127.0.0.1 --log-level=WARN)
if [ "$(id -u)" = 0 ]; then args+=(--allow-root); fi
# A server without a display has no browser to open; the URL is printed either way.
if [ "$(uname)" = Linux ] && [ -z "${DISPLAY:-}${WAYLAND_DISPLAY:-}${BROWSER:-}" ]; then args+=(--no-browser); fi
exec .venv/bin/jupyter lab "${args[@]}" "$@"

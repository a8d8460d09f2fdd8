#!/usr/bin/env bash
# "make notebooks": executes all notebooks and tutorials in the real kernel, without a browser, and saves their
# outputs in them (internal/nbtest/save.py selects which). Tutorials run at their small size. Arguments
# choose notebooks: scripts/notebooks.sh notebooks/sweep.ipynb …; --full before them runs tutorials on their
# real datasets, without a time limit, and --with DIR gives the notebook a folder beside it. Nothing else should run meanwhile, because the outputs show times.
# A failing notebook is left unchanged; the others are still executed, and the exit status is 1.
set -euo pipefail
cd "$(dirname "$0")/.."
bash scripts/need.sh go python
bash scripts/venv.sh
python=$PWD/.venv/bin/python3
bash docker/install.sh kernel .venv --name graphnb-saved --display "Go (GraphNB, saved)" --raw-error --headless >/dev/null
full='' limit=1800
if [ "${1:-}" = --full ]; then
  full=1 limit=86400
  shift
fi
extra=''
if [ "${1:-}" = --with ]; then
  extra=$(realpath "$2")
  shift 2
fi
if [ $# -eq 0 ]; then set -- notebooks/*.ipynb tutorials/*.ipynb; fi
# Variables whose values may differ in a reader's environment.
unset GNB_SMALL GNB_RUNS GNB_HEADLESS GNB_WORKERS GNB_THREADS
if [ -z "$full" ]; then unset GNB_DATA GNB_HOME; fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=()
for notebook; do
  name=$(basename "$notebook" .ipynb)
  echo "running $notebook"
  mkdir -p "$work/$name/here"
  if [ -n "$extra" ]; then ln -s "$extra" "$work/$name/here/"; fi
  settings=()
  if [ -z "$full" ]; then settings+=("GNB_HOME=$work/$name/home"); fi
  if [[ $notebook == *tutorials/* ]]; then settings+=(GNB_WORKERS=2); fi
  if [[ $notebook == *tutorials/* ]] && [ -z "$full" ]; then settings+=(GNB_SMALL=1); fi
  if env ${settings[@]+"${settings[@]}"} "$python" internal/nbtest/run.py --kernel graphnb-saved --dir "$work/$name/here" --out "$work/$name/out.ipynb" \
    --summary "$work/$name/summary.json" --timeout $limit "$notebook" &&
    "$python" internal/nbtest/save.py --source "$notebook" --executed "$work/$name/out.ipynb" \
      --place "$work/$name/here" --place "$work/$name/home" ${extra:+--place "$(dirname "$extra")"} --place "$PWD"; then
    "$python" -c 'import json, sys; print("done in %.0f s" % json.load(open(sys.argv[1]))["seconds"])' "$work/$name/summary.json"
  else
    "$python" -c 'import json, sys; print(json.load(open(sys.argv[1]))["failure"])' "$work/$name/summary.json" >&2 || true
    failed+=("$notebook")
  fi
  rm -rf "${work:?}/$name"
done
if [ ${#failed[@]} -gt 0 ]; then
  echo "not saved: ${failed[*]}" >&2
  exit 1
fi

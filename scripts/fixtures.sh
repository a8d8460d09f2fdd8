#!/usr/bin/env bash
# "make fixtures": recomputes with PyTorch and PyTorch Geometric the expected results of the tests of
# packages nn, optim, kge and pairs (graphops/*/testdata/*.json, and with kg/umls of GNB_DATA
# gnb/kg/testdata/steps.json), in a separate virtual environment, build/fixtures. That takes
# some minutes and 1 GB with PyTorch's CPU-only wheel, more if only PyPI is reachable.
# FIXTURES_PYTHON names a Python that already has torch, torch_geometric and safetensors. Then it runs the tests
# that need PyG itself: they load weights trained by GraphNB into PyG. It does the same for TensorBoard
# (internal/tbevents), in build/tensorboard; TENSORBOARD_PYTHON names a Python that has it.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${FIXTURES_PYTHON:-}
if [ -z "$python" ]; then
  bash scripts/need.sh python
  venv=build/fixtures
  python=$venv/bin/python3
  stamp=$venv/requirements.stamp
  list=graphops/nn/testdata/requirements.txt
  if ! [ -x "$python" ] || ! cmp -s "$list" "$stamp"; then
    rm -rf "$venv"
    python3 -m venv "$venv"
    pip=("$python" -m pip install --quiet --disable-pip-version-check)
    torch=$(grep '^torch==' "$list")
    "${pip[@]}" --index-url https://download.pytorch.org/whl/cpu "$torch" 2>/dev/null || "${pip[@]}" "$torch"
    "${pip[@]}" --requirement "$list"
    cp "$list" "$stamp"
  fi
fi
for f in pytorch:pytorch sparseadam:sparseadam pyg_fixtures:pyg pyg_typed:pyg_typed; do
  out=graphops/nn/testdata/${f#*:}.json
  "$python" -W ignore "graphops/nn/testdata/${f%:*}.py" > "$out.tmp"
  mv "$out.tmp" "$out"
  echo "wrote $out"
done
for f in graphops/nn/testdata/crossentropy graphops/optim/testdata/schedules graphops/optim/testdata/averages; do
  "$python" -W ignore $f.py > $f.json.tmp
  mv $f.json.tmp $f.json
  echo "wrote $f.json"
done
for f in graphops/pairs graphops/kge; do
  "$python" -W ignore $f/testdata/losses.py > $f/testdata/losses.json.tmp
  mv $f/testdata/losses.json.tmp $f/testdata/losses.json
  echo "wrote $f/testdata/losses.json"
done
kge=graphops/kge/testdata/pyg
"$python" -W ignore $kge.py > $kge.json.tmp
mv $kge.json.tmp $kge.json
echo "wrote $kge.json"
umls=${GNB_DATA:-../shared/data}/kg/umls
if [ -f "$umls/train.txt" ]; then # the losses of gnb/kg's first steps
  bash scripts/need.sh go
  converted=$(mktemp -d)
  go run ./gnb/cmd/gnb data convert "$umls" "$converted/umls" > /dev/null
  "$python" -W ignore gnb/kg/testdata/steps.py "$converted/umls" > gnb/kg/testdata/steps.json.tmp
  mv gnb/kg/testdata/steps.json.tmp gnb/kg/testdata/steps.json
  rm -r "$converted"
  echo "wrote gnb/kg/testdata/steps.json"
fi
FIXTURES_PYTHON=$(command -v "$python") && export FIXTURES_PYTHON
case $FIXTURES_PYTHON in /*) ;; *) FIXTURES_PYTHON=$PWD/$FIXTURES_PYTHON ;; esac
bash scripts/need.sh go
go test -count 1 -tags fixtures -run TestPyGRunsTheLines ./gnb/runs
echo "wrote gnb/runs/testdata/pyg"
go test -count 1 -tags fixtures -run 'PyG|PyTorch' ./graphops/nn ./graphops/optim ./graphops/kge ./graphops/pairs
tensorboard=${TENSORBOARD_PYTHON:-}
if [ -z "$tensorboard" ]; then
  tensorboard=$PWD/build/tensorboard/bin/python3
  if ! "$tensorboard" -c 'import tensorboard' 2>/dev/null; then
    rm -rf build/tensorboard
    python3 -m venv build/tensorboard
    "$tensorboard" -m pip install --quiet --disable-pip-version-check tensorboard==2.21.0
  fi
fi
events=internal/tbevents/testdata
"$tensorboard" -W ignore $events/fixture.py write $events/fixture.tfevents
echo "wrote $events/fixture.tfevents"
TENSORBOARD_PYTHON=$tensorboard go test -count 1 -tags fixtures -run TestTensorBoardReadsRuns ./gnb

#!/usr/bin/env bash
# "make demo": runs notebooks/quickstart.ipynb in the real kernel, without a browser; it needs only
# Go, Python 3 and make. It writes the executed notebook and an HTML page of it to build/demo, and
# prints both files' names and the accuracies from the notebook's last cell:
#
#	SAGE accuracy: 96.0 %
#	MLP accuracy: 61.2 %
#
# The graph must matter: SAGE reaches at least 85 %, and the MLP, on the same features without the
# graph, stays between 50 and 65 %.
set -euo pipefail
cd "$(dirname "$0")/.."
bash scripts/need.sh go python make
bash scripts/venv.sh
out=$PWD/build/demo
mkdir -p "$out"
python=$PWD/.venv/bin/python3
bash docker/install.sh kernel .venv --name graphnb-demo --display "Go (GraphNB, demo)" --raw-error --headless >/dev/null

echo "running notebooks/quickstart.ipynb"
rm -f "$out"/quickstart.*
"$python" internal/nbtest/run.py --kernel graphnb-demo --dir "$out" --out "$out/quickstart.ipynb" \
  --summary "$out/quickstart.json" --timeout 300 notebooks/quickstart.ipynb
"$python" - "$out" <<'PY'
import os, subprocess, sys
out = sys.argv[1]
# The executed notebook names the kernel that users have.
import nbformat
path = os.path.join(out, "quickstart.ipynb")
nb = nbformat.read(path, as_version=4)
nb.metadata["kernelspec"] = {"name": "graphnb", "display_name": "Go (GraphNB)", "language": "go"}
nbformat.write(nb, path)
done = subprocess.run([sys.executable, "-m", "nbconvert", "--to", "html", "--log-level", "ERROR", path], capture_output=True, text=True)
if done.returncode:
    sys.exit("nbconvert could not make the page:\n" + done.stderr)
PY

"$python" - "$out/quickstart.json" build/demo/quickstart.ipynb build/demo/quickstart.html <<'PY'
import json, re, sys
summary, *files = sys.argv[1:]
text = "".join(c["stdout"] for c in json.load(open(summary))["cells"])
wanted = {"SAGE": (85, 100), "MLP": (50, 65)}
found, wrong = {}, []
for name, (low, high) in wanted.items():
    lines = re.findall(rf"^{name} accuracy: ([0-9.]+) ?%", text, re.M)
    if not lines:
        wrong.append(f"the notebook did not print \"{name} accuracy: …\"")
        continue
    found[name] = float(lines[-1])
    if not low <= found[name] <= high:
        wrong.append(f"the {name} accuracy of {found[name]:.1f} % is not between {low} and {high} %")
for f in files:
    print(f)
for name, value in found.items():
    print(f"{name} accuracy: {value:.1f} %")
if wrong:
    sys.exit("make demo: " + "; ".join(wrong))
PY

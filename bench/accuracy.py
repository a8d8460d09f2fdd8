"""Measures the test accuracies of docs/accuracy.md and records them in bench/results/accuracy.json.

usage: python3 bench/accuracy.py GNB [ROW...]      rows by their ids, default all

Each row trains one model with several seeds, or on several splits, and takes the test accuracy at the best
validation epoch. A row's results replace those recorded before; other rows stay. "go test ./internal/repotest
-update" then writes the table. The datasets come from GNB_DATA, or are downloaded.
"""

import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile

RESULTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "results", "accuracy.json")

CORA = "Cora, public split, 10 seeds"
PHYSICS = "Coauthor Physics, 10 random splits"
COMPUTERS = "Amazon Computers, {}, 10 random splits"
TOLOKERS = "tolokers, ROC AUC, its 10 splits"
SHCHUR = ("--model gcn --hidden 64 --dropout 0.8 --input-dropout 0.8 --weight-decay 1e-3 --epochs 3000 --patience 50"
          " --best-by loss --fanout full --split K --seed K")
DEEP = ("--hidden 256 --layers 3 --dropout 0.2 --lr 0.003 --epochs 100 --eval-every 2 --fanout 10,10,10 --norm layer"
        " --residual --split K --seed K")
KIPF = "Kipf and Welling 2017, [arXiv:1609.02907](https://arxiv.org/abs/1609.02907)"
VELICKOVIC = "Veličković et al. 2018, [arXiv:1710.10903](https://arxiv.org/abs/1710.10903)"
SHCHUR_ET_AL = "Shchur et al. 2018, [arXiv:1811.05868](https://arxiv.org/abs/1811.05868)"
PLATONOV = "Platonov et al. 2023, [arXiv:2302.11640](https://arxiv.org/abs/2302.11640)"

# id: set, model, published value, its source, dataset, arguments of gnb train; K stands for 0 to 9. A dataset with a D is converted to it.
ROWS = {
    "cora-gcn": (CORA, "GCN", "81.5", KIPF, "cora", "--model gcn --dropout 0.5 --hidden 16 --input-dropout 0.5 --weight-decay 5e-4 --epochs 200 --fanout full --seed K"),
    "cora-gat": (CORA, "GAT", "83.0 ± 0.7", VELICKOVIC, "cora", "--model gat --hidden 64 --heads 8 --out-heads 1 --dropout 0.6 --input-dropout 0.6 --lr 0.005 --weight-decay 5e-4 --epochs 300 --fanout full --seed K"),
    "cora-sage": (CORA, "SAGE", "–", "none for this split", "cora", "--model sage --dropout 0.5 --hidden 64 --input-dropout 0.5 --weight-decay 5e-4 --epochs 100 --fanout full --seed K"),
    "physics-gcn": (PHYSICS, "GCN", "92.8 ± 1.0", SHCHUR_ET_AL, "coauthor_phy", "--model gcn --dropout 0.5 --hidden 64 --input-dropout 0.5 --weight-decay 5e-4 --epochs 60 --eval-every 5 --fanout full --split K"),
    "computers-component-gcn": (COMPUTERS.format("largest component"), "GCN", "82.6 ± 2.4", SHCHUR_ET_AL, "amazon_cs.npz D --largest-component", SHCHUR),
    "computers-gcn": (COMPUTERS.format("all nodes"), "GCN", "82.6 ± 2.4", "Shchur et al. 2018, for its largest component", "amazon_cs", SHCHUR),
    "tolokers-sage": (TOLOKERS, "SAGE", "82.43 ± 0.44", PLATONOV, "tolokers", "--model sage " + DEEP),
    "tolokers-gcn": (TOLOKERS, "GCN", "83.64 ± 0.67", PLATONOV, "tolokers", "--model gcn " + DEEP),
}


def measure(gnb, dataset, arguments, runs):
    """The test accuracies, in per cent, and what the metric is called."""
    values, metric = [], ""
    for k in range(10):
        command = [gnb, "train", dataset, *arguments.replace("K", str(k)).split(), "--resume", "never", "--json"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "GNB_RUNS": runs})
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}: {done.stderr.strip().splitlines()[-1]}")
        result = json.loads(done.stdout.strip().splitlines()[-1])
        metric = next(name for name in result if name.startswith("test_"))
        values.append(round(100 * result[metric], 3))
        print(f"  {k}: {values[-1]:.2f}", flush=True)
    return values, metric.removeprefix("test_")


def convert(gnb, arguments, to):
    """The dataset that a file below GNB_DATA is converted to, and the command."""
    file, *flags = arguments.split()
    for folder, _, files in os.walk(os.environ.get("GNB_DATA", "../shared/data")):
        if file in files:
            flags = [to if f == "D" else f for f in flags]
            subprocess.run([gnb, "data", "convert", os.path.join(folder, file), *flags], check=True, stdout=subprocess.DEVNULL)
            return to, f"gnb data convert {arguments}; gnb train D"
    sys.exit(f"there is no {file} below GNB_DATA")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    gnb, ids = sys.argv[1], sys.argv[2:] or list(ROWS)
    for name in ids:
        if name not in ROWS:
            sys.exit(f"there is no row {name}; rows are {', '.join(ROWS)}")
    recorded = {}
    if os.path.exists(RESULTS):
        with open(RESULTS) as f:
            recorded = json.load(f)
    version = json.loads(subprocess.run([gnb, "version", "--json"], capture_output=True, text=True, check=True).stdout)
    with tempfile.TemporaryDirectory() as runs:
        for name in ids:
            set_, model, published, source, dataset, arguments = ROWS[name]
            print(name, flush=True)
            command = f"gnb train {dataset}"
            if " D" in dataset:
                dataset, command = convert(gnb, dataset, os.path.join(runs, name))
            values, metric = measure(gnb, dataset, arguments, runs)
            recorded[name] = {
                "set": set_, "model": model, "published": published, "source": source, "metric": metric,
                "command": f"{command} {arguments}",
                "test": values, "mean": round(statistics.mean(values), 2), "deviation": round(statistics.stdev(values), 2),
                "date": datetime.date.today().isoformat(), "version": version["version"],
                "revision": version.get("revision", ""), "machine": platform.machine(),
            }
            with open(RESULTS, "w") as f:  # row by row, so that an interrupt keeps those that are done
                json.dump({n: recorded[n] for n in ROWS if n in recorded}, f, indent=1, ensure_ascii=False)
                f.write("\n")


if __name__ == "__main__":
    main()

"""Measures the test accuracies of docs/accuracy.md and records them in bench/results/accuracy.json.

usage: python3 bench/accuracy.py GNB [ROW[:SEEDS]...]      rows by their ids, default all

Each row trains one model with several seeds, or on several splits, and takes the test accuracy at the best
validation epoch. A row's results replace those recorded before; other rows stay. With :3, or :0-2, a row
measures these seeds alone and keeps the others if the same revision measured them, so that a row can be
measured in pieces. "go test ./internal/repotest -update" then writes the table. The datasets come from
GNB_DATA, or are downloaded.
"""

import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile

import hardware

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
LUO = "Luo et al. 2024, [arXiv:2406.08993](https://arxiv.org/abs/2406.08993)"
COMPUTERS_60 = "Amazon Computers, 60/20/20 of Luo et al., 10 seeds"
COMPUTERS_SPLIT = "amazon_cs.npz D --split amazon-computer_split.npz"
PHYSICS_60 = "Coauthor Physics, 60/20/20 of Luo et al., 10 seeds"
PHYSICS_SPLIT = "coauthor_phy.npz D --split coauthor-physics_split.npz"
CHAMELEON = "chameleon_filtered, its 10 splits"
CORA_20 = "Cora, random split of Luo et al., 20 a class, 10 seeds"
CORA_SPLIT = "planetoid D --split cora_split.npz"  # of bench/cora_split.py

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
    "recipe-cora": (CORA_20, "GCN", "85.10 ± 0.67", LUO, CORA_SPLIT, "--recipe cora --seed K"),
    "strong-cora": (CORA_20, "GCN", "85.10 ± 0.67", LUO, CORA_SPLIT, "--recipe strong --seed K"),
    "recipe-chameleon": (CHAMELEON, "GCN", "46.29 ± 3.40", LUO, "chameleon_filtered.npz D", "--recipe chameleon_filtered --split K --seed K"),
    "strong-chameleon": (CHAMELEON, "GCN", "46.29 ± 3.40", LUO, "chameleon_filtered.npz D", "--recipe strong --split K --seed K"),
    "recipe-computers": (COMPUTERS_60, "GAT", "94.09 ± 0.37", LUO, COMPUTERS_SPLIT, "--recipe amazon_cs --seed K"),
    "strong-computers": (COMPUTERS_60, "GCN", "93.99 ± 0.12", LUO, COMPUTERS_SPLIT, "--recipe strong --seed K"),
    "recipe-physics": (PHYSICS_60, "GCN", "97.46 ± 0.10", LUO, PHYSICS_SPLIT, "--recipe coauthor_phy --seed K"),
    "strong-physics": (PHYSICS_60, "GCN", "97.46 ± 0.10", LUO, PHYSICS_SPLIT, "--recipe strong --seed K"),
    "strong-tolokers": (TOLOKERS, "GCN", "83.64 ± 0.67", PLATONOV, "tolokers", "--recipe strong --split K --seed K"),
}


def measure(gnb, dataset, arguments, runs, seeds):
    """The test accuracies, in per cent, by seed, and what the metric is called."""
    values, metric = {}, ""
    for k in seeds:
        command = [gnb, "train", dataset, *arguments.replace("K", str(k)).split(), "--resume", "never", "--json"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "GNB_RUNS": runs})
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}: {done.stderr.strip().splitlines()[-1]}")
        result = json.loads(done.stdout.strip().splitlines()[-1])
        metric = next(name for name in result if name.startswith("test_"))
        values[str(k)] = round(100 * result[metric], 3)
        print(f"  {k}: {values[str(k)]:.2f}", flush=True)
    return values, metric.removeprefix("test_")


def find(name):
    """The path of a file or folder below GNB_DATA, or of a file beside this one."""
    beside = os.path.dirname(os.path.abspath(__file__))
    for top in (os.environ.get("GNB_DATA", "../shared/data"), beside):
        for folder, folders, files in os.walk(top):
            if name in files or name in folders:
                return os.path.join(folder, name)
    sys.exit(f"there is no {name} below GNB_DATA")


def convert(gnb, arguments, to):
    """The dataset that a file below GNB_DATA is converted to, and the command."""
    file, *flags = arguments.split()
    flags = [to if f == "D" else find(f) if f.endswith(".npz") else f for f in flags]
    subprocess.run([gnb, "data", "convert", find(file), *flags], check=True, stdout=subprocess.DEVNULL)
    return to, f"gnb data convert {arguments}; gnb train D"


def revision_of(version):
    """The revision that a gnb was built from; if it does not know, that of the checkout that this file is in."""
    here = os.path.dirname(os.path.abspath(__file__))
    git = subprocess.run(["git", "-C", here, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    return version.get("revision") or git.stdout.strip()


def chosen(text):
    """The row and its seeds of an argument ROW, ROW:3 or ROW:0-2; no seeds for all of them, anew."""
    name, _, seeds = text.partition(":")
    first, _, last = seeds.partition("-")
    return name, range(int(first), int(last or first) + 1) if seeds else None


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    gnb, ids = sys.argv[1], [chosen(a) for a in sys.argv[2:] or list(ROWS)]
    for name, _ in ids:
        if name not in ROWS:
            sys.exit(f"there is no row {name}; rows are {', '.join(ROWS)}")
    recorded = {}
    if os.path.exists(RESULTS):
        with open(RESULTS) as f:
            recorded = json.load(f)
    version = json.loads(subprocess.run([gnb, "version", "--json"], capture_output=True, text=True, check=True).stdout)
    with tempfile.TemporaryDirectory() as runs:
        for name, seeds in ids:
            set_, model, published, source, dataset, arguments = ROWS[name]
            print(name, flush=True)
            command = f"gnb train {dataset}"
            if " D" in dataset:
                dataset, command = convert(gnb, dataset, os.path.join(runs, name))
            had, revision = recorded.get(name, {}), revision_of(version)
            values = had.get("seeds", {}) if seeds and had.get("revision") == revision else {}
            measured, metric = measure(gnb, dataset, arguments, runs, seeds or range(10))
            values = dict(sorted({**values, **measured}.items()))
            test = list(values.values())
            recorded[name] = {
                "set": set_, "model": model, "published": published, "source": source, "metric": metric,
                "command": f"{command} {arguments}",
                "test": test, "mean": round(statistics.mean(test), 2), "deviation": round(statistics.stdev(test), 2) if len(test) > 1 else 0,
                "date": datetime.date.today().isoformat(), "version": version["version"],
                "revision": revision, "machine": hardware.describe(), **({"seeds": values} if seeds else {}),
            }
            with open(RESULTS, "w") as f:  # row by row, so that an interrupt keeps those that are done
                json.dump({n: recorded[n] for n in ROWS if n in recorded}, f, indent=1, ensure_ascii=False)
                f.write("\n")


if __name__ == "__main__":
    main()

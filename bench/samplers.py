"""Compares uniform and layer-neighbour sampling (gnb train --sampler) and records it in bench/results/samplers.json.

usage: python3 bench/samplers.py GNB DIR [ROW...]      rows by their ids or the first part of one, default all

    accuracy/SAMPLER        three runs on ogbn-arxiv: best validation accuracy and its test accuracy, and the epochs until
                            0.99 of the best validation accuracy of uniform sampling, times the median time of an epoch
                            without evaluation
    planted/SAMPLER         the same of two hops on a quarter of products-like with planted labels; its times are those of
                            planted-step, so that it can be measured while other programs run
    planted-step/SAMPLER    nodes and edges of a batch, and the times of a step and of an epoch of the same training, without
                            evaluation: three runs of each of these samplers, in turns
    step/GRAPH/SAMPLER      nodes and edges of a batch, and the times of sampling alone and of a training step
    rows/GRAPH/SAMPLER      rows of features by source, with four workers that each have one part of the graph

SAMPLER is uniform, labor, labor-poisson, labor-layers (--layer-dependency) or labor-K (--batch-dependency K). DIR is
where the datasets are, or are made: arxiv (one-hot gpt_preds, from GNB_DATA), arxiv-dense (128 random features),
products (bench/productslike), products-planted (a quarter of its size, --planted), and arxiv-parts and products-parts, divided into four parts. A row's results replace those
recorded before; other rows stay. Nothing else should run meanwhile, except beside planted.
"""

import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
RESULTS = os.path.join(HERE, "results", "samplers.json")

SAMPLERS = {
    "uniform": "", "labor": "--sampler labor", "labor-poisson": "--sampler labor-poisson",
    "labor-layers": "--sampler labor --layer-dependency", "labor-4": "--sampler labor --batch-dependency 4",
    "labor-16": "--sampler labor --batch-dependency 16", "labor-64": "--sampler labor --batch-dependency 64",
}
BATCHES = {"arxiv": "--fanout 10,10,5 --batch 1024", "products": "--fanout 15,10,5 --batch 1024"}
TRAIN = "train arxiv --model sage --layers 3 --hidden 128 --lr 0.005 --epochs 12 --seed K " + BATCHES["arxiv"]
PLANTED_SAMPLERS = ("uniform", "labor", "labor-layers")
PLANTED_EPOCHS, PLANTED_TURNS = 20, 3
PLANTED = "products-planted --fanout 15,10 --batch 1024"
TRAIN_PLANTED = f"train {PLANTED} --model sage --layers 2 --hidden 128 --lr 0.003 --dropout 0.1 --seed K"
STEP = {"arxiv": "--dataset arxiv --hidden 128 --steps 30", "products": "--dataset products --hidden 128 --steps 10"}
STEPS = {"arxiv": "", "products": " --steps 60"}
DIVIDE = {"arxiv": "partition arxiv-dense --parts 4 --balance train --seed 1 --out arxiv-parts",
          "products": "partition products --parts 4 --method random --out products-parts"}
ROWS = [f"accuracy/{s}" for s in SAMPLERS] + [f"{kind}/{s}" for kind in ("planted", "planted-step") for s in PLANTED_SAMPLERS] + [f"{kind}/{g}/{s}" for kind in ("step", "rows") for g in BATCHES for s in SAMPLERS]


class Bench:
    def __init__(self, gnb, folder):
        self.gnb, self.folder = os.path.abspath(gnb), folder
        self.runs = tempfile.TemporaryDirectory()

    def call(self, arguments):
        """The JSON lines that gnb prints."""
        done = subprocess.run([self.gnb, *arguments.split(), "--json"], cwd=self.folder, capture_output=True, text=True, env={**os.environ, "GNB_RUNS": self.runs.name})
        if done.returncode != 0:
            sys.exit(f"gnb {arguments}: {done.stderr.strip().splitlines()[-1]}")
        return [json.loads(line) for line in done.stdout.strip().splitlines()]

    def need(self, name, make):
        if not os.path.exists(os.path.join(self.folder, name)):
            make()

    def dataset(self, graph):
        if graph == "arxiv":
            data = os.path.abspath(os.environ.get("GNB_DATA", os.path.join(HERE, "../../shared/data"))) + "/ogbn_arxiv/"
            convert = f"data convert {data}graphsaint {{}} --undirected --features {{}}"
            self.need("arxiv", lambda: self.call(convert.format("arxiv", f"one-hot:{data}gpt_preds/ogbn-arxiv.csv")))
            self.need("arxiv-dense", lambda: self.call(convert.format("arxiv-dense", "random:128")))
        if graph == "planted":
            make = ["go", "run", "./bench/productslike", "--scale", "20", "--nodes", "650000", "--seeds", "49154", "--planted"]
            self.need("products-planted", lambda: subprocess.run([*make, os.path.abspath(os.path.join(self.folder, "products-planted"))], cwd=os.path.dirname(HERE), check=True))
        if graph == "products":
            self.need("products", lambda: subprocess.run(["go", "run", "./bench/productslike", os.path.abspath(os.path.join(self.folder, "products"))], cwd=os.path.dirname(HERE), check=True))

    def curve(self, command):
        """The best validation accuracy of a run with its test accuracy, and the curve: seconds of training so far, accuracy."""
        lines = self.call(f"{command} --resume never")
        at, curve = 0.0, []
        for e in lines:
            if e["event"] == "epoch":
                at += e["seconds"] - e["stages"]["evaluate"]
                curve.append([round(at, 3), e["val_accuracy"]])
        return {"val": lines[-1]["val_accuracy"], "test": lines[-1]["test_accuracy"]}, curve

    def curves(self, train, flags):
        """Best validation accuracies with their test accuracies, and the curves, of three seeds."""
        best, curves = zip(*[self.curve(f"{train.replace('K', str(k))} {flags}") for k in range(1, 4)])
        return {"command": f"gnb {train} {flags}".strip(), "best": best, "curves": curves}

    def accuracy(self, flags):
        return self.curves(TRAIN, flags)

    def planted(self, flags):
        row = self.curves(f"{TRAIN_PLANTED} --epochs {PLANTED_EPOCHS}", flags)
        row["curves"] = [[accuracy for _, accuracy in c] for c in row["curves"]]  # times are those of planted-step
        return row

    def planted_step(self, samplers):
        """A row for each sampler: nodes and edges of a batch, and the times of a step and an epoch, of runs in turns."""
        rows, times = {}, {}
        for name in samplers:
            s = self.call(f"sample {PLANTED} {SAMPLERS[name]}")[-1]
            rows[name] = {"command": f"gnb {TRAIN_PLANTED} --epochs 3 --eval none {SAMPLERS[name]}".strip(), "nodes": round(s["nodes"] / s["batches"]), "edges": round(s["edges"] / s["batches"])}
            times[name] = []
        for k in range(1, PLANTED_TURNS + 1):
            for name, row in rows.items():
                lines = self.call(f"{TRAIN_PLANTED.replace('K', str(k))} --epochs 3 --eval none {SAMPLERS[name]} --resume never")
                seconds = [e["seconds"] for e in lines if e["event"] == "epoch"]
                times[name] += seconds
                row["steps"] = lines[-1]["steps"] // len(seconds)
        for name, row in rows.items():
            row["epoch_seconds"] = round(statistics.median(times[name]), 3)
            row["step_ms"] = round(1e3 * row["epoch_seconds"] / row.pop("steps"), 2)
            row["all_epoch_seconds"] = [round(x, 3) for x in times[name]]
        return rows

    def step(self, graph, flags):
        sample = f"sample {graph} {BATCHES[graph]}{STEPS[graph]} {flags}"
        train = f"bench train --limits=false {STEP[graph]} {BATCHES[graph]} {flags}"
        s, t = self.call(sample)[-1], self.call(train)[-1]
        return {
            "command": [f"gnb {sample}".strip(), f"gnb {train}".strip()], "nodes": round(s["nodes"] / s["batches"]), "edges": round(s["edges"] / s["batches"]),
            "sample_ms": round(1e3 * s["seconds"] / s["batches"], 2), "step_ms": round(1e3 * t["median_seconds"], 2),
        }

    def rows(self, graph, flags):
        self.need(f"{graph}-parts", lambda: self.call(DIVIDE[graph]))
        sample = f"sample {graph}-parts {BATCHES[graph]}{STEPS[graph]} --workers 4 --threads 1 {flags}"
        out = {"command": f"gnb {DIVIDE[graph]}; gnb {sample} --prefetch 4 [--cache 20%]", "batches": 0}
        for name, cache in (("window", ""), ("window_and_cache", " --cache 20%")):
            r = self.call(f"{sample} --prefetch 4{cache}")[-1]
            out[name] = {k: r["rows"][k] for k in ("own", "cached", "window", "remote", "bytes")}
            out["batches"] = r["batches"]
        return out


def epochs_to(curve, accuracy):
    """The epochs after which a curve reaches an accuracy, linear between evaluations, or None."""
    before = None
    for epoch, value in enumerate(curve, 1):
        value = value[1] if isinstance(value, list) else value
        if value >= accuracy:
            return epoch if before is None else epoch - 1 + (accuracy - before) / (value - before)
        before = value
    return None


def epoch_seconds(row, step):
    """The median time of an epoch without evaluation: that of the curves, or of the row planted-step."""
    if step:
        return step["epoch_seconds"]
    return statistics.median(b[0] - a[0] for c in row["curves"] for a, b in zip([[0, 0], *c], c))


def summarise(all_rows):
    """Adds to each row with curves its means, and the epochs and the time to 0.99 of uniform sampling's best validation accuracy."""
    for name, row in all_rows.items():
        uniform = all_rows.get(name.split("/")[0] + "/uniform")
        step = all_rows.get(name.replace("planted/", "planted-step/"), {}) if name.startswith("planted/") else None
        if "curves" not in row or not uniform or step == {}:
            continue
        goal = 0.99 * statistics.mean(b["val"] for b in uniform["best"])
        epochs = [epochs_to(c, goal) for c in row["curves"]]
        row["goal"] = round(goal, 4)
        row["epoch_seconds"] = round(epoch_seconds(row, step), 3)
        row["epochs"] = None if None in epochs else round(statistics.mean(epochs), 2)
        row["seconds"] = None if None in epochs else round(row["epochs"] * row["epoch_seconds"], 2)
        for split in ("val", "test"):
            values = [100 * b[split] for b in row["best"]]
            row[split] = [round(statistics.mean(values), 2), round(statistics.stdev(values), 2)]


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    bench = Bench(sys.argv[1], sys.argv[2])
    chosen = [r for r in ROWS if len(sys.argv) == 3 or any(r == a or r.startswith(a + "/") for a in sys.argv[3:])]
    if not chosen:
        sys.exit(f"no row is called {' or '.join(sys.argv[3:])}; rows are {', '.join(ROWS)}")
    recorded = {}
    if os.path.exists(RESULTS):
        with open(RESULTS) as f:
            recorded = json.load(f)
    version = bench.call("version")[-1]
    measured = {}
    for name in chosen:
        kind, *rest = name.split("/")
        bench.dataset("planted" if kind.startswith("planted") else rest[0] if kind in ("step", "rows") else "arxiv")
        if kind == "planted-step":
            if not measured:
                measured = bench.planted_step([n.split("/")[1] for n in chosen if n.startswith("planted-step/")])
            row = measured[rest[0]]
        else:
            row = getattr(bench, kind)(*rest[:-1], SAMPLERS[rest[-1]])
        row |= {"date": datetime.date.today().isoformat(), "version": version["version"], "revision": version.get("revision", ""), "machine": platform.machine(), "cpus": os.cpu_count()}
        recorded[name] = row
        summarise(recorded)
        print(name, {k: v for k, v in row.items() if k not in ("curves", "command", "best", "all_epoch_seconds")}, flush=True)
        with open(RESULTS, "w") as f:  # row by row, so that an interrupt keeps those that are done
            json.dump({n: recorded[n] for n in ROWS if n in recorded}, f, indent=1)
            f.write("\n")


if __name__ == "__main__":
    main()

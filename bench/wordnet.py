"""Predicts the lexicographer file of a synset of WordNet (45 classes), with GraphNB and with PyG.

usage: python3 bench/wordnet.py GNB      with a Python that has torch and torch_geometric

Nodes are the synsets, relations the kinds of pointers between them, and features the 64 commonest words of the glosses,
1 where a gloss has the word. Hypernyms and hyponyms nearly give the class away, so each model is also trained without
these relations. Both sides read the same arrays and splits (60, 20 and 20 % of the synsets at random) and train an MLP,
an R-GCN without bases and an HGT of two layers, one step of the whole graph per epoch, and take the test accuracy of the
best evaluation on validation. The sides take turns, seed by seed, with one thread each. The time of an epoch is
processor time: PyG's without evaluation, GraphNB's the difference of a long and a short run of the command, divided by
the epochs between them. The results are recorded in bench/results/wordnet.json after each model. The files data.noun,
data.verb, data.adj and data.adv come from GNB_DATA/hetero/wordnet.
"""

import collections
import datetime
import json
import os
import pathlib
import platform
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import hardware
import numpy as np
import torch
import torch.nn.functional as F
import torch_geometric
from torch_geometric.nn import HGTConv, RGCNConv

HERE = pathlib.Path(__file__).resolve().parent
RESULTS = HERE / "results" / "wordnet.json"
SEEDS, EPOCHS, EVERY, WORDS, HIDDEN, HEADS, LR, DROPOUT, CLASSES = 3, 15, 5, 64, 32, 2, 0.03, 0.3, 45
SHORT, LONG = 1, 5  # epochs of the runs that are timed
FLAGS = f"--hidden {HIDDEN} --layers 2 --heads {HEADS} --fanout full --batch 200000 --lr {LR} --dropout {DROPOUT} --threads 1"
KINDS = "with hypernyms", "without hypernyms"


def synsets(folder):
    """The lexicographer file, the words of the gloss and the pointers of each synset, as wndb(5WN) describes them."""
    number, labels, glosses, pointers = {}, [], [], []
    for name, pos in (("noun", "n"), ("verb", "v"), ("adj", "a"), ("adv", "r")):
        with open(folder / f"data.{name}") as f:
            for line in f:
                if line.startswith("  "):
                    continue  # the licence
                fields, _, gloss = line.partition("|")
                f_ = fields.split()
                number[pos, f_[0]] = len(labels)
                labels.append(int(f_[1]))
                glosses.append(re.findall("[a-z]+", gloss.lower()))
                at = 4 + 2 * int(f_[3], 16)
                pointers.append([tuple(f_[at + 1 + 4 * i : at + 4 + 4 * i]) for i in range(int(f_[at]))])
    edges = sorted({(v, number[pos, offset], kind) for v, p in enumerate(pointers) for kind, offset, pos in p})
    return np.array(labels, np.int32), glosses, edges


def write(folder, x, y, edges, names, splits):
    """Writes a dataset of GraphNB; edges [n, 3] are (source, destination, relation) in the order of destinations."""
    folder.mkdir()
    meta = {
        "format_version": 1, "name": folder.name, "num_nodes": len(y), "num_edges": len(edges), "feature_dim": x.shape[1], "num_classes": CLASSES, "splits": list(splits),
        "node_types": [{"name": "synset", "count": len(y), "num_classes": CLASSES}],
        "relations": [{"src": "synset", "name": n, "dst": "synset"} for n in names],
    }
    (folder / "metadata.json").write_text(json.dumps(meta))
    indptr = np.zeros(len(y) + 1, np.int64)
    np.cumsum(np.bincount(edges[:, 1], minlength=len(y)), out=indptr[1:])
    for name, a in {"indptr": indptr, "indices": edges[:, 0].astype(np.int32), "edge_types": edges[:, 2].astype(np.uint16), "features": x, "labels": y}.items():
        np.save(folder / f"{name}.npy", a)
    for name, ids in splits.items():
        np.save(folder / f"split_{name}.npy", ids.astype(np.int32))


def prepare(source, folder):
    y, glosses, pointers = synsets(source)
    common = collections.Counter(w for g in glosses for w in set(g)).most_common(WORDS)
    column = {w: i for i, (w, _) in enumerate(common)}
    x = np.zeros((len(y), WORDS), np.float32)
    for v, g in enumerate(glosses):
        x[v, [column[w] for w in g if w in column]] = 1
    order = np.random.default_rng(0).permutation(len(y))
    a, b = len(y) * 6 // 10, len(y) * 8 // 10
    splits = {"train": np.sort(order[:a]), "val": np.sort(order[a:b]), "test": np.sort(order[b:])}
    graphs = {}
    for kind in KINDS:
        kept = [p for p in pointers if kind == KINDS[0] or p[2] not in ("@", "~", "@i", "~i")]
        names = sorted({p[2] for p in kept})
        number = {n: i for i, n in enumerate(names)}
        e = np.array([(u, v, number[k]) for u, v, k in kept], np.int64)
        e = e[np.lexsort((e[:, 2], e[:, 0], e[:, 1]))]
        write(folder / kind.split()[0], x, y, e, names, splits)
        graphs[kind] = torch.from_numpy(e), len(names)
    return torch.from_numpy(x), torch.from_numpy(y).long(), {k: torch.from_numpy(v) for k, v in splits.items()}, graphs


class MLP(torch.nn.Module):
    def __init__(self, *_):
        super().__init__()
        self.lins = torch.nn.ModuleList([torch.nn.Linear(WORDS, HIDDEN), torch.nn.Linear(HIDDEN, CLASSES)])

    def forward(self, x, *_):
        return self.lins[1](F.dropout(self.lins[0](x).relu(), DROPOUT, self.training))


class RGCN(torch.nn.Module):
    def __init__(self, relations, _):
        super().__init__()
        self.convs = torch.nn.ModuleList([RGCNConv(WORDS, HIDDEN, relations), RGCNConv(HIDDEN, CLASSES, relations)])

    def forward(self, x, edges, _):
        x = F.dropout(self.convs[0](x, edges[:, :2].T, edges[:, 2]).relu(), DROPOUT, self.training)
        return self.convs[1](x, edges[:, :2].T, edges[:, 2])


class HGT(torch.nn.Module):
    def __init__(self, _, by_relation):
        super().__init__()
        self.first, self.last = torch.nn.Linear(WORDS, HIDDEN), torch.nn.Linear(HIDDEN, CLASSES)
        self.convs = torch.nn.ModuleList([HGTConv(HIDDEN, HIDDEN, (["synset"], list(by_relation)), HEADS) for _ in range(2)])

    def forward(self, x, _, by_relation):
        x = self.first(x).relu()
        for i, conv in enumerate(self.convs):
            x = F.dropout(x, DROPOUT, self.training) if i > 0 else x
            x = conv({"synset": x}, by_relation)["synset"]
        return self.last(x)


MODELS = {"mlp": MLP, "rgcn": RGCN, "hgt": HGT}


def pyg(model, x, y, splits, graph, seed):
    edges, relations = graph
    by_relation = {("synset", f"r{r}", "synset"): edges[edges[:, 2] == r, :2].T.contiguous() for r in range(relations)}
    torch.manual_seed(seed)
    net = MODELS[model](relations, by_relation)
    optimizer = torch.optim.Adam(net.parameters(), lr=LR)
    spent, best = [], (-1, 0)
    for epoch in range(1, EPOCHS + 1):
        began = time.process_time()
        net.train()
        optimizer.zero_grad()
        F.cross_entropy(net(x, edges, by_relation)[splits["train"]], y[splits["train"]]).backward()
        optimizer.step()
        spent.append(time.process_time() - began)
        if epoch % EVERY == 0:
            net.eval()
            with torch.no_grad():
                right = net(x, edges, by_relation).argmax(1) == y
            best = max(best, tuple(100 * float(right[splits[s]].float().mean()) for s in ("val", "test")))
    return {"test": best[1], "cpu_seconds": statistics.median(spent)}


def run(command, env):
    """Returns the result and the processor time of a command and its workers."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()} {done.stdout.strip()}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return json.loads(done.stdout.strip().splitlines()[-1]), after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def graphnb(gnb, model, data, seed, env):
    command = [gnb, "train", str(data), "--model", model, *FLAGS.split(), "--seed", str(seed), "--resume", "never", "--json"]
    if model != "hgt":
        command = [c for i, c in enumerate(command) if c != "--heads" and command[i - 1] != "--heads"]
    values, _ = run([*command, "--epochs", str(EPOCHS), "--eval-every", str(EVERY)], env)
    times = [run([*command, "--epochs", str(n), "--eval", "none"], env)[1] for n in (SHORT, LONG)]
    return {"test": 100 * values["test_accuracy"], "cpu_seconds": (times[1] - times[0]) / (LONG - SHORT)}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    gnb = os.path.abspath(sys.argv[1])
    source = pathlib.Path(os.environ.get("GNB_DATA", HERE / "../../shared/data")).resolve() / "hetero/wordnet"
    torch.set_num_threads(1)
    version = json.loads(subprocess.run([gnb, "version", "--json"], capture_output=True, text=True, check=True).stdout)
    rows, loads = [], []
    with tempfile.TemporaryDirectory() as tmp:
        env = {**os.environ, "GNB_RUNS": f"{tmp}/runs"}
        x, y, splits, graphs = prepare(source, pathlib.Path(tmp))
        for kind in KINDS[::-1]:
            for model in MODELS:
                if model == "mlp" and kind == KINDS[0]:
                    continue  # it reads no relation
                sides = {"pyg": [], "graphnb": []}
                for seed in range(SEEDS):
                    loads.append(os.getloadavg()[0])
                    sides["pyg"].append(pyg(model, x, y, splits, graphs[kind], seed))
                    sides["graphnb"].append(graphnb(gnb, model, pathlib.Path(tmp) / kind.split()[0], seed, env))
                    print(kind, model, seed, {s: {k: round(v, 3) for k, v in r[-1].items()} for s, r in sides.items()}, flush=True)
                for side, runs in sides.items():
                    tests = [r["test"] for r in runs]
                    rows.append({
                        "side": side, "model": model, "relations": kind, "test": [round(statistics.mean(tests), 2), round(statistics.stdev(tests), 2)],
                        "cpu_seconds": round(statistics.median(r["cpu_seconds"] for r in runs), 3), "runs": [{k: round(v, 3) for k, v in r.items()} for r in runs],
                    })
                record = {
                    "command": f"gnb train D --model M {FLAGS} --epochs {EPOCHS} --eval-every {EVERY} --seed K", "rows": rows, "synsets": len(y), "edges": {k: len(g[0]) for k, g in graphs.items()},
                    "relations": {k: g[1] for k, g in graphs.items()}, "load": [round(v, 1) for v in loads], "date": datetime.date.today().isoformat(),
                    "version": version["version"], "revision": version.get("revision", ""), "machine": hardware.describe(),
                    "versions": {"torch": torch.__version__, "torch_geometric": torch_geometric.__version__, "python": platform.python_version()},
                }
                RESULTS.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""Predicts the lexicographer file of a synset of WordNet (45 classes), with GraphNB, PyG and DGL.

usage: python3 bench/wordnet.py GNB [times | tests | graphnb | converged] [MODEL …]      MODEL: mlp, rgcn, hgt (default all)
    with a Python that has torch, torch_geometric and dgl: the environment of make bench-peers

Nodes are the synsets, relations the kinds of pointers between them, and features the 64 commonest words of the glosses,
1 where a gloss has the word. Hypernyms and hyponyms nearly give the class away, so each model is also trained without
these relations. All sides read the same arrays and splits (60, 20 and 20 % of the synsets at random) and train an MLP,
an R-GCN without bases and an HGT of two layers, one step of the whole graph per epoch. GraphNB and PyG take turns, seed by
seed, with one thread each, and take the test accuracy of the best evaluation on validation; DGL's layers are timed alone.

The time of an epoch is processor time: the median of the first TIMED epochs but the first without evaluation for PyG and
DGL, and for GraphNB the difference of a long and a short run of the command, divided by the epochs between them; the
short run has SHORT epochs, in which memory grows. The peers
run with glibc's allocator set never to return memory, which is their best case. pyg-lib has no wheel for this torch, so
the segment_matmul of PyG's HGT is here a product for each segment. PyG's R-GCN computes relation by relation, because it
takes the mean over the edges of all relations together where segment_matmul is there, which is another model. PyG's HGT multiplies the
rows of all nodes by each relation's matrices, which takes 12 s and up to 20 GB; here it is a subclass which multiplies
only the sources that a relation has. The script checks that both give the same numbers.

"times" and "tests" measure the times or the accuracies alone, and "graphnb" the accuracies of GraphNB alone, beside those
that PyG had. "converged" trains until the validation accuracy no longer rises: CONVERGED epochs, an evaluation every CONVERGED_EVERY,
recorded after each seed. The results are recorded in bench/results/wordnet.json
after each model; what is not measured again is kept. The
files data.noun, data.verb, data.adj and data.adv come from GNB_DATA/hetero/wordnet.
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
import types

import hardware
import numpy as np
import torch
import torch.nn.functional as F
import torch_geometric
import torch_geometric.nn.dense.linear
from kg_gcn import TUNED
from torch_geometric.nn import HGTConv, RGCNConv

HERE = pathlib.Path(__file__).resolve().parent
RESULTS = HERE / "results" / "wordnet.json"
SEEDS = {"mlp": 10, "rgcn": 3, "hgt": 3}
EPOCHS, EVERY, WORDS, HIDDEN, HEADS, LR, DROPOUT, CLASSES = 20, 5, 64, 32, 2, 0.03, 0.3, 45
# Epochs until the validation accuracy of GraphNB's seed 0 no longer rises: of 57.5, 85.8 and 86.1 %.
CONVERGED = {("rgcn", "without hypernyms"): 160, ("rgcn", "with hypernyms"): 300, ("hgt", "with hypernyms"): 400}
CONVERGED_EVERY = 10
SHORT, LONG, TIMED = 3, 13, 4  # epochs of the runs that are timed
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


def segment_matmul(x, ptr, weight):
    """The products of consecutive rows with one matrix for each segment, as pyg_lib.ops.segment_matmul."""
    return torch.cat([x[lo:hi] @ w for lo, hi, w in zip(ptr[:-1].tolist(), ptr[1:].tolist(), weight)])


def use_segments(model):
    """Lets PyG's HGT use segment_matmul. Its R-GCN does not: with it the mean is over the edges of all relations together."""
    torch_geometric.nn.dense.linear.pyg_lib = types.SimpleNamespace(ops=types.SimpleNamespace(segment_matmul=segment_matmul))
    torch_geometric.typing.WITH_SEGMM = torch_geometric.backend.use_segment_matmul = model == "hgt"


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


class SparseHGT(HGTConv):
    """HGTConv whose products by relation have the rows of the relation's sources alone; edges name them by position."""

    def _construct_src_node_feat(self, k_dict, v_dict, edge_index_dict):
        heads, columns, kinds = self.heads, self.out_channels // self.heads, len(self.edge_types)
        parts, number, offset, at = [], [], {}, 0
        for kind in edge_index_dict:
            sources = self.sources[kind]
            offset[kind], at = at, at + len(sources)
            parts.append(sources)
            number.append((torch.arange(heads) * kinds + self.edge_types_map[kind]).view(-1, 1).expand(-1, len(sources)))
        rows, number = torch.cat(parts), torch.cat(number, 1).flatten()
        k, v = (rel(x["synset"][rows].transpose(0, 1).reshape(-1, columns), number).view(heads, -1, columns).transpose(0, 1) for rel, x in ((self.k_rel, k_dict), (self.v_rel, v_dict)))
        return k, v, offset


def positions(by_relation):
    """The sources of each relation, and its edges from their positions."""
    sources, edges = {}, {}
    for kind, e in by_relation.items():
        sources[kind], at = e[0].unique(return_inverse=True)
        edges[kind] = torch.stack([at, e[1]])
    return sources, edges


class HGT(torch.nn.Module):
    conv = HGTConv

    def __init__(self, _, by_relation):
        super().__init__()
        self.first, self.last = torch.nn.Linear(WORDS, HIDDEN), torch.nn.Linear(HIDDEN, CLASSES)
        self.convs = torch.nn.ModuleList([self.conv(HIDDEN, HIDDEN, (["synset"], list(by_relation)), HEADS) for _ in range(2)])

    def forward(self, x, _, by_relation):
        x = self.first(x).relu()
        for i, conv in enumerate(self.convs):
            x = F.dropout(x, DROPOUT, self.training) if i > 0 else x
            x = conv({"synset": x}, by_relation)["synset"]
        return self.last(x)


class QuickHGT(HGT):
    conv = SparseHGT

    def __init__(self, _, by_relation):
        super().__init__(_, by_relation)
        self.positions = positions(by_relation)
        for conv in self.convs:
            conv.sources = self.positions[0]

    def forward(self, x, _, by_relation):
        return super().forward(x, _, self.positions[1])


MODELS = {"mlp": MLP, "rgcn": RGCN, "hgt": QuickHGT}


def relations_of(graph):
    edges, relations = graph
    return {("synset", f"r{r}", "synset"): edges[edges[:, 2] == r, :2].T.contiguous() for r in range(relations)}


def same(x, graph):
    """Checks that both forms of HGT give the same numbers."""
    by_relation = relations_of(graph)
    a, b = HGT(0, by_relation), QuickHGT(0, by_relation)
    b.load_state_dict(a.state_dict())
    a.eval(), b.eval()
    with torch.no_grad():
        torch.testing.assert_close(a(x, None, by_relation), b(x, None, by_relation), rtol=1e-4, atol=1e-5)


def pyg(net, x, y, splits, graph, epochs, every):
    """The test accuracy and the processor seconds of each epoch."""
    edges, by_relation = graph[0], relations_of(graph)
    optimizer = torch.optim.Adam(net.parameters(), lr=LR)
    spent, best = [], (-1, 0)
    for epoch in range(1, epochs + 1):
        began = time.process_time()
        net.train()
        optimizer.zero_grad()
        F.cross_entropy(net(x, edges, by_relation)[splits["train"]], y[splits["train"]]).backward()
        optimizer.step()
        spent.append(time.process_time() - began)
        if epoch % every == 0:
            net.eval()
            with torch.no_grad():
                right = net(x, edges, by_relation).argmax(1) == y
            best = max(best, tuple(100 * float(right[splits[s]].float().mean()) for s in ("val", "test")))
    return best[1], spent


def dgl_seconds(model, x, y, splits, graph):
    """The processor seconds of an epoch of DGL's layers, on edges in the order of their relations, their fastest form."""
    import dgl
    from dgl.nn import HGTConv as DGLHGT
    from dgl.nn import RelGraphConv

    edges, relations = graph
    edges = edges[torch.argsort(edges[:, 2], stable=True)]
    kinds, nodes = edges[:, 2].contiguous(), torch.zeros(len(x), dtype=torch.int64)
    g = dgl.graph((edges[:, 0], edges[:, 1]), num_nodes=len(x))
    pairs = edges[:, 1] * relations + kinds
    norm = (1 / torch.bincount(pairs)[pairs].float()).unsqueeze(1)
    if model == "rgcn":
        convs = torch.nn.ModuleList([RelGraphConv(WORDS, HIDDEN, relations, self_loop=True), RelGraphConv(HIDDEN, CLASSES, relations, self_loop=True)])
        forward = lambda: convs[1](g, F.dropout(convs[0](g, x, kinds, norm, presorted=True).relu(), DROPOUT), kinds, norm, presorted=True)
    else:
        layer = lambda: DGLHGT(HIDDEN, HIDDEN // HEADS, HEADS, 1, relations, dropout=0)
        convs = torch.nn.ModuleList([torch.nn.Linear(WORDS, HIDDEN), layer(), layer(), torch.nn.Linear(HIDDEN, CLASSES)])
        forward = lambda: convs[3](convs[2](g, F.dropout(convs[1](g, convs[0](x).relu(), nodes, kinds, presorted=True), DROPOUT), nodes, kinds, presorted=True))
    optimizer = torch.optim.Adam(convs.parameters(), lr=LR)
    spent = []
    for _ in range(TIMED):
        began = time.process_time()
        optimizer.zero_grad()
        F.cross_entropy(forward()[splits["train"]], y[splits["train"]]).backward()
        optimizer.step()
        spent.append(time.process_time() - began)
    return spent


def run(command, env):
    """Returns the result and the processor time of a command and its workers."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()} {done.stdout.strip()}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return json.loads(done.stdout.strip().splitlines()[-1]), after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def command(gnb, model, data, seed):
    flags = FLAGS if model == "hgt" else FLAGS.replace(f"--heads {HEADS} ", "")
    return [gnb, "train", str(data), "--model", model, *flags.split(), "--seed", str(seed), "--resume", "never", "--json"]


def record(row, what, version, table="rows"):
    """Writes times or tests into a table of the file of results."""
    import dgl

    row |= {f"{what}_at": {"date": datetime.date.today().isoformat(), "version": version["version"], "revision": version.get("revision", "")}}
    row |= {"machine": hardware.describe(), "versions": {"torch": torch.__version__, "torch_geometric": torch_geometric.__version__, "dgl": dgl.__version__, "python": platform.python_version()}}
    all_rows = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    rows = {(r["model"], r["relations"]): r for r in all_rows.get(table, [])}
    key = row["model"], row["relations"]
    rows[key] = rows.get(key, {}) | row
    ordered = [rows[m, k] for m in MODELS for k in KINDS[::-1] if (m, k) in rows]
    RESULTS.write_text(json.dumps(all_rows | {table: ordered}, indent=1) + "\n")
    print(row, flush=True)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if os.environ.get("GLIBC_TUNABLES") != TUNED["GLIBC_TUNABLES"]:  # read when a process starts
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | TUNED)
    gnb, rest = os.path.abspath(sys.argv[1]), sys.argv[2:]
    what = [rest.pop(0)] if rest and rest[0] in ("times", "tests", "graphnb", "converged") else ["times", "tests"]
    models = rest or list(MODELS)
    source = pathlib.Path(os.environ.get("GNB_DATA", HERE / "../../shared/data")).resolve() / "hetero/wordnet"
    torch.set_num_threads(1)
    version = json.loads(subprocess.run([gnb, "version", "--json"], capture_output=True, text=True, check=True).stdout)
    with tempfile.TemporaryDirectory() as tmp:
        env = {**os.environ, "GNB_RUNS": f"{tmp}/runs"}
        x, y, splits, graphs = prepare(source, pathlib.Path(tmp))
        median = lambda spent: round(statistics.median(spent[1:]), 3)
        wanted = [(m, k) for m in models for k in KINDS[::-1] if (m, k) != ("mlp", KINDS[0])]  # it reads no relation
        for model, kind in wanted if "times" in what else []:  # the times first, while the machine is as it is
            graph, data = graphs[kind], pathlib.Path(tmp) / kind.split()[0]
            row = {"model": model, "relations": kind, "load": round(os.getloadavg()[0], 1)}
            times = [run([*command(gnb, model, data, 0), "--epochs", str(n), "--eval", "none"], env)[1] for n in (SHORT, LONG) * 3]
            row["graphnb_epoch"] = round((statistics.median(times[1::2]) - statistics.median(times[::2])) / (LONG - SHORT), 3)
            use_segments(model)
            if model != "mlp":
                row["dgl_epoch"] = median(dgl_seconds(model, x, y, splits, graph))
            row["pyg_epoch"] = median(pyg(MODELS[model](graph[1], relations_of(graph)), x, y, splits, graph, TIMED, TIMED + 1)[1])
            record(row, "times", version)
        converged = what == ["converged"]
        if converged:
            wanted = [w for w in wanted if w in CONVERGED]
        for model, kind in wanted if what != ["times"] else []:
            graph, data = graphs[kind], pathlib.Path(tmp) / kind.split()[0]
            epochs, every = (CONVERGED[model, kind], CONVERGED_EVERY) if converged else (EPOCHS, EVERY)
            use_segments(model)
            if model == "hgt":
                same(x, graph)
            row = {"model": model, "relations": kind, "pyg": [], "graphnb": [], "edges": len(graph[0]), "kinds": graph[1]}
            row |= {"command": f"{' '.join(['gnb', 'train', 'D', *command(gnb, model, data, 0)[3:-5]])} --epochs {epochs} --eval-every {every} --seed K"}
            if what == ["graphnb"]:
                del row["pyg"]
            for seed in range(SEEDS[model]):
                values, _ = run([*command(gnb, model, data, seed), "--epochs", str(epochs), "--eval-every", str(every)], env)
                row["graphnb"].append(round(100 * values["test_accuracy"], 2))
                if converged:
                    row["graphnb_best_epochs"] = [*row.get("graphnb_best_epochs", []), values["best_epoch"]]
                if "pyg" in row:
                    torch.manual_seed(seed)
                    test, _ = pyg(MODELS[model](graph[1], relations_of(graph)), x, y, splits, graph, epochs, every)
                    row["pyg"].append(round(test, 2))
                print(row, flush=True)
                if converged or seed + 1 == SEEDS[model]:
                    for side in ("pyg", "graphnb"):
                        if side in row:
                            row[side + "_test"] = [round(statistics.mean(row[side]), 2), round(statistics.stdev(row[side]), 2) if seed > 0 else 0]
                    record(dict(row), "tests", version, "converged" if converged else "rows")


if __name__ == "__main__":
    main()

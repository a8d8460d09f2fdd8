"""Predicts citations of ogbn-arxiv by year, with GraphNB and with PyG's LinkNeighborLoader.

usage: python3 bench/links_arxiv.py GNB      with a Python that has torch, torch_geometric and pyg-lib

A citation has the year of its later paper. Messages are the citations before a part's first year, in both directions:
training predicts a fixed part of those of 2017, with messages before 2017; validation has those of 2018 with messages
before 2018, and the test later ones with messages before 2019. For validation and test, fixed parts are ranked against
100 negatives of the citing paper each, drawn once. Both sides read the same files. Features are the classes of gpt_preds
in 200 one-hot columns. Both train a GraphSAGE of two layers, 64 and 64, with a dot decoder, binary cross-entropy and one
negative of the citing paper for each edge, Adam 0.01, fanouts 10 and 10, 1024 edges per step. The sides take turns, seed
by seed, with one thread each, because threads of PyTorch that wait for each other spin on a busy machine. PyG's side
has no worker processes, and trims layers. The results are recorded in bench/results/links_arxiv.json. ogbn_arxiv comes
from GNB_DATA.
"""

import datetime
import gzip
import json
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import hardware
import numpy as np
import scipy.sparse
import torch
import torch.nn.functional as F
import torch_geometric
from torch_geometric.data import Data
from torch_geometric.loader import LinkNeighborLoader
from torch_geometric.nn import SAGEConv
from torch_geometric.utils import trim_to_layer

HERE = pathlib.Path(__file__).resolve().parent
RESULTS = HERE / "results" / "links_arxiv.json"
SEEDS, EPOCHS, TRAIN, EVALUATED, NEGATIVES, BATCH, THREADS = 3, 3, 60_000, 10_000, 100, 1024, 1
FLAGS = f"--model sage --hidden 64 --dim 64 --layers 2 --fanout 10,10 --batch {BATCH} --epochs {EPOCHS} --eval 1,2 --lr 0.01 --keep-source --known-messages --threads {THREADS}"


def citations(source):
    """Pairs (citing, cited), each once, with their years."""
    adj = scipy.sparse.load_npz(source / "graphsaint/adj_full.npz").tocoo()
    with gzip.open(source / "ogbn_arxiv/raw/node_year.csv.gz", "rt") as f:
        year = np.loadtxt(f, dtype=np.int64)
    u, v = adj.row.astype(np.int64), adj.col.astype(np.int64)
    u, v = np.where(year[u] >= year[v], u, v), np.where(year[u] >= year[v], v, u)  # the later paper cites
    _, first = np.unique(np.minimum(u, v) * len(year) + np.maximum(u, v), return_index=True)
    first = first[u[first] != v[first]]
    return np.stack([u[first], v[first]], axis=1), year[u[first]], len(year)


def prepare(source, folder, gnb, env):
    """Writes the dataset of messages for GraphNB and the split; returns the split and the messages."""
    pairs, year, nodes = citations(source)
    rng = np.random.default_rng(0)
    known = set((pairs[:, 0] * nodes + pairs[:, 1]).tolist()) | set((pairs[:, 1] * nodes + pairs[:, 0]).tolist())
    messages = {"train": pairs[year < 2017], "val": pairs[year < 2018], "test": pairs[year < 2019]}
    s = {"disjoint": pairs[year == 2017], "held": pairs[year == 2018]}
    s["train"] = s["disjoint"][rng.permutation(len(s["disjoint"]))[:TRAIN]]
    for name, chosen in (("val", year == 2018), ("test", year >= 2019)):
        edges = pairs[chosen]
        s[name] = edges[rng.permutation(len(edges))[:EVALUATED]]
        negatives = rng.integers(0, nodes, (EVALUATED, NEGATIVES))
        for i, (u, row) in enumerate(zip(s[name][:, 0].tolist(), negatives)):
            for k, v in enumerate(row.tolist()):
                while v == u or u * nodes + v in known:
                    v = int(rng.integers(0, nodes))
                row[k] = v
        s[name + "_neg"] = np.stack([np.repeat(s[name][:, 0], NEGATIVES), negatives.reshape(-1)], axis=1)
    (folder / "split").mkdir()
    for name, e in s.items():
        e.astype("<i4").tofile(folder / "split" / name)
    # GraphNB's dataset has the citations before 2019: the folder of ogbn-arxiv with another adjacency.
    shutil.copytree(source / "graphsaint", folder / "graphsaint", ignore=shutil.ignore_patterns("adj_*"))
    adj = scipy.sparse.coo_matrix((np.ones(len(messages["test"]), bool), messages["test"].T), shape=(nodes, nodes)).tocsr()
    scipy.sparse.save_npz(folder / "graphsaint/adj_full.npz", adj)
    convert = f"data convert {folder}/graphsaint {folder}/arxiv --undirected --features one-hot:{source}/gpt_preds/ogbn-arxiv.csv"
    subprocess.run([gnb, *convert.split()], check=True, stdout=subprocess.DEVNULL, env=env)
    return s, messages, nodes


def features(source, nodes):
    """The one-hot columns of gpt_preds: place i of a line has columns 40·i to 40·i+39."""
    x = np.zeros((nodes, 200), np.float32)
    for n, line in enumerate(open(source / "gpt_preds/ogbn-arxiv.csv")):
        for i, c in enumerate(line.strip().split(",")):
            if c:
                x[n, 40 * i + int(c)] = 1
    return torch.from_numpy(x)


class SAGE(torch.nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.convs = torch.nn.ModuleList([SAGEConv(columns, 64), SAGEConv(64, 64)])

    def forward(self, x, edge_index, sampled=None):
        for i, conv in enumerate(self.convs):
            if sampled:
                x, edge_index, _ = trim_to_layer(i, *sampled, x, edge_index)
            x = conv(x, edge_index)
            x = x.relu() if i == 0 else x
        return x


def mrr(z, edges, negatives):
    pos = (z[edges[:, 0]] * z[edges[:, 1]]).sum(-1, keepdim=True)
    neg = (z[negatives[:, 0]] * z[negatives[:, 1]]).sum(-1).view(len(edges), -1)
    rank = 1 + (neg > pos).sum(1) + 0.5 * (neg == pos).sum(1)  # ties have their mean rank
    return float((1 / rank).mean())


def pyg(data, messages, s, seed):
    torch.manual_seed(seed)
    model = SAGE(data.num_features)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    train = torch.from_numpy(np.ascontiguousarray(s["train"].T))
    loader = LinkNeighborLoader(data, num_neighbors=[10, 10], batch_size=BATCH, edge_label_index=train, neg_sampling="triplet", shuffle=True)
    out = {"seconds": [], "cpu_seconds": [], "val": [], "test": []}
    for _ in range(EPOCHS):
        began, spent = time.perf_counter(), time.process_time()
        model.train()
        for b in loader:
            optimizer.zero_grad()
            z = model(b.x, b.edge_index, (b.num_sampled_nodes, b.num_sampled_edges))
            src = z[b.src_index]
            scores = torch.cat([(src * z[b.dst_pos_index]).sum(-1), (src * z[b.dst_neg_index]).sum(-1)])
            labels = torch.cat([torch.ones(len(src)), torch.zeros(len(src))])
            F.binary_cross_entropy_with_logits(scores, labels).backward()
            optimizer.step()
        out["seconds"].append(time.perf_counter() - began)
        out["cpu_seconds"].append(time.process_time() - spent)
        model.eval()
        for part in ("val", "test"):
            with torch.no_grad():
                z = model(data.x, messages[part])
            out[part].append(mrr(z, torch.from_numpy(s[part]), torch.from_numpy(s[part + "_neg"])))
    return out


def graphnb(linkruns, folder, seed, env):
    command = [linkruns, *FLAGS.split(), "--seed", str(seed), f"{folder}/arxiv", f"{folder}/split"]
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    values = json.loads(done.stdout)
    names = {"seconds": "seconds", "cpu_seconds": "cpu_seconds", "val": "val_mrr", "test": "test_mrr"}
    return {k: [values[f"{n}_{e}"] for e in range(1, EPOCHS + 1)] for k, n in names.items()}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    gnb = os.path.abspath(sys.argv[1])
    source = pathlib.Path(os.environ.get("GNB_DATA", HERE / "../../shared/data")).resolve() / "ogbn_arxiv"
    torch.set_num_threads(THREADS)
    sides = {"pyg": [], "graphnb": []}
    loads = []
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp)
        env = {**os.environ, "GNB_RUNS": f"{tmp}/runs"}
        subprocess.run(["go", "build", "-o", f"{tmp}/linkruns", "./bench/linkruns"], check=True, cwd=HERE.parent)
        s, messages, nodes = prepare(source, folder, gnb, env)
        messages = {part: torch.from_numpy(np.ascontiguousarray(np.concatenate([e.T, e.T[::-1]], axis=1))) for part, e in messages.items()}
        data = Data(x=features(source, nodes), edge_index=messages["train"])
        for seed in range(SEEDS):
            loads.append(os.getloadavg()[0])
            sides["pyg"].append(pyg(data, messages, s, seed))
            sides["graphnb"].append(graphnb(f"{tmp}/linkruns", folder, seed, env))
            for side, runs in sides.items():
                print(seed, side, {k: [round(x, 4) for x in v] for k, v in runs[-1].items()}, flush=True)
    version = json.loads(subprocess.run([gnb, "version", "--json"], capture_output=True, text=True, check=True).stdout)
    rows = []
    for side, runs in sides.items():
        row = {"side": side, "runs": [{k: [round(x, 4) for x in v] for k, v in r.items()} for r in runs]}
        for part in ("val", "test"):
            values = [100 * r[part][-1] for r in runs]
            row[part + "_mrr"] = [round(statistics.mean(values), 2), round(statistics.stdev(values), 2)]
        for k in ("seconds", "cpu_seconds"):
            row[k] = round(statistics.median(x for r in runs for x in r[k]), 2)
        rows.append(row)
        print(side, {k: v for k, v in row.items() if k != "runs"})
    import pyg_lib
    record = {
        "command": f"linkruns {FLAGS} --seed K arxiv split", "rows": rows, "messages": {part: e.size(1) for part, e in messages.items()}, "train": TRAIN, "evaluated": EVALUATED, "negatives": NEGATIVES, "epochs": EPOCHS,
        "load": [round(x, 1) for x in loads], "date": datetime.date.today().isoformat(), "version": version["version"], "revision": version.get("revision", ""),
        "machine": hardware.describe(),
        "versions": {"torch": torch.__version__, "torch_geometric": torch_geometric.__version__, "pyg_lib": pyg_lib.__version__, "python": platform.python_version()},
    }
    RESULTS.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()

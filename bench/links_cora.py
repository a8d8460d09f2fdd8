"""Trains the graph auto-encoder on Cora with GraphNB and with PyG's example, on the same splits and negatives.

usage: python3 bench/links_cora.py GNB      with a Python that has torch, torch_geometric and scikit-learn

Ten splits of 85/5/10 % of Cora's edges, each with one negative for each edge of validation and test, are drawn and
written to a temporary folder; both sides read these files. PyG's side is its examples/autoencoder.py: row-normalised
features, GCN 32 and 16, dot decoder, no dropout, Adam 0.01, one full-graph step per epoch, negatives drawn anew in each
epoch. GraphNB has the same settings (bench/linkruns). The example has 400 epochs by default; the table has 200 too.
After the last epoch, embeddings are computed with the training edges as messages, and, because the example's test
does so, with those of validation too. The results are recorded in bench/results/links_cora.json. Cora comes from
GNB_DATA (planetoid/ind.cora.*).
"""

import datetime
import json
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile

import hardware
import numpy as np
import torch
import torch_geometric
import torch_geometric.transforms as T
from torch_geometric.datasets import Planetoid
from torch_geometric.nn import GAE, GCNConv

HERE = pathlib.Path(__file__).resolve().parent
RESULTS = HERE / "results" / "links_cora.json"
SPLITS = 10
EPOCHS = (200, 400)
FLAGS = f"--model gcn --hidden 32 --dim 16 --layers 2 --full-graph --epochs {EPOCHS[-1]} --eval {EPOCHS[0]} --lr 0.01 --threads 1"


def split(edge_index, nodes, seed, folder):
    """Writes a split as pairs of int32, and returns it: val, val_neg, test, test_neg, and the pairs left for training."""
    rng = np.random.default_rng(seed)
    pairs = edge_index.T[edge_index[0] < edge_index[1]]
    pairs = pairs[rng.permutation(len(pairs))]
    n_val, n_test = int(0.05 * len(pairs)), int(0.1 * len(pairs))
    known = {(u, v) for u, v in edge_index.T.tolist()}
    negatives = []
    while len(negatives) < n_val + n_test:
        u, v = rng.integers(0, nodes, 2).tolist()
        if u != v and (u, v) not in known:
            known |= {(u, v), (v, u)}
            negatives.append((u, v))
    negatives = np.array(negatives)
    out = {"val": pairs[:n_val], "val_neg": negatives[:n_val], "test": pairs[n_val:n_val + n_test], "test_neg": negatives[n_val:]}
    folder.mkdir()
    for name, e in out.items():
        e.astype("<i4").tofile(folder / name)
    return {**out, "train": pairs[n_val + n_test:]}


class Encoder(torch.nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.conv1, self.conv2 = GCNConv(columns, 32), GCNConv(32, 16)

    def forward(self, x, edge_index):
        return self.conv2(self.conv1(x, edge_index).relu(), edge_index)


def both(pairs):
    """Both directions of pairs, as an edge_index."""
    e = torch.from_numpy(np.ascontiguousarray(pairs.T)).long()
    return torch.cat([e, e.flip(0)], dim=1)


def pyg(x, s, seed):
    """The metrics of PyG's side: {epochs: {"auc", "ap", "auc_val_messages", "ap_val_messages"}}."""
    torch.manual_seed(seed)
    model = GAE(Encoder(x.size(1)))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    messages, more = both(s["train"]), both(np.concatenate([s["train"], s["val"]]))
    positive = torch.from_numpy(np.ascontiguousarray(s["train"].T)).long()
    out = {}
    for epoch in range(1, EPOCHS[-1] + 1):
        model.train()
        optimizer.zero_grad()
        z = model.encode(x, messages)
        model.recon_loss(z, positive).backward()
        optimizer.step()
        if epoch in EPOCHS:
            model.eval()
            with torch.no_grad():
                pos, neg = (torch.from_numpy(np.ascontiguousarray(s[n].T)).long() for n in ("test", "test_neg"))
                auc, ap = model.test(model.encode(x, messages), pos, neg)
                auc2, ap2 = model.test(model.encode(x, more), pos, neg)
            out[epoch] = {"auc": float(auc), "ap": float(ap), "auc_val_messages": float(auc2), "ap_val_messages": float(ap2)}
    return out


def graphnb(linkruns, data, folder, seed, env):
    out = {e: {} for e in EPOCHS}
    for suffix, flag in (("", []), ("_val_messages", ["--known-messages"])):
        command = [linkruns, *FLAGS.split(), *flag, "--seed", str(seed), str(data), str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, env=env)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
        values = json.loads(done.stdout)
        for e in EPOCHS:
            out[e] |= {metric + suffix: values[f"test_{metric}_{e}"] for metric in ("auc", "ap")}
    return out


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    gnb = os.path.abspath(sys.argv[1])
    raw = pathlib.Path(os.environ.get("GNB_DATA", HERE / "../../shared/data")) / "planetoid"
    torch.set_num_threads(1)
    results = {"pyg": [], "graphnb": []}
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        env = {**os.environ, "GNB_RUNS": str(tmp / "runs")}
        subprocess.run([gnb, "data", "convert", str(raw), str(tmp / "cora")], check=True, stdout=subprocess.DEVNULL, env=env)
        subprocess.run(["go", "build", "-o", str(tmp / "linkruns"), "./bench/linkruns"], check=True, cwd=HERE.parent)
        (tmp / "pyg/Cora").mkdir(parents=True)
        shutil.copytree(raw, tmp / "pyg/Cora/raw")
        data = Planetoid(str(tmp / "pyg"), "Cora", transform=T.NormalizeFeatures())[0]
        for seed in range(SPLITS):
            folder = tmp / f"split{seed}"
            s = split(data.edge_index.numpy(), data.num_nodes, seed, folder)
            results["pyg"].append(pyg(data.x, s, seed))
            results["graphnb"].append(graphnb(str(tmp / "linkruns"), tmp / "cora", folder, seed, env))
            print(seed, {side: {e: {k: round(100 * v, 2) for k, v in m.items()} for e, m in r[-1].items()} for side, r in results.items()}, flush=True)
    version = json.loads(subprocess.run([gnb, "version", "--json"], capture_output=True, text=True, check=True).stdout)
    rows = []
    for side, runs in results.items():
        for epochs in EPOCHS:
            for suffix in ("", "_val_messages"):
                row = {"side": side, "epochs": epochs, "messages": "training and validation" if suffix else "training"}
                for metric in ("auc", "ap"):
                    values = [100 * r[epochs][metric + suffix] for r in runs]
                    row[metric] = [round(v, 2) for v in values]
                    row[metric + "_mean"] = round(statistics.mean(values), 2)
                    row[metric + "_deviation"] = round(statistics.stdev(values), 2)
                rows.append(row)
    for r in rows:
        print(f"{r['side']:8} {r['epochs']} epochs, messages {r['messages']}: AUC {r['auc_mean']} ± {r['auc_deviation']}, AP {r['ap_mean']} ± {r['ap_deviation']}")
    record = {
        "command": f"linkruns {FLAGS} --seed K cora split", "rows": rows, "date": datetime.date.today().isoformat(), "version": version["version"], "revision": version.get("revision", ""),
        "machine": hardware.describe(),
        "versions": {"torch": torch.__version__, "torch_geometric": torch_geometric.__version__, "python": platform.python_version()},
    }
    RESULTS.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()

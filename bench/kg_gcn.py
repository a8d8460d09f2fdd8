"""Trains CompGCN and R-GCN with decoders on UMLS and kinship with GraphNB, and the same models in PyTorch.

usage: python3 bench/kg_gcn.py GNB      with a Python that has torch and numpy

Both sides have the same layers (GraphNB's nn.CompGCNConv: mean over each direction, composition "mult", one layer; and
nn.RGCNConv: mean by relation, 4 bases, two layers, ReLU), the same decoder, loss (1vsall over reciprocal queries),
columns, dropouts, batch and Adam; the best of every tenth epoch by the validation MRR gives the filtered test MRR, with
ties at their mean rank. Initial values and the order of queries are drawn by each side itself. Means and deviations of
three seeds are recorded in bench/results/kg_gcn.json. The triples come from GNB_DATA (kg/umls, kg/kinship).
"""

import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import hardware
import numpy as np
import torch
from torch.nn.functional import dropout

HERE = pathlib.Path(__file__).resolve().parent
RESULTS = HERE / "results" / "kg_gcn.json"
SEEDS, DIM, EPOCHS, BATCH, LR = (1, 2, 3), 64, 60, 128, 0.005
CASES = [(data, encoder, decoder) for data in ("umls", "kinship") for encoder, decoder in (("compgcn", "distmult"), ("compgcn", "complex"), ("rgcn", "distmult"))]


def read(folder):
    """The triples of the three files as arrays [n, 3], and the numbers of entities and relations."""
    entities, relations, parts = {}, {}, []
    for name in ("train", "valid", "test"):
        rows = [line.split("\t") for line in (folder / f"{name}.txt").read_text().splitlines() if line]
        parts.append(np.array([(entities.setdefault(h, len(entities)), relations.setdefault(r, len(relations)), entities.setdefault(t, len(entities))) for h, r, t in rows]))
    return parts, len(entities), len(relations)


def reciprocal(t, relations):
    return np.concatenate([t, np.stack([t[:, 2], t[:, 1] + relations, t[:, 0]], 1)])


def param(*shape, bound):
    return torch.nn.Parameter(torch.empty(*shape).uniform_(-bound, bound))


def glorot(*shape):
    return param(*shape, bound=(6 / (shape[-1] + shape[-2])) ** 0.5)


class Model(torch.nn.Module):
    def __init__(self, encoder, decoder, n, relations, graph):
        super().__init__()
        d = 2 * DIM if decoder == "complex" else DIM
        self.encoder, self.decoder, self.n, self.relations = encoder, decoder, n, relations
        self.src, self.rel, self.dst = (torch.from_numpy(graph[:, i].copy()) for i in range(3))
        self.e, self.z = param(n, d, bound=0.1), param(2 * relations, d, bound=0.1)
        groups = self.dst * 2 + (self.rel >= relations) if encoder == "compgcn" else self.dst * 2 * relations + self.rel
        self.weight = 1 / torch.bincount(groups)[groups].float()
        if encoder == "compgcn":
            self.w = torch.nn.ParameterList([glorot(d, d) for _ in range(4)])
            self.loop, self.bias = glorot(1, d), torch.nn.Parameter(torch.zeros(d))
        else:
            self.v, self.comp = (torch.nn.ParameterList([glorot(*s) for _ in range(2)]) for s in ((4, d, d), (2 * relations, 4)))
            self.root, self.b = torch.nn.ParameterList([glorot(d, d) for _ in range(2)]), torch.nn.ParameterList([torch.nn.Parameter(torch.zeros(d)) for _ in range(2)])

    def encode(self):
        h, z = self.e, self.z
        if self.encoder == "compgcn":
            m = h[self.src] * z[self.rel] * self.weight[:, None]
            back = (self.rel >= self.relations)[:, None]
            into = [torch.zeros_like(h).index_add(0, self.dst, m * keep) @ w for keep, w in ((~back, self.w[0]), (back, self.w[1]))]
            y = (into[0] + into[1] + (h * self.loop) @ self.w[2]) / 3 + self.bias
            return dropout(y, 0.2, self.training), z @ self.w[3]
        for i in range(2):
            parts = []
            for k in range(4):
                m = h[self.src] * (self.comp[i][self.rel, k] * self.weight)[:, None]
                parts.append(torch.zeros_like(h).index_add(0, self.dst, m) @ self.v[i][k])
            h = sum(parts) + h @ self.root[i] + self.b[i]
            if i == 0:
                h = dropout(h.relu(), 0.2, self.training)
        return h, z

    def scores(self, h, z, heads, rels):
        x, r = dropout(h[heads], 0.2, self.training), dropout(z[rels], 0.2, self.training)
        if self.decoder == "complex":
            (a, b), (c, d) = x.chunk(2, 1), r.chunk(2, 1)
            return torch.cat([a * c - b * d, a * d + b * c], 1) @ h.t()
        return (x * r) @ h.t()


@torch.no_grad()
def mrr(model, part, known):
    model.eval()
    h, z = model.encode()
    q = reciprocal(part, model.relations)
    scores = model.scores(h, z, torch.from_numpy(q[:, 0].copy()), torch.from_numpy(q[:, 1].copy())).numpy()
    total = 0.0
    for s, (head, rel, tail) in zip(scores, q.tolist()):
        mine, others = s[tail], np.delete(s, known[head, rel])  # tail is among the known
        total += 1 / (1 + (others > mine).sum() + (others == mine).sum() / 2)
    return total / len(q)


def in_torch(folder, encoder, decoder, seed):
    torch.manual_seed(seed)
    (train, valid, test), n, relations = read(folder)
    both, known, queries = reciprocal(train, relations), {}, {}
    for h, r, t in reciprocal(np.concatenate([train, valid, test]), relations).tolist():
        known.setdefault((h, r), []).append(t)
    for h, r, t in both.tolist():
        queries.setdefault((h, r), []).append(t)
    model = Model(encoder, decoder, n, relations, both)
    adam = torch.optim.Adam(model.parameters(), lr=LR)
    pairs, best = list(queries), (0, 0)
    for epoch in range(1, EPOCHS + 1):
        model.train()
        order = torch.randperm(len(pairs)).tolist()
        for lo in range(0, len(order), BATCH):
            chosen = [pairs[i] for i in order[lo:lo + BATCH]]
            heads, rels = torch.tensor(chosen).t()
            rows = torch.tensor([i for i, q in enumerate(chosen) for _ in queries[q]])
            tails = torch.tensor([t for q in chosen for t in queries[q]])
            adam.zero_grad()
            s = model.scores(*model.encode(), heads, rels)
            loss = (s.logsumexp(1)[rows].sum() - s[rows, tails].sum()) / len(tails)
            loss.backward()
            adam.step()
        if epoch % 10 == 0 and (v := mrr(model, valid, known)) > best[0]:
            best = (v, mrr(model, test, known))
    return best[1]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    gnb, rows = os.path.abspath(sys.argv[1]), []
    torch.set_num_threads(1)
    raw = pathlib.Path(os.environ.get("GNB_DATA", HERE / "../../shared/data")) / "kg"
    with tempfile.TemporaryDirectory() as tmp:
        os.environ["GNB_RUNS"] = f"{tmp}/runs"
        for data, encoder, decoder in CASES:
            converted = pathlib.Path(tmp) / data
            if not converted.exists():
                subprocess.run([gnb, "data", "convert", str(raw / data), str(converted)], check=True, stdout=subprocess.DEVNULL)
            flags = f"--task links --decoder {decoder} --encoder {encoder} --dim {DIM} --loss 1vsall --dropout 0.2 --batch {BATCH} --lr {LR} --epochs {EPOCHS} --eval-every 10 --threads 1"
            row = {"data": data, "encoder": encoder, "decoder": decoder, "command": f"gnb train D {flags} --seed K", "graphnb": [], "torch": []}
            for seed in SEEDS:
                done = subprocess.run([gnb, "train", str(converted), *flags.split(), "--seed", str(seed), "--resume", "never", "--json"], capture_output=True, text=True)
                if done.returncode != 0:
                    sys.exit(done.stderr)
                row["graphnb"].append(round(json.loads(done.stdout.splitlines()[-1])["test_mrr"], 4))
                row["torch"].append(round(float(in_torch(raw / data, encoder, decoder, seed)), 4))
            for side in ("graphnb", "torch"):
                row[side + "_mean"], row[side + "_deviation"] = round(statistics.mean(row[side]), 4), round(statistics.stdev(row[side]), 4)
            rows.append(row)
            print(row, flush=True)
    version = json.loads(subprocess.run([gnb, "version", "--json"], capture_output=True, text=True, check=True).stdout)
    record = {"rows": rows, "date": datetime.date.today().isoformat(), "version": version["version"], "revision": version.get("revision", ""), "machine": hardware.describe(), "torch": torch.__version__}
    RESULTS.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()

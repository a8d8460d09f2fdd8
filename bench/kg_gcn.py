"""Trains CompGCN and R-GCN with decoders on knowledge graphs with GraphNB, and the same models in PyTorch.

usage: python3 bench/kg_gcn.py GNB [DATA …]      with a Python that has torch and numpy; DATA: umls, kinship, fb15k-237, wn18rr

Both sides have the same layers (GraphNB's nn.CompGCNConv: mean over each direction, composition "mult", one layer; and
nn.RGCNConv: mean by relation, 4 bases, two layers, ReLU), the same decoder, loss (1vsall over reciprocal queries),
columns, dropouts, batch and Adam; the best evaluation by the validation MRR gives the filtered test MRR, with ties at
their mean rank. Initial values and the order of queries are drawn by each side itself. Each row of
bench/results/kg_gcn.json has the seeds, their means and deviations; rows that are not measured again are kept. The
triples come from GNB_DATA (kg/umls and so on).

On the large graphs a row also has the processor time of an epoch without evaluation, with one thread: PyTorch's is the
median of its epochs, GraphNB's the difference of runs of LONG epochs and SHORT ones, divided by the epochs between them.
PyTorch runs with glibc's allocator set never to return memory, which makes its steps about twice as fast there.
"""

import datetime
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import hardware
import numpy as np
import torch
from torch.nn.functional import dropout

HERE = pathlib.Path(__file__).resolve().parent
RESULTS = HERE / "results" / "kg_gcn.json"
SMALL = {"epochs": 60, "every": 10, "batch": 128, "dim": 64, "lr": 0.005, "seeds": 10, "cases": (("compgcn", "distmult"), ("compgcn", "complex"), ("rgcn", "distmult"))}
LARGE = {"epochs": 10, "every": 5, "batch": 2048, "dim": 64, "lr": 0.01, "seeds": 1, "timed": True, "cases": (("compgcn", "distmult"),)}
DATA = {"umls": SMALL, "kinship": SMALL, "fb15k-237": LARGE, "wn18rr": LARGE}
CHUNK = 1000  # queries that are ranked at a time
SHORT, LONG = 1, 3  # epochs of the runs that are timed
TUNED = {"GLIBC_TUNABLES": "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=17179869184:glibc.malloc.top_pad=268435456"}


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
    def __init__(self, encoder, decoder, dim, n, relations, graph):
        super().__init__()
        d = 2 * dim if decoder == "complex" else dim
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


def known_answers(parts, relations):
    """The tails of each query (head, relation) in any of the parts."""
    known = {}
    for h, r, t in reciprocal(np.concatenate(parts), relations).tolist():
        known.setdefault((h, r), []).append(t)
    return known


def mean_reciprocal_rank(score, part, relations, known):
    """The filtered MRR of the triples of a part from both ends; score returns the scores of queries for all entities."""
    q = reciprocal(part, relations)
    total = 0.0
    for lo in range(0, len(q), CHUNK):
        part = q[lo:lo + CHUNK]
        scores = score(torch.from_numpy(part[:, 0].copy()), torch.from_numpy(part[:, 1].copy())).numpy()
        for s, (head, rel, tail) in zip(scores, part.tolist()):
            mine, others = s[tail], np.delete(s, known[head, rel])  # tail is among the known
            total += 1 / (1 + (others > mine).sum() + (others == mine).sum() / 2)
    return total / len(q)


@torch.no_grad()
def mrr(model, part, known):
    model.eval()
    h, z = model.encode()
    return mean_reciprocal_rank(lambda heads, rels: model.scores(h, z, heads, rels), part, model.relations, known)


def in_torch(folder, encoder, decoder, seed, o):
    """The filtered MRR of the test triples, and the processor seconds of an epoch."""
    torch.manual_seed(seed)
    (train, valid, test), n, relations = read(folder)
    both, known, queries = reciprocal(train, relations), known_answers((train, valid, test), relations), {}
    for h, r, t in both.tolist():
        queries.setdefault((h, r), []).append(t)
    model = Model(encoder, decoder, o["dim"], n, relations, both)
    adam = torch.optim.Adam(model.parameters(), lr=o["lr"])
    pairs, best, spent = list(queries), (0, 0), []
    for epoch in range(1, o["epochs"] + 1):
        began = time.process_time()
        model.train()
        order = torch.randperm(len(pairs)).tolist()
        for lo in range(0, len(order), o["batch"]):
            chosen = [pairs[i] for i in order[lo:lo + o["batch"]]]
            heads, rels = torch.tensor(chosen).t()
            rows = torch.tensor([i for i, q in enumerate(chosen) for _ in queries[q]])
            tails = torch.tensor([t for q in chosen for t in queries[q]])
            adam.zero_grad()
            s = model.scores(*model.encode(), heads, rels)
            loss = (s.logsumexp(1)[rows].sum() - s[rows, tails].sum()) / len(tails)
            loss.backward()
            adam.step()
        spent.append(time.process_time() - began)
        if epoch % o["every"] == 0 and (v := mrr(model, valid, known)) > best[0]:
            best = (v, mrr(model, test, known))
    return best[1], statistics.median(spent)


def train(command):
    """The result of a command, and its processor seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return json.loads(done.stdout.splitlines()[-1]), after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if os.environ.get("GLIBC_TUNABLES") != TUNED["GLIBC_TUNABLES"]:  # read when a process starts
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | TUNED)
    gnb, names = os.path.abspath(sys.argv[1]), sys.argv[2:] or list(DATA)
    torch.set_num_threads(1)
    raw = pathlib.Path(os.environ.get("GNB_DATA", HERE / "../../shared/data")) / "kg"
    version = json.loads(subprocess.run([gnb, "version", "--json"], capture_output=True, text=True, check=True).stdout)
    with tempfile.TemporaryDirectory() as tmp:
        os.environ["GNB_RUNS"] = f"{tmp}/runs"
        for data in names:
            o, converted = DATA[data], pathlib.Path(tmp) / data
            subprocess.run([gnb, "data", "convert", str(raw / data), str(converted)], check=True, stdout=subprocess.DEVNULL)
            for encoder, decoder in o["cases"]:
                flags = f"--task links --decoder {decoder} --encoder {encoder} --dim {o['dim']} --loss 1vsall --dropout 0.2 --batch {o['batch']} --lr {o['lr']} --threads 1"
                ours = [gnb, "train", str(converted), *flags.split(), "--resume", "never", "--json"]
                watched = f"--epochs {o['epochs']} --eval-every {o['every']}"
                row = {"data": data, "encoder": encoder, "decoder": decoder, "command": f"gnb train D {flags} {watched} --seed K", "graphnb": [], "torch": []}
                for seed in range(1, o["seeds"] + 1):
                    result, _ = train([*ours, *watched.split(), "--seed", str(seed)])
                    row["graphnb"].append(round(result["test_mrr"], 4))
                    test, epoch = in_torch(raw / data, encoder, decoder, seed, o)
                    row["torch"].append(round(float(test), 4))
                    if o.get("timed") and seed == 1:
                        times = [train([*ours, "--epochs", str(n), "--eval", "none", "--seed", "1"])[1] for n in (SHORT, LONG)]
                        row |= {"graphnb_epoch": round((times[1] - times[0]) / (LONG - SHORT), 1), "torch_epoch": round(epoch, 1)}
                    print(row, flush=True)
                for side in ("graphnb", "torch"):
                    row[side + "_mean"] = round(statistics.mean(row[side]), 4)
                    row[side + "_deviation"] = round(statistics.stdev(row[side]), 4) if o["seeds"] > 1 else None
                row |= {"date": datetime.date.today().isoformat(), "version": version["version"], "revision": version.get("revision", ""), "machine": hardware.describe(), "versions": {"torch": torch.__version__}}
                rows = json.loads(RESULTS.read_text())["rows"] if RESULTS.exists() else []
                key = lambda r: (list(DATA).index(r["data"]), r["encoder"], r["decoder"])
                rows = sorted([r for r in rows if key(r) != key(row)] + [row], key=key)
                RESULTS.write_text(json.dumps({"rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()

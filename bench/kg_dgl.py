"""Trains an R-GCN before DistMult on FB15k-237 with GraphNB and with DGL, by the recipe of DGL's example.

usage: python3 bench/kg_dgl.py GNB [--seeds N] [--steps N] [--columns N]      with a Python that has torch, dgl and numpy
    (the environment of make bench-peers: torch 2.2.1 and dgl 2.1.0)

Both sides: 30,000 triples a step, of which a random half are messages, with their reverses; ten negatives for each triple;
learned rows, two layers of dgl.nn.RelGraphConv or nn.RGCNConv with block-diagonal matrices of 5 columns, ReLU and dropout
0.2 between; binary cross-entropy, Adam with 0.01, gradients clipped at 1. Each side keeps its own sampling and parts of
the model: DGL divides a sum by the in-degree, draws triples with replacement, negatives among the entities of a step, adds
the example's L2 term of 0.01, and asks for heads with the relation's own row; GraphNB takes means by relation, goes
through the triples in turns, draws negatives among all entities that are no known triples, has no L2 term, and asks for
heads with the reverse relation's row. The example takes the test triples as messages when it is evaluated; here both sides
take the training triples. The filtered test MRR is that after the last step, with ties at their mean rank. The sides take
turns, seed by seed, with one thread each. PyTorch runs with glibc's allocator set never to return memory. The time of a
step is processor time without evaluation: DGL's is the median of its steps, GraphNB's the difference of a long and a short
run, divided by the steps between them. bench/results/kg_dgl.json has the result. The triples come from GNB_DATA.
"""

import argparse
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import hardware
import numpy as np
import torch
import torch.nn.functional as F
from kg_gcn import TUNED, known_answers, mean_reciprocal_rank, read, train

HERE = pathlib.Path(__file__).resolve().parent
RESULTS = HERE / "results" / "kg_dgl.json"
SAMPLE, NEGATIVES, BLOCK, LR, DROPOUT, L2 = 30000, 10, 5, 0.01, 0.2, 0.01
SHORT, LONG = 1, 3  # epochs of GraphNB's runs that are timed


class RGCN(torch.nn.Module):
    def __init__(self, entities, relations, columns):
        super().__init__()
        from dgl.nn import RelGraphConv

        self.rows = torch.nn.Embedding(entities, columns)
        self.convs = torch.nn.ModuleList([RelGraphConv(columns, columns, 2 * relations, "bdd", columns // BLOCK, self_loop=True) for _ in range(2)])
        self.relation = torch.nn.Parameter(torch.empty(relations, columns))
        torch.nn.init.xavier_uniform_(self.relation, gain=torch.nn.init.calculate_gain("relu"))

    def forward(self, src, dst, rel, nodes):
        import dgl

        g = dgl.graph((torch.from_numpy(src), torch.from_numpy(dst)), num_nodes=len(nodes))
        norm = dgl.norm_by_dst(g).unsqueeze(-1)
        rel = torch.from_numpy(rel)
        h = F.dropout(self.convs[0](g, self.rows(torch.from_numpy(nodes)), rel, norm).relu(), DROPOUT, self.training)
        return self.convs[1](g, h, rel, norm)


def both_ways(t, relations):
    """Sources, destinations and relations of triples and their reverses."""
    return np.concatenate([t[:, 0], t[:, 2]]), np.concatenate([t[:, 2], t[:, 0]]), np.concatenate([t[:, 1], t[:, 1] + relations])


def in_dgl(folder, seed, steps, columns):
    """The filtered MRR of the test triples, and the processor seconds of a step."""
    import dgl

    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    (known, valid, test), n, relations = read(folder)
    model = RGCN(n, relations, columns)
    adam = torch.optim.Adam(model.parameters(), lr=LR)
    spent = []
    model.train()
    for _ in range(steps):
        began = time.process_time()
        t = known[rng.integers(len(known), size=SAMPLE)]
        nodes, ends = np.unique(t[:, [0, 2]], return_inverse=True)
        ends = ends.reshape(-1, 2)
        t = np.stack([ends[:, 0], t[:, 1], ends[:, 1]], 1)
        h = model(*both_ways(t[rng.permutation(SAMPLE)[: SAMPLE // 2]], relations), nodes)
        head, rel, tail = torch.from_numpy(t).T
        a, r, b = h[head], model.relation[rel], h[tail]
        # A false triple is a query, which ends in a tail (first half) or a head, and an entity; DGL takes the products in place.
        q = torch.arange(SAMPLE).repeat_interleave(NEGATIVES) + torch.from_numpy(rng.integers(2, size=SAMPLE * NEGATIVES)) * SAMPLE
        false = dgl.create_block((q, torch.from_numpy(rng.integers(len(nodes), size=SAMPLE * NEGATIVES))), 2 * SAMPLE, len(nodes))
        scores = torch.cat([(a * r * b).sum(1), dgl.ops.u_dot_v(false, torch.cat([a * r, r * b]), h).flatten()])
        labels = torch.zeros(len(scores))
        labels[:SAMPLE] = 1
        loss = F.binary_cross_entropy_with_logits(scores, labels) + L2 * (h.square().mean() + model.relation.square().mean())
        adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        spent.append(time.process_time() - began)
    model.eval()
    with torch.no_grad():
        h = model(*both_ways(known, relations), np.arange(n))
        z = torch.cat([model.relation, model.relation])
        test = mean_reciprocal_rank(lambda heads, rels: (h[heads] * z[rels]) @ h.t(), test, relations, known_answers((known, valid, test), relations))
    return test, statistics.median(spent)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("gnb")
    p.add_argument("--seeds", type=int, default=3)
    p.add_argument("--steps", type=int, default=1000)
    p.add_argument("--columns", type=int, default=200)
    o = p.parse_args()
    if os.environ.get("GLIBC_TUNABLES") != TUNED["GLIBC_TUNABLES"]:  # read when a process starts
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | TUNED)
    import dgl

    torch.set_num_threads(1)
    gnb = os.path.abspath(o.gnb)
    raw = pathlib.Path(os.environ.get("GNB_DATA", HERE / "../../shared/data")) / "kg/fb15k-237"
    version = json.loads(subprocess.run([gnb, "version", "--json"], capture_output=True, text=True, check=True).stdout)
    with tempfile.TemporaryDirectory() as tmp:
        os.environ["GNB_RUNS"] = f"{tmp}/runs"
        data = pathlib.Path(tmp) / "fb15k-237"
        subprocess.run([gnb, "data", "convert", str(raw), str(data)], check=True, stdout=subprocess.DEVNULL)
        queries = 2 * sum(1 for _ in open(raw / "train.txt"))
        epoch = -(-queries // SAMPLE)  # steps
        flags = f"--task triples --decoder distmult --encoder rgcn --encoder-blocks {o.columns // BLOCK} --dim {o.columns} --loss bce --negatives {NEGATIVES} --batch {SAMPLE} --messages 0.5 --lr {LR} --clip 1 --dropout 0 --encoder-dropout {DROPOUT} --threads 1"
        ours = [gnb, "train", str(data), *flags.split(), "--resume", "never", "--json"]
        row = {"graphnb": [], "dgl": [], "columns": o.columns}
        for seed in range(1, o.seeds + 1):
            test, step = in_dgl(raw, seed, o.steps, o.columns)
            row["dgl"].append(round(float(test), 4))
            print(row, flush=True)
            epochs = -(-o.steps // epoch)
            result, _ = train([*ours, "--epochs", str(epochs), "--eval-every", str(epochs), "--seed", str(seed)])
            row["graphnb"].append(round(result["test_mrr"], 4))
            if seed == 1:
                times = [train([*ours, "--epochs", str(n), "--eval", "none", "--seed", "1"]) for n in (SHORT, LONG)]
                row |= {"dgl_step": round(step, 3), "graphnb_step": round((times[1][1] - times[0][1]) / (times[1][0]["steps"] - times[0][0]["steps"]), 3)}
                row |= {"dgl_steps": o.steps, "graphnb_steps": result["steps"]}
            print(row, flush=True)
            for side in ("graphnb", "dgl"):
                row[side + "_mean"] = round(statistics.mean(row[side]), 4)
                row[side + "_deviation"] = round(statistics.stdev(row[side]), 4) if seed > 1 else None
            row |= {"command": f"gnb train D {flags} --epochs {epochs} --eval-every {epochs} --seed K"}
            row |= {"date": datetime.date.today().isoformat(), "version": version["version"], "revision": version.get("revision", ""), "machine": hardware.describe(), "versions": {"torch": torch.__version__, "dgl": dgl.__version__}}
            RESULTS.write_text(json.dumps(row, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""TGN of PyG, or of TGM, trained on given events and evaluated on given negatives.

usage: python3 bench/temporal/tgn.py EVENTS.npz [--of pyg|tgm] [--seeds 5] [--epochs 50] [--patience 10] [--threads 0] [--time 0]
       EVENTS.npz is what bench/temporal/data.py writes

The model and its training are those of examples/tgn.py of PyG 2.8.1 (TGM's copies are the same but for what TGM below mends): batches of 200 events in
order, 10 last neighbours, memory, time and embedding of 100 columns, 2 heads, dropout 0.1, Adam with 1e-4, binary cross-entropy of each event
and of one random destination between the smallest and the largest. Memory is updated after each batch. The raw message
is a column of ones, as TGNMemory cannot do without one. Times count from the first event, since to TGNMemory all nodes were last
updated at 0.

Evaluation is TGB's: for each event of val and then of test the rank of its destination among its negatives, half of the equal ones before it; MRR. It
goes in batches of 200, and memory and neighbours take in each batch after its scores. A node's embedding is computed once for a batch, not
once for each event as in TGB's examples: that gives the same numbers faster. The test is measured after the epochs whose MRR of val is the best so far.

--time N: seconds of N epochs of training alone, without evaluation, and nothing else. --threads 0 leaves PyTorch's number.
"""

import argparse
import json
import time

import numpy as np
import torch
import torch_geometric
from torch.nn import Linear
from torch_geometric.data import TemporalData
from torch_geometric.loader import TemporalDataLoader
from torch_geometric.nn import TransformerConv
from torch_geometric.nn.models.tgn import LastNeighborLoader

WIDTH, BATCH, NEIGHBORS = 100, 200, 10


def memory_of(kind, nodes):
    if kind == "pyg":
        from torch_geometric.nn import TGNMemory
        from torch_geometric.nn.models.tgn import IdentityMessage, LastAggregator
    else:
        from tgm.nn.encoder.tgn import IdentityMessage, LastAggregator, TGNMemory
    return TGNMemory(nodes, 1, WIDTH, WIDTH, message_module=IdentityMessage(1, WIDTH, WIDTH), aggregator_module=LastAggregator())


class Embedding(torch.nn.Module):
    """GraphAttentionEmbedding of PyG's example."""

    def __init__(self, time_enc):
        super().__init__()
        self.time_enc = time_enc
        self.conv = TransformerConv(WIDTH, WIDTH // 2, heads=2, dropout=0.1, edge_dim=1 + WIDTH)

    def forward(self, x, last_update, edge_index, t, msg):
        rel_t = last_update[edge_index[0]] - t
        return self.conv(x, edge_index, torch.cat([self.time_enc(rel_t.to(x.dtype)), msg], dim=-1))


class Predictor(torch.nn.Module):
    """LinkPredictor of PyG's example, in two steps: its two linear layers by node, then the rest by pair."""

    def __init__(self):
        super().__init__()
        self.lin_src, self.lin_dst, self.lin_final = Linear(WIDTH, WIDTH), Linear(WIDTH, WIDTH), Linear(WIDTH, 1)

    def forward(self, src, dst):
        return self.lin_final((src + dst).relu())


class TGN:
    def __init__(self, kind, data, nodes):
        self.data, self.assoc = data, torch.empty(nodes, dtype=torch.long)
        self.memory = memory_of(kind, nodes)
        if kind == "pyg":
            self.gnn = Embedding(self.memory.time_enc)
        else:
            from tgm.nn.encoder.tgn import GraphAttentionEmbedding

            self.gnn = GraphAttentionEmbedding(WIDTH, WIDTH, 1, self.memory.time_enc)
        self.link = Predictor()
        self.neighbors = LastNeighborLoader(nodes, size=NEIGHBORS)
        self.parts = (self.memory, self.gnn, self.link)
        self.adam = torch.optim.Adam({p for m in self.parts for p in m.parameters()}, lr=1e-4)

    def embed(self, n_id):
        n_id, edge_index, e_id = self.neighbors(n_id)
        self.assoc[n_id] = torch.arange(n_id.size(0))
        z, last_update = self.memory(n_id)
        return self.gnn(z, last_update, edge_index, self.data.t[e_id], self.data.msg[e_id])

    def take(self, batch):
        self.memory.update_state(batch.src, batch.dst, batch.t, batch.msg)
        self.neighbors.insert(batch.src, batch.dst)

    def mode(self, train):
        for m in self.parts:
            m.train(train)

    def train(self, loader):
        self.mode(True)
        self.memory.reset_state()
        self.neighbors.reset_state()
        total, criterion = 0.0, torch.nn.BCEWithLogitsLoss()
        for batch in loader:
            self.adam.zero_grad()
            z = self.embed(batch.n_id)
            src, dst, neg = (z[self.assoc[x]] for x in (batch.src, batch.dst, batch.neg_dst))
            src = self.link.lin_src(src)
            pos_out, neg_out = self.link(src, self.link.lin_dst(dst)), self.link(src, self.link.lin_dst(neg))
            loss = criterion(pos_out, torch.ones_like(pos_out)) + criterion(neg_out, torch.zeros_like(neg_out))
            self.take(batch)
            loss.backward()
            self.adam.step()
            self.memory.detach()
            total += float(loss) * batch.num_events
        return total / loader.data.num_events

    @torch.no_grad()
    def evaluate(self, data, negatives):
        self.mode(False)
        reciprocal = []
        for lo in range(0, data.num_events, BATCH):
            batch = data[lo : lo + BATCH]
            neg = torch.from_numpy(negatives[lo : lo + BATCH].astype(np.int64))
            there = neg >= 0
            neg = torch.where(there, neg, batch.dst.view(-1, 1))
            z = self.embed(torch.cat([batch.src, batch.dst, neg.view(-1)]).unique())
            left, right = self.link.lin_src(z), self.link.lin_dst(z)
            left = left[self.assoc[batch.src]]
            pos = self.link(left, right[self.assoc[batch.dst]])
            out = torch.cat([self.link(left[i], right[self.assoc[neg[i]]]).view(1, -1) for i in range(len(neg))])
            rank = 0.5 * (((out > pos) & there).sum(1) + ((out >= pos) & there).sum(1)) + 1
            reciprocal.append(1 / rank)
            self.take(batch)
        return float(torch.cat(reciprocal).mean())


def main():
    arg = argparse.ArgumentParser(usage=__doc__)
    arg.add_argument("events")
    arg.add_argument("--of", choices=["pyg", "tgm"], default="pyg")
    for name, value in (("seeds", 5), ("first", 0), ("epochs", 50), ("patience", 10), ("threads", 0), ("time", 0)):
        arg.add_argument(f"--{name}", type=int, default=value)
    arg = arg.parse_args()
    if arg.threads:
        torch.set_num_threads(arg.threads)
    with np.load(arg.events) as f:
        src, dst, t, part, negatives = (f[k] for k in ("src", "dst", "t", "split", "negatives"))
    data = TemporalData(*(torch.from_numpy(x) for x in (src, dst, t - t.min())), msg=torch.ones(len(src), 1))
    train, val, test = (data[torch.from_numpy(part == p)] for p in range(3))
    nodes, first = int(max(src.max(), dst.max())) + 1, int((part == 1).sum())
    for seed in range(arg.first, arg.first + arg.seeds):
        torch_geometric.seed_everything(seed)
        # Destinations of training negatives are between the smallest and the largest of all events, as in TGB's example.
        loader = TemporalDataLoader(train, batch_size=BATCH, neg_sampling_ratio=1.0)
        loader.min_dst, loader.max_dst = int(dst.min()), int(dst.max())
        model = TGN(arg.of, data, nodes)
        best, seconds = None, []
        for epoch in range(1, (arg.time or arg.epochs) + 1):
            start = time.perf_counter()
            loss = model.train(loader)
            seconds.append(round(time.perf_counter() - start, 3))
            row = {"of": arg.of, "seed": seed, "epoch": epoch, "loss": round(loss, 4), "seconds": seconds[-1], "threads": torch.get_num_threads()}
            if not arg.time:
                start = time.perf_counter()
                row["val"] = round(model.evaluate(val, negatives[:first]), 4)
                row["val seconds"] = round(time.perf_counter() - start, 3)
                if best is None or row["val"] > best["val"]:
                    row["test"] = round(model.evaluate(test, negatives[first:]), 4)
                    best = row
            print(json.dumps(row), flush=True)
            if best and epoch - best["epoch"] >= arg.patience:
                break
        print(json.dumps({"of": arg.of, "seed": seed, "best": best, "median seconds": sorted(seconds)[len(seconds) // 2], "threads": torch.get_num_threads()}), flush=True)


if __name__ == "__main__":
    main()

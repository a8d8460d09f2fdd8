"""Times PyG's NeighborLoader with disjoint trees of seeds with times, on the arrays that `go run ./bench/asof --out DIR` writes.

    python bench/asof/pyg.py DIR [--batch 1024] [--rounds 5]

The work is that of bench/asof: fanouts 10 and 10, disjoint=True, time_attr, temporal_strategy uniform and last, on pyg-lib. PyG
expands only the nodes that a hop has newly reached, so a seed has up to 110 edges instead of 120. The loader runs in this process and
with two workers; torch has two threads.
"""

import argparse
import statistics
import time

import numpy as np
import torch
from torch_geometric import typing
from torch_geometric.data import Data
from torch_geometric.loader import NeighborLoader


def main():
    p = argparse.ArgumentParser()
    p.add_argument("dir")
    p.add_argument("--batch", type=int, default=1024)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--workers", default="0,2")
    a = p.parse_args()
    if not typing.WITH_PYG_LIB:
        raise SystemExit("pyg.py: this needs pyg-lib: see bench/peers/pyglib.py")
    torch.set_num_threads(a.threads)
    x = {name: np.fromfile(f"{a.dir}/{name}.i64", dtype="<i8") for name in ("indptr", "indices", "times", "seeds", "seed_times")}
    dst = np.repeat(np.arange(len(x["indptr"]) - 1), np.diff(x["indptr"]))
    data = Data(num_nodes=len(x["indptr"]) - 1, edge_index=torch.from_numpy(np.stack([x["indices"], dst])), time=torch.from_numpy(x["times"]))
    for strategy in ("uniform", "last"):
        for workers in (int(w) for w in a.workers.split(",")):
            start = time.perf_counter()
            loader = NeighborLoader(
                data, [10, 10], input_nodes=torch.from_numpy(x["seeds"]), input_time=torch.from_numpy(x["seed_times"]), time_attr="time",
                disjoint=True, temporal_strategy=strategy, batch_size=a.batch, num_workers=workers, persistent_workers=workers > 0, filter_per_worker=workers > 0,
            )
            made, took, edges, rows = time.perf_counter() - start, [], 0, 0
            for _ in range(1 + a.rounds):  # the first one is a warm-up
                start, edges, rows = time.perf_counter(), 0, 0
                for b in loader:
                    edges, rows = edges + b.edge_index.shape[1], rows + b.n_id.shape[0]
                took.append(time.perf_counter() - start)
            median, n = statistics.median(took[1:]), len(x["seeds"])
            print(f"{strategy:8} {workers} workers: {n / median:.0f} seeds/s, {edges / median / 1e6:.1f} M edges/s; {edges / n:.1f} edges and "
                  f"{rows / n:.1f} rows of a seed; rounds {min(took[1:]):.3f} to {max(took[1:]):.3f} s; made in {made:.1f} s", flush=True)


main()

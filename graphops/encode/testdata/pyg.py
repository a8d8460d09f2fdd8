"""Writes what PyG and SciPy compute of some graphs: return probabilities of random walks, and eigenvalues and projections of the
symmetric normalised Laplacian.

usage: GNB_DATA=/work/shared/data python pyg.py > pyg.json     with a Python that has torch, torch_geometric and scipy

The graphs are the first molecules of MUTAG, and small ones: a path, a star, a cycle, and two components with a node without
edges and a self-loop. "eigenvalues" are those above 0 of the nodes with edges, ascending.
"""

import json
import os
import sys

import numpy as np
import scipy.linalg
import torch
from torch_geometric.data import Data
from torch_geometric.io import read_tu_data
from torch_geometric.transforms import AddRandomWalkPE


def both(pairs):
    return sorted({(u, v) for u, v in pairs} | {(v, u) for u, v in pairs}, key=lambda e: (e[1], e[0]))


graphs = [(6, both([(i, i + 1) for i in range(5)])), (7, both([(0, i) for i in range(1, 7)])), (5, both([(i, (i + 1) % 5) for i in range(5)])),
          (8, both([(0, 1), (1, 2), (2, 0), (4, 5), (5, 6), (6, 7), (7, 7)]))]
data, slices, _ = read_tu_data(os.path.join(os.environ["GNB_DATA"], "graphs", "MUTAG"), "MUTAG")
for g in range(4):
    lo, hi = (int(x) for x in slices["edge_index"][g : g + 2])
    n = int(slices["x"][g + 1] - slices["x"][g])
    graphs.append((n, sorted(map(tuple, data.edge_index[:, lo:hi].t().tolist()), key=lambda e: (e[1], e[0]))))

out = []
for n, edges in graphs:
    index = torch.tensor(edges, dtype=torch.long).t().contiguous()
    rw = AddRandomWalkPE(16, attr_name="pe")(Data(edge_index=index, num_nodes=n)).pe
    a = np.zeros((n, n))
    for u, v in edges:
        if u != v:
            a[u, v] = 1
    keep = a.sum(0) > 0
    a = a[keep][:, keep]
    s = 1 / np.sqrt(a.sum(0))
    values = scipy.linalg.eigh(np.eye(len(a)) - s[:, None] * a * s[None, :], eigvals_only=True)
    out.append({"nodes": n, "edges": edges, "rw": np.round(rw.double().numpy(), 7).tolist(), "eigenvalues": np.round(values[values > 1e-9], 9).tolist()})
json.dump(out, sys.stdout)
print()

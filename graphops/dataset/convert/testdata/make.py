"""Writes ind.tiny.*, a dataset of nine nodes in Planetoid's files.

Run with NumPy in this directory. SciPy is not needed: what a pickle holds of a
csr_matrix is its class's name and its attributes.

Nodes 0 to 4 are in allx, the test nodes are 8, 5 and 7 in that order, and node 6
is in none of the files but the graph, as some of CiteSeer's. The graph has an edge
that is listed twice, edges that are listed in one direction only, and a self-loop.
"""

import collections
import pickle
import sys
import types

import numpy as np

module = types.ModuleType("scipy.sparse.csr")
for name in ("scipy", "scipy.sparse"):
    sys.modules[name] = types.ModuleType(name)
sys.modules[module.__name__] = module


class csr_matrix:
    def __init__(self, dense):
        dense = np.array(dense, np.float32)
        rows, cols = np.nonzero(dense)
        self._shape = dense.shape
        self.indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(dense)))]).astype(np.int32)
        self.indices = cols.astype(np.int32)
        self.data = dense[rows, cols]
        self.maxprint = 50


csr_matrix.__module__ = module.__name__
csr_matrix.__qualname__ = "csr_matrix"
module.csr_matrix = csr_matrix

allx = [[1, 0, 0, 1], [0, 1, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0], [0, 0, 1, 1]]
tx = [[0, 1, 1, 0], [1, 0, 0, 0], [1, 0, 1, 0]]
graph = collections.defaultdict(list)
graph.update({0: [1, 2, 1], 1: [0], 2: [2, 3], 3: [], 4: [5], 5: [8], 6: [7], 7: [6], 8: [0]})
parts = {
    "x": csr_matrix(allx[:2]),
    "y": np.eye(3, dtype=np.int32)[[0, 2]],
    "allx": csr_matrix(allx),
    "ally": np.eye(3, dtype=np.int32)[[0, 2, 1, 1, 0]],
    "tx": csr_matrix(tx),
    "ty": np.eye(3, dtype=np.int32)[[2, 0, 1]],
    "graph": graph,
}
for part, value in parts.items():
    with open(f"ind.tiny.{part}", "wb") as f:
        pickle.dump(value, f, 2)
with open("ind.tiny.test.index", "w") as f:
    f.write("8\n5\n7\n")

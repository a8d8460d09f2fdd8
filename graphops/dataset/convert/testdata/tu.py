"""Writes digests of what PyG's TUDataset makes of folders in the format of TU Dortmund, and the small folder tu/TINY.

usage: GNB_DATA=/work/shared/data python tu.py > tu.json     with a Python that has torch and torch_geometric

A digest is the SHA-256 of the arrays' little-endian bytes, one after another: the offsets of the graphs (int64), the sources and
then the destinations of the edges (int32, by destination and then source), their features (float32), those of the nodes
(float32), and the classes (int32) or targets (float32) of the graphs.
"""

import hashlib
import json
import os
import shutil
import sys

import numpy as np
from torch_geometric.io import read_tu_data

TINY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tu", "TINY")


def tiny():
    rng = np.random.default_rng(3)
    shutil.rmtree(TINY, ignore_errors=True)
    os.makedirs(TINY)
    sizes = [4, 1, 6, 3, 5]
    edges, at = [], 0
    for n in sizes:
        pairs = [(u, v) for u in range(n) for v in range(u) if rng.random() < 0.5]
        edges += [(at + u, at + v) for u, v in pairs] + [(at + v, at + u) for u, v in pairs]
        at += n
    rng.shuffle(edges)

    def put(name, rows):
        with open(os.path.join(TINY, "TINY_" + name + ".txt"), "w") as f:
            for row in rows:
                f.write(", ".join(str(x) for x in row) + "\n")

    put("A", [(u + 1, v + 1) for u, v in edges])
    put("graph_indicator", [(g + 1,) for g, n in enumerate(sizes) for _ in range(n)])
    put("graph_attributes", [(round(rng.standard_normal(), 4), g) for g in range(len(sizes))])
    put("node_labels", [(rng.integers(3, 7), rng.integers(-1, 2)) for _ in range(at)])
    put("node_attributes", [np.round(rng.standard_normal(2), 5) for _ in range(at)])
    put("edge_labels", [(rng.integers(1, 4),) for _ in edges])
    put("edge_attributes", [(round(rng.standard_normal(), 5),) for _ in edges])


def digest(folder, name):
    data, slices, sizes = read_tu_data(folder, name)
    offsets = np.asarray(slices["x"] if "x" in slices else np.cumsum([0] + data._num_nodes), dtype=np.int64)
    edge, at = np.asarray(data.edge_index), np.asarray(slices["edge_index"])
    edge = edge + np.repeat(offsets[:-1], np.diff(at))[None, :]
    order = np.lexsort((edge[0], edge[1]))
    h = hashlib.sha256(offsets.tobytes())
    for part in edge[0][order], edge[1][order]:
        h.update(part.astype("<i4").tobytes())
    if data.edge_attr is not None:
        h.update(np.asarray(data.edge_attr)[order].astype("<f4").tobytes())
    if data.x is not None:
        h.update(np.asarray(data.x).astype("<f4").tobytes())
    y = np.asarray(data.y)
    h.update(y.astype("<f4" if y.dtype.kind == "f" else "<i4").tobytes())
    return {"graphs": len(offsets) - 1, "nodes": int(offsets[-1]), "edges": int(edge.shape[1]), "features": data.x.shape[1],
            "edge_features": 0 if data.edge_attr is None else data.edge_attr.shape[1], "sha256": h.hexdigest()}


tiny()
graphs = os.path.join(os.environ["GNB_DATA"], "graphs")
json.dump({"TINY": digest(TINY, "TINY"), **{n: digest(os.path.join(graphs, n), n) for n in ("MUTAG", "PROTEINS")}}, sys.stdout, indent=1)
print()

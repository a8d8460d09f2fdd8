"""Writes small folders in the layout of ogbn-mag and of DGL's CSVDataset, and what the readers of OGB and DGL make of them.

usage: python peers.py ogb ogb > ogb.json        with a Python that has ogb 1.3.6 and torch
       python peers.py dgl dgl > dgl.json        with a Python that has dgl 2.1.0, pandas and pydantic
"""

import json
import os
import shutil
import sys

import numpy as np
import pandas as pd

KIND, FOLDER = sys.argv[1:3]
rng = np.random.default_rng(7)
COUNTS = {"paper": 23, "author": 9, "institution": 4, "field_of_study": 5}
TRIPLES = [("author", "affiliated_with", "institution"), ("author", "writes", "paper"), ("paper", "cites", "paper"), ("paper", "has_topic", "field_of_study")]


def some_edges(src, dst, n):
    pairs = rng.permutation(COUNTS[src] * COUNTS[dst])[:n]
    return np.stack([pairs // COUNTS[dst], pairs % COUNTS[dst]], 1)


def ogb():
    def csv(name, rows, header=False, **more):
        path = os.path.join(FOLDER, name + ".csv.gz")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        pd.DataFrame(rows).to_csv(path, index=False, header=header, compression={"method": "gzip", "mtime": 1}, **more)

    csv("raw/num-node-dict", {t: [n] for t, n in COUNTS.items()}, header=True)
    csv("raw/triplet-type-list", rng.permutation(TRIPLES))
    csv("raw/nodetype-has-feat", {t: [t == "paper"] for t in COUNTS}, header=True)
    edge_features = {}
    csv("raw/nodetype-has-label", {t: [t == "paper"] for t in COUNTS}, header=True)
    for n, (src, name, dst) in zip((8, 20, 30, 15), TRIPLES):
        folder = f"raw/relations/{src}___{name}___{dst}/"
        csv(folder + "edge", some_edges(src, dst, n))
        csv(folder + "num-edge-list", [n])
        csv(folder + "edge_reltype", np.full((n, 1), TRIPLES.index((src, name, dst))))
        if name in ("writes", "cites"):
            x = rng.standard_normal((n, 2 if name == "writes" else 3)).astype(np.float32)
            edge_features[f"{src}:{name}:{dst}"] = x.tolist()
            csv(folder + "edge-feat", x)
    csv("raw/node-feat/paper/node-feat", rng.standard_normal((COUNTS["paper"], 6)).astype(np.float32))
    csv("raw/node-feat/paper/node_year", rng.integers(2010, 2020, (COUNTS["paper"], 1)))
    csv("raw/node-label/paper/node-label", rng.integers(0, 5, (COUNTS["paper"], 1)))
    csv("split/time/nodetype-has-split", {t: [t == "paper"] for t in COUNTS}, header=True)
    order = rng.permutation(COUNTS["paper"])
    for name, ids in (("train", order[:12]), ("valid", order[12:17]), ("test", order[17:])):
        csv(f"split/time/paper/{name}", np.sort(ids))
    open(os.path.join(FOLDER, "RELEASE_v2.txt"), "w").write("")
    processed = os.path.join(FOLDER, "processed")  # the published archive has this empty folder
    os.makedirs(processed, exist_ok=True)

    from ogb.nodeproppred import NodePropPredDataset

    meta = {"dir_path": FOLDER, "version": 2, "download_name": "mag", "num tasks": 1, "task type": "multiclass classification", "eval metric": "acc", "num classes": 5}
    meta |= {"is hetero": "True", "binary": "False", "url": "", "add_inverse_edge": "False", "additional node files": "node_year", "additional edge files": "edge_reltype", "split": "time"}
    d = NodePropPredDataset("ogbn-mag", meta_dict=meta)
    g, y = d[0]
    split = d.get_idx_split()
    shutil.rmtree(processed)
    return {
        "types": sorted(g["num_nodes_dict"]),
        "counts": {t: int(n) for t, n in g["num_nodes_dict"].items()},
        "edges": {":".join(k): v.T.tolist() for k, v in g["edge_index_dict"].items()},
        "edge_features": edge_features,  # as written: OGB 1.3.6's reader cuts them off at a wrong place and has no rows
        "features": {t: x.tolist() for t, x in g["node_feat_dict"].items()},
        "labels": {t: v.flatten().tolist() for t, v in y.items()},
        "splits": {{"valid": "val"}.get(name, name): {t: ids.tolist() for t, ids in of.items()} for name, of in split.items()},
    }


def dgl():
    os.makedirs(FOLDER, exist_ok=True)
    csv = lambda name, columns: pd.DataFrame(columns).to_csv(os.path.join(FOLDER, name), index=False)
    words = lambda rows: [", ".join(str(v) for v in row) for row in rows]
    ids = {"paper": rng.permutation(100)[: COUNTS["paper"]], "author": np.array([f"a{v}" for v in rng.permutation(99)[: COUNTS["author"]]])}
    n = COUNTS["paper"]
    part = rng.integers(0, 3, n)
    csv("papers.csv", {"node_id": ids["paper"], "label": rng.integers(0, 5, n), "feat": words(rng.standard_normal((n, 4)).astype(np.float32)), "year": rng.integers(2010, 2020, n).astype(float)} | {f"{name}_mask": part == i for i, name in enumerate(("train", "val", "test"))})
    csv("authors.csv", {"node_id": ids["author"], "h": words(rng.standard_normal((COUNTS["author"], 2)).astype(np.float32))})
    cites, writes = some_edges("paper", "paper", 30), some_edges("author", "paper", 20)
    csv("cites.csv", {"src_id": ids["paper"][cites[:, 0]], "dst_id": ids["paper"][cites[:, 1]], "feat": words(rng.standard_normal((30, 3)).astype(np.float32))})
    csv("writes.csv", {"src_id": ids["author"][writes[:, 0]], "dst_id": ids["paper"][writes[:, 1]], "rank": rng.integers(1, 9, 20).astype(float)})
    meta = """dataset_name: mini_mag
node_data:
- file_name: papers.csv
  ntype: paper
- file_name: authors.csv
  ntype: author
edge_data:
- file_name: writes.csv
  etype: [author, writes, paper]
- file_name: cites.csv
  etype: [paper, cites, paper]
"""
    open(os.path.join(FOLDER, "meta.yaml"), "w").write(meta)

    from dgl.data import CSVDataset

    g = CSVDataset(FOLDER, force_reload=True)[0]
    shutil.rmtree(os.path.join(FOLDER, "mini_mag"))  # what DGL has cached
    rows = lambda *xs: np.concatenate([x.float().numpy().reshape(len(x), -1) for x in xs], 1).tolist()
    p = g.nodes["paper"].data
    edges = lambda kind: np.stack([v.numpy() for v in g.edges(etype=kind)], 1).tolist()
    return {
        "types": ["paper", "author"],  # the order of meta.yaml
        "counts": {t: g.num_nodes(t) for t in g.ntypes},
        "edges": {":".join(k): edges(k) for k in g.canonical_etypes},
        "edge_features": {"paper:cites:paper": rows(g.edges["cites"].data["feat"]), "author:writes:paper": rows(g.edges["writes"].data["rank"])},
        "features": {"paper": rows(p["feat"], p["year"]), "author": rows(g.nodes["author"].data["h"])},
        "labels": {"paper": p["label"].tolist()},
        "splits": {name: {"paper": np.flatnonzero(p[f"{name}_mask"].numpy()).tolist()} for name in ("train", "val", "test")},
    }


out = sys.stdout
sys.stdout = sys.stderr  # the readers print
json.dump({"ogb": ogb, "dgl": dgl}[KIND](), out)

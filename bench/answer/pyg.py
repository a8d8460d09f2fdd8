"""A server of predictions of PyG and FastAPI, for comparison with gnb serve-model: the same calls GET /v1/nodes?id=… and POST /v1/new.

usage: python3 bench/answer/pyg.py RUN DATASET [--port 7801] [--workers 2]
       RUN: the directory of a run of SAGE; DATASET: a dataset's directory
       a Python with bench/requirements-newest.txt, pyg-lib, fastapi and uvicorn

The network is PyG's GraphSAGE with the weights of the run. Its neighbours are drawn by a NeighborLoader with the run's fanouts that is made
once: each request calls its sampler without the loader's loop and its workers, layers compute the rows that are read alone, and all runs on one
thread, which is the fastest way that we found. POST /v1/new appends the node and its edges (in both directions) to a copy of the arrays, as there is no other way: it is
here to show that, and takes one second on ogbn-arxiv.
"""

import argparse
import json
import os
import pathlib
import sys

import numpy as np


def app_of(run, dataset):
    import torch
    from fastapi import FastAPI
    from fastapi.responses import JSONResponse
    from safetensors.torch import load_file
    from torch_geometric.data import Data
    from torch_geometric.loader import NeighborLoader
    from torch_geometric.nn import GraphSAGE

    torch.set_num_threads(1)
    run, dataset = pathlib.Path(run), pathlib.Path(dataset)
    weights = load_file(next(p for p in (run / "best.safetensors", run / "model.safetensors") if p.exists()))
    read = lambda n: np.load(dataset / n)
    indptr, indices = read("indptr.npy").astype(np.int64), read("indices.npy").astype(np.int64)
    if (dataset / "features.npy").exists():
        x = torch.from_numpy(read("features.npy").astype(np.float32))
    else:  # sparse features
        at, columns = read("features_indptr.npy"), read("features_indices.npy")
        values = read("features_values.npy") if (dataset / "features_values.npy").exists() else np.ones(len(columns), np.float32)
        x = torch.zeros(len(at) - 1, json.load(open(dataset / "metadata.json"))["feature_dim"])
        x[torch.from_numpy(np.repeat(np.arange(len(at) - 1), np.diff(at))), torch.from_numpy(columns.astype(np.int64))] = torch.from_numpy(values.astype(np.float32))
    edges = torch.from_numpy(np.stack([indices, np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))]))
    layers = 1 + max(int(k.split(".")[1]) for k in weights if k.startswith("convs."))
    config = json.load(open(run / "config.json"))
    fanouts = [int(f) for f in os.environ.get("FANOUTS", "10,10,10").split(",")]
    first, last = weights["convs.0.lin_l.weight"], weights[f"convs.{layers - 1}.lin_l.weight"]
    model = GraphSAGE(first.shape[1], first.shape[0], layers, last.shape[0])
    model.load_state_dict(weights)
    model.eval()

    def loader(x, edges):
        return NeighborLoader(Data(x=x, edge_index=edges), num_neighbors=fanouts, batch_size=1, input_nodes=None)

    known = loader(x, edges)
    app = FastAPI()

    @torch.inference_mode()
    def answer(of, ids):
        batch = of.collate_fn(ids)
        p = model(batch.x, batch.edge_index, num_sampled_nodes_per_hop=batch.num_sampled_nodes, num_sampled_edges_per_hop=batch.num_sampled_edges)[: len(ids)].softmax(1)
        best = p.argmax(1)
        return {"kind": "classes", "answers": [
            {"id": str(v), "class": str(int(best[i])), "probability": float(p[i, best[i]]), "probabilities": {str(c): float(q) for c, q in enumerate(p[i])}} for i, v in enumerate(ids)]}

    @app.get("/v1/nodes")
    async def nodes(id: str):  # computed in the server's loop: a pool of threads is slower on one core
        return JSONResponse(answer(known, [int(id)]))

    @app.post("/v1/new")
    async def new(q: dict):
        n = x.size(0)
        row = torch.tensor(q["nodes"][0]["features"])[None]
        to = torch.tensor([int(e["target"]) for e in q["edges"]])
        back = torch.stack([torch.full_like(to, n), to])
        return JSONResponse(answer(loader(torch.cat([x, row]), torch.cat([edges, back, back.flip(0)], 1)), [n]))

    @app.get("/healthz")
    async def healthz():
        return "ok"

    print(f"{type(model).__name__} of {config.get('id', run.name)}, fanouts {fanouts}", file=sys.stderr)
    return app


def make():
    return app_of(os.environ["PYG_RUN"], os.environ["PYG_DATASET"])


if __name__ == "__main__":
    import uvicorn

    a = argparse.ArgumentParser()
    a.add_argument("run")
    a.add_argument("dataset")
    a.add_argument("--port", type=int, default=7801)
    a.add_argument("--workers", type=int, default=1)
    o = a.parse_args()
    os.environ["PYG_RUN"], os.environ["PYG_DATASET"] = o.run, o.dataset
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
    uvicorn.run("pyg:make", factory=True, host="127.0.0.1", port=o.port, workers=o.workers, log_level="warning", access_log=False)

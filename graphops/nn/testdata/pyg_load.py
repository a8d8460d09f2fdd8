"""Loads models that package nn saved into PyTorch Geometric and predicts with them.

Run by TestPyGLoadsOurWeights with a folder: graph.json holds edges and features, NAME.safetensors
the weights. Prints the predicted classes of each model as JSON. load_state_dict is strict: every
name and shape must be PyG's.
"""
import json
import pathlib
import sys

import numpy as np
import torch
from torch_geometric.nn import GAT, GCN, GIN, GraphSAGE

folder = pathlib.Path(sys.argv[1])
graph = json.loads((folder / "graph.json").read_text())
edges = torch.tensor([graph["src"], graph["dst"]])
n, size = graph["nodes"], graph["in"]
x = torch.tensor(graph["x"]).view(n, size)

MODELS = {
    "sage": lambda: GraphSAGE(size, 16, 2, 4, norm="batch"),
    "gcn": lambda: GCN(size, 16, 2, 4, norm="layer", norm_kwargs={"mode": "node"}),
    "gat": lambda: GAT(size, 16, 2, 4, heads=4, act="elu"),
    "gin": lambda: GIN(size, 16, 2, 4, norm="batch"),
}


def load(path):
    raw = path.read_bytes()
    end = 8 + int.from_bytes(raw[:8], "little")
    state = {}
    for name, t in json.loads(raw[8:end]).items():
        if name != "__metadata__":
            lo, hi = t["data_offsets"]
            state[name] = torch.from_numpy(np.frombuffer(raw[end + lo : end + hi], "<f4").reshape(t["shape"]).copy())
    return state


classes = {}
for name, make in MODELS.items():
    model = make()
    model.load_state_dict(load(folder / f"{name}.safetensors"))
    model.eval()
    with torch.no_grad():
        classes[name] = model(x, edges).argmax(1).tolist()
print(json.dumps(classes))

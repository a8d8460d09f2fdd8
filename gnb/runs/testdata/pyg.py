"""Runs the lines of ModelInfo.PyG in PyTorch Geometric and predicts with the model that they make.

Run by TestPyGRunsTheLines with a folder: cases.json holds, by name, the lines, and the graph with its features. Prints the
outputs of each model as JSON. load_state_dict is strict: every name and shape must be PyG's.
"""
import json
import pathlib
import sys

import torch

folder = pathlib.Path(sys.argv[1])
outputs = {}
for name, case in json.loads((folder / "cases.json").read_text()).items():
    scope = {}
    exec(case["Lines"], scope)
    model = scope["model"]
    assert not model.training
    n = case["Nodes"]
    x = torch.tensor(case["X"]).view(n, -1)
    edges = torch.tensor([case["Src"], case["Dst"]])
    more = {}
    if case["EdgeFeatures"]:
        more["edge_attr"] = torch.tensor(case["EdgeFeatures"]).view(edges.size(1), -1)
    if case["Weights"]:
        more["edge_weight"] = torch.tensor(case["Weights"])
    with torch.no_grad():
        outputs[name] = model(x, edges, **more).flatten().tolist()
print(json.dumps(outputs))

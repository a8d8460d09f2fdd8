"""Writes pytorch.json: what PyTorch and PyTorch Geometric compute for the tests.

Run with torch and torch_geometric installed: python pytorch.py > pytorch.json
Inputs are small fractions of powers of two, so that both sides hold the same.
"""
import json

import torch
import torch.nn.functional as F
import torch_geometric
from torch_geometric.nn import GraphSAGE, SAGEConv

SRC = [1, 2, 3, 4, 5, 2, 1, 1, 4, 5, 6, 0]
DST = [0, 0, 0, 0, 0, 2, 3, 3, 5, 6, 4, 6]
NODES, IN, OUT = 8, 5, 3


def values(n, k):
    return torch.tensor([((i * 37 + k * 11) % 29 - 14) / 8 for i in range(n)])


def fill(module):
    for k, p in enumerate(module.parameters()):
        with torch.no_grad():
            p.copy_(values(p.numel(), k + 1).view(p.shape))


def flat(t):
    return [float(v) for v in t.detach().reshape(-1)]


def params(module, what):
    return {n: {"shape": list(p.shape), "data": flat(what(p))} for n, p in module.named_parameters()}


edges = torch.tensor([SRC, DST])
x = values(NODES * IN, 0).view(NODES, IN)
out = {"torch": torch.__version__, "torch_geometric": torch_geometric.__version__, "layers": {}, "optimizers": {}}

for name, kw in {
    "mean": {},
    "sum": {"aggr": "sum"},
    "max": {"aggr": "max"},
    "mean normalized": {"normalize": True},
    "max normalized": {"aggr": "max", "normalize": True},
    "mean without root": {"root_weight": False},
    "sum without bias": {"aggr": "sum", "bias": False},
}.items():
    conv = SAGEConv(IN, OUT, **kw)
    fill(conv)
    h = x.clone().requires_grad_()
    y = conv(h, edges)
    (y * values(NODES * OUT, 5).view(NODES, OUT)).sum().backward()
    out["layers"][name] = {"y": flat(y), "dx": flat(h.grad), "params": params(conv, lambda p: p), "grads": params(conv, lambda p: p.grad)}

model = GraphSAGE(IN, 4, 3, out_channels=OUT)
fill(model)
y = model(x, edges)
labels = torch.tensor([0, 1, -1, 2, 1, -1, 0, 2])
loss = F.cross_entropy(y, labels, ignore_index=-1, reduction="sum")
loss.backward()
out["model"] = {"y": flat(y), "loss": loss.item(), "labels": labels.tolist(), "params": params(model, lambda p: p), "grads": params(model, lambda p: p.grad)}

N, STEPS = 7, 25
for name, make in {
    "adam": lambda p: torch.optim.Adam(p),
    "adam with options": lambda p: torch.optim.Adam(p, lr=0.01, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1),
    "adamw with options": lambda p: torch.optim.AdamW(p, lr=0.01, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1),
    "adamw": lambda p: torch.optim.AdamW(p),
    "sgd": lambda p: torch.optim.SGD(p),
    "sgd with decay": lambda p: torch.optim.SGD(p, lr=0.05, weight_decay=0.02),
    "sgd with momentum": lambda p: torch.optim.SGD(p, lr=0.05, weight_decay=0.02, momentum=0.9),
    "sgd nesterov": lambda p: torch.optim.SGD(p, lr=0.05, weight_decay=0.02, momentum=0.9, nesterov=True),
}.items():
    w = torch.nn.Parameter(values(N, 1))
    opt = make([w])
    for step in range(STEPS):
        w.grad = values(N, step)
        opt.step()
    state = {k: flat(v) for k, v in opt.state[w].items() if k != "step" and v is not None}
    out["optimizers"][name] = {"steps": STEPS, "w": flat(w), "state": state}

w = torch.nn.Parameter(torch.zeros(N))
w.grad = values(N, 3)
norm = float(torch.nn.utils.clip_grad_norm_([w], 1.5))
out["clip"] = {"norm": norm, "g": flat(w.grad)}
print(json.dumps(out))

"""Writes pyg_typed.json: what PyTorch Geometric computes for the layers of package nn over typed graphs.

scripts/fixtures.sh runs it in a virtual environment of its own:
python pyg_typed.py > pyg_typed.json
CompGCN is not in PyTorch Geometric; the class below is written from the formulas of its paper, one message per edge.
"""
import json

import torch
import torch_geometric
from torch_geometric.nn import GraphConv, HeteroConv, HGTConv, RGCNConv, SAGEConv

# Nodes by type; the ids of a type follow those of the types before it. No node is a venue, and no edge leads to a topic.
NODES = {"paper": 4, "author": 3, "venue": 0, "topic": 2}
RELATIONS = [
    ("author", "writes", "paper"), ("paper", "cites", "paper"), ("paper", "rev_writes", "author"), ("author", "knows", "author"),
    ("venue", "prints", "paper"), ("topic", "of", "paper"), ("author", "reviews", "paper"),
]
REVERSE = [False, False, True, False, False, False, False]
# (source, destination, relation): a hub, a self-loop, two relations between the same nodes, two relations without edges.
EDGES = [
    (4, 0, 0), (5, 0, 0), (4, 1, 0), (6, 1, 0), (1, 0, 1), (2, 0, 1), (3, 1, 1), (0, 0, 1), (2, 3, 1), (0, 4, 2), (0, 5, 2), (1, 4, 2), (1, 6, 2),
    (7, 0, 5), (7, 2, 5), (8, 2, 5), (8, 0, 5), (4, 0, 6), (5, 3, 6),
]
IN, OUT = 5, 6
START = dict(zip(NODES, [0, 4, 7, 7]))
edge_index = torch.tensor([[s for s, _, _ in EDGES], [d for _, d, _ in EDGES]])
edge_type = torch.tensor([t for _, _, t in EDGES])
edges = {
    r: torch.tensor([[s - START[r[0]] for s, _, t in EDGES if t == i], [d - START[r[2]] for _, d, t in EDGES if t == i]], dtype=torch.long).view(2, -1)
    for i, r in enumerate(RELATIONS)
}
METADATA = (list(NODES), RELATIONS)


def values(n, k):
    return torch.tensor([((i * 37 + k * 11) % 29 - 14) / 16 for i in range(n)])


def fill(module):
    with torch.no_grad():
        for k, (name, p) in enumerate(module.named_parameters()):
            p.copy_(values(p.numel(), k + 1).view(p.shape))


def flat(t):
    return [float(f"{float(v):.9g}") for v in t.detach().reshape(-1)]


def tensors(items):
    return {n: {"shape": list(t.shape), "data": flat(t)} for n, t in items}


out = {"torch": torch.__version__, "torch_geometric": torch_geometric.__version__, "cases": {}}


def case(name, module, run, cols=IN):
    """run returns the rows of all nodes; rows of types without output are NaN."""
    fill(module)
    n = sum(NODES.values())
    h = values(n * cols, 0).view(n, cols).requires_grad_()
    y = run(module, h)
    rows = ~y.isnan().any(1)
    (y[rows] * values(y.numel(), 5).view(y.shape)[rows]).sum().backward()
    grads = tensors((n, p.grad if p.grad is not None else torch.zeros_like(p)) for n, p in module.named_parameters())
    y = torch.where(rows[:, None], y, torch.zeros_like(y))
    out["cases"][name] = {"in": cols, "params": tensors(module.state_dict().items()), "y": flat(y), "rows": rows.tolist(), "dx": flat(h.grad), "grads": grads}


def homogeneous(m, h):
    return m(h, edge_index, edge_type)


def typed(m, h):
    parts = dict(zip(NODES, h.split(list(NODES.values()))))
    y = m(parts, edges)
    cols = next(v for v in y.values() if v is not None).shape[1]
    return torch.cat([y[t] if y.get(t) is not None else torch.full((n, cols), float("nan")) for t, n in NODES.items()])


R = len(RELATIONS)
case("rgcn", RGCNConv(IN, OUT, R), homogeneous)
case("rgcn bases", RGCNConv(IN, OUT, R, num_bases=3), homogeneous)
case("rgcn bases, sum", RGCNConv(IN, OUT, R, num_bases=2, aggr="sum"), homogeneous)
case("rgcn blocks", RGCNConv(6, OUT, R, num_blocks=2), homogeneous, 6)
case("rgcn, sum, no root, no bias", RGCNConv(IN, OUT, R, aggr="sum", root_weight=False, bias=False), homogeneous)
case("hgt", HGTConv(IN, OUT, METADATA, heads=2), typed)
case("hgt skip", HGTConv(OUT, OUT, METADATA, heads=3), typed, OUT)
case("hgt one head", HGTConv(IN, OUT, METADATA), typed)
case("per relation, sage", HeteroConv({r: SAGEConv(IN, OUT) for r in RELATIONS}, aggr="sum"), typed)
case("per relation, sage, mean", HeteroConv({r: SAGEConv(IN, OUT) for r in RELATIONS}, aggr="mean"), typed)
case("per relation, graph", HeteroConv({r: GraphConv(IN, OUT) for r in RELATIONS}, aggr="sum"), typed)


class CompGCN(torch.nn.Module):
    """One layer. The relations' rows z are a parameter, and its result has those of the next layer below it."""

    def __init__(self, composition, mean=True, bias=True):
        super().__init__()
        self.composition, self.mean = composition, mean
        for name in ("w_in", "w_out", "w_loop", "w_rel"):
            setattr(self, name, torch.nn.Linear(IN, OUT, bias=False))
        self.loop_rel = torch.nn.Parameter(torch.empty(1, IN))
        if bias:
            self.bias = torch.nn.Parameter(torch.empty(OUT))
        self.rel = torch.nn.Parameter(torch.empty(R, IN))

    def phi(self, x, z):
        if self.composition == "sub":
            return x - z
        if self.composition == "mult":
            return x * z
        n = x.shape[1]
        return torch.stack([sum(x[:, i] * z[:, (i + k) % n] for i in range(n)) for k in range(n)], 1)

    def forward(self, x):
        total = self.w_loop(self.phi(x, self.loop_rel.expand(len(x), -1)))
        for lin, reverse in ((self.w_in, False), (self.w_out, True)):
            some = torch.tensor([REVERSE[t] == reverse for _, _, t in EDGES])
            src, dst = edge_index[:, some]
            messages = self.phi(x[src], self.rel[edge_type[some]])
            if self.mean:
                messages = messages / torch.bincount(dst, minlength=len(x))[dst][:, None]
            total = total + lin(torch.zeros(len(x), IN).index_add(0, dst, messages))
        y = total / 3
        if hasattr(self, "bias"):
            y = y + self.bias
        return torch.cat([y, self.w_rel(self.rel)])


for c in ("sub", "mult", "corr"):
    case("compgcn " + c, CompGCN(c), lambda m, h: m(h))
case("compgcn corr, sum, no bias", CompGCN("corr", mean=False, bias=False), lambda m, h: m(h))
print(json.dumps(out, separators=(",", ":")))

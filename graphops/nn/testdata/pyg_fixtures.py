"""Writes pyg.json: what PyTorch Geometric computes for the layers and models of package nn.

scripts/fixtures.sh runs it in a virtual environment of its own:
python pyg_fixtures.py > pyg.json
Inputs and parameters are small fractions of powers of two, so that both sides hold the same.
"""
import json

import torch
import torch.nn.functional as F
import torch_geometric
from torch_geometric.nn import (
    GAT, GCN, GIN, AttentionalAggregation, BatchNorm, GATConv, GATv2Conv, GCNConv, GINConv, GINEConv, GraphConv, GraphSAGE, LayerNorm,
    PNAConv, ResGatedGraphConv, SAGEConv, Set2Set, TransformerConv, global_add_pool
)
from torch_geometric.nn.models import MLP
from torch_geometric.nn.models.tgn import TimeEncoder

# A star into node 0, self-loops at 2 and 6, a duplicate edge 1 -> 3, a cycle and an isolated node 7.
# Ordered by destination, then source: an edge's place is its CSC position.
EDGES = [(1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (2, 2), (3, 2), (1, 3), (1, 3), (6, 4), (4, 5), (0, 6), (5, 6), (6, 6)]
NODES, IN, OUT, EDGE = 8, 5, 3, 2


def values(n, k):
    return torch.tensor([((i * 37 + k * 11) % 29 - 14) / 16 for i in range(n)])


def fill(module):
    with torch.no_grad():
        for k, (name, p) in enumerate(module.named_parameters()):
            p.copy_(values(p.numel(), k + 1).view(p.shape))


def flat(t):
    return [float(f"{float(v):.9g}") for v in t.detach().reshape(-1)]


def tensors(items):
    return {n: {"shape": list(t.shape), "data": flat(t)} for n, t in items if t.dtype == torch.float32}


edges = torch.tensor(EDGES).t().contiguous()
weight = torch.tensor([(i % 5 + 1) / 4 for i in range(len(EDGES))])
attr = values(len(EDGES) * EDGE, 7).view(-1, EDGE)
wide = values(len(EDGES) * IN, 9).view(-1, IN)
x = values(NODES * IN, 0).view(NODES, IN)
out = {"torch": torch.__version__, "torch_geometric": torch_geometric.__version__, "cases": {}}


def case(name, module, run, train=False):
    fill(module)
    module.train(train)
    before = tensors(module.state_dict().items())
    h = x.clone().requires_grad_()
    y = run(module, h)
    (y * values(y.numel(), 5).view(y.shape)).sum().backward()
    grads = tensors((n, p.grad) for n, p in module.named_parameters())
    after = tensors((n, b) for n, b in module.named_buffers())
    out["cases"][name] = {"params": before, "y": flat(y), "dx": flat(h.grad), "grads": grads, "buffers": after}


plain = lambda m, h: m(h, edges)
weighted = lambda m, h: m(h, edges, weight)
edged = lambda m, h: m(h, edges, edge_attr=attr)

case("gcn narrow", GCNConv(IN, OUT), plain)
case("gcn wide", GCNConv(IN, 7), plain)
case("gcn weighted", GCNConv(IN, OUT), weighted)
case("gcn without bias", GCNConv(IN, OUT, bias=False), plain)
case("gat", GATConv(IN, OUT), plain)
case("gat heads", GATConv(IN, OUT, heads=4), plain)
case("gat mean", GATConv(IN, OUT, heads=4, concat=False, negative_slope=0.1), plain)
case("gatv2", GATv2Conv(IN, OUT), plain)
case("gatv2 heads, edges", GATv2Conv(IN, OUT, heads=4, edge_dim=EDGE), edged)
case("gatv2 mean, shared, edges", GATv2Conv(IN, OUT, heads=4, concat=False, negative_slope=0.1, share_weights=True, edge_dim=EDGE), edged)
case("gatv2 without bias", GATv2Conv(IN, OUT, heads=2, bias=False), plain)
case("gine", GINEConv(MLP([IN, 4, OUT], norm=None), eps=0.25, edge_dim=EDGE), edged)
case("gine trained", GINEConv(MLP([IN, 4, OUT], norm=None), train_eps=True, edge_dim=EDGE), edged)
case("gine, edges as they are", GINEConv(MLP([IN, 4, OUT], norm=None)), lambda m, h: m(h, edges, edge_attr=wide))
case("transformer", TransformerConv(IN, OUT), plain)
case("transformer heads, edges", TransformerConv(IN, OUT, heads=4, edge_dim=EDGE), edged)
case("transformer mean, beta, edges", TransformerConv(IN, OUT, heads=4, concat=False, beta=True, edge_dim=EDGE), edged)
case("transformer beta", TransformerConv(IN, OUT, heads=2, beta=True), plain)
case("transformer without bias, edges", TransformerConv(IN, OUT, heads=2, bias=False, edge_dim=EDGE), edged)
# Rows of edges that are made of the input, so that its gradient goes through them.
made = lambda m, h: m(h, edges, edge_attr=h[edges[0], :EDGE] * h[edges[1], 1:1 + EDGE])
case("transformer heads, rows of edges", TransformerConv(IN, OUT, heads=4, edge_dim=EDGE), made)
case("transformer mean, beta, rows of edges", TransformerConv(IN, OUT, concat=False, beta=True, edge_dim=EDGE), made)
case("resgated", ResGatedGraphConv(IN, OUT), plain)
case("resgated, edges", ResGatedGraphConv(IN, OUT, edge_dim=EDGE), edged)


class GatedGCN(torch.nn.Module):
    """The layer of GraphGPS, without what surrounds it: its rows of nodes and, next to them, sums of its rows of edges."""

    def __init__(self, edge_dim, width=IN, out=OUT):
        super().__init__()
        self.A, self.B, self.D, self.E = (torch.nn.Linear(width, out) for _ in range(4))
        if edge_dim:
            self.C = torch.nn.Linear(edge_dim, out)

    def both(self, h, e):
        src, dst = edges
        gates = self.D(h)[dst] + self.E(h)[src]
        if e is not None:
            gates = gates + self.C(e)
        share = gates.sigmoid()
        return self.A(h) + self.total(share * self.B(h)[src]) / (self.total(share) + 1e-6), gates

    def total(self, m):
        return torch.zeros(NODES, m.shape[1]).index_add(0, edges[1], m)

    def forward(self, h, e=None):
        y, gates = self.both(h, e)
        return torch.cat([y, self.total(gates)], dim=1)


case("gatedgcn", GatedGCN(0), lambda m, h: m(h))
case("gatedgcn, edges", GatedGCN(EDGE), lambda m, h: m(h, attr))

# 3 nodes without in-edges, 4 with one and so on, though the graph has other degrees.
degrees = torch.tensor([3, 4, 0, 2, 1])
paper = (["mean", "min", "max", "std"], ["identity", "amplification", "attenuation"])
case("pna", PNAConv(IN, OUT, *paper, degrees), plain)
case("pna, edges", PNAConv(IN, OUT, *paper, degrees, edge_dim=EDGE), edged)
case("pna, other aggregations", PNAConv(IN, OUT, ["sum", "var"], ["linear", "inverse_linear"], degrees), plain)
case("gin", GINConv(MLP([IN, 4, OUT], norm=None), eps=0.25), plain)
case("gin trained", GINConv(MLP([IN, 4, OUT], norm=None), train_eps=True), plain)
case("graph", GraphConv(IN, OUT), plain)
case("graph weighted", GraphConv(IN, OUT), weighted)
case("graph weighted mean", GraphConv(IN, OUT, aggr="mean"), weighted)
case("layer norm", LayerNorm(IN, mode="node"), lambda m, h: m(h))
case("batch norm", BatchNorm(IN), lambda m, h: m(h), train=True)
case("batch norm, evaluated", BatchNorm(IN), lambda m, h: m(h))

# Groups of the rows; the second of the four is empty, in the first case.
pooled = lambda m, h: m(h, torch.tensor([0, 0, 0, 2, 2, 2, 2, 3]), dim_size=4)
filled = lambda m, h: m(h, torch.tensor([0, 0, 0, 1, 1, 1, 1, 2]), dim_size=3)


class Rows(torch.nn.Module):
    """A module that PyG does not know to be an MLP, whose parameters it would call gate_mlp and mlp."""

    def __init__(self, *widths):
        super().__init__()
        self.lins = torch.nn.ModuleList(torch.nn.Linear(a, b) for a, b in zip(widths, widths[1:]))

    def forward(self, h):
        for lin in self.lins[:-1]:
            h = lin(h).relu()
        return self.lins[-1](h)


case("attention pool", AttentionalAggregation(Rows(IN, 4, 1), Rows(IN, 4, OUT)), pooled)
case("attention pool by column", AttentionalAggregation(torch.nn.Linear(IN, IN)), pooled)
case("set2set", Set2Set(IN, processing_steps=3), filled)


case("gru cell", torch.nn.GRUCell(IN, OUT), lambda m, h: m(h, values(NODES * OUT, 2).view(NODES, OUT)))
case("gru cell, state", torch.nn.GRUCell(2, 3), lambda m, h: m(h[:, 3:], h[:, :3]))
case("gru cell, from zeros", torch.nn.GRUCell(IN, OUT), lambda m, h: m(h))
case("time encoder", TimeEncoder(OUT), lambda m, h: m(h[:, 1] * 64))


class Mixer(torch.nn.Module):
    """A layer of GraphMixer's MLP-Mixer, as DyGLib arranges and names it."""

    def __init__(self, slots, cols):
        super().__init__()
        feed = lambda n, wide: torch.nn.ModuleDict({"ffn": torch.nn.Sequential(
            torch.nn.Linear(n, wide), torch.nn.GELU(), torch.nn.Dropout(0.0), torch.nn.Linear(wide, n))})
        self.token_norm, self.token_feedforward = torch.nn.LayerNorm(slots), feed(slots, slots // 2)
        self.channel_norm, self.channel_feedforward = torch.nn.LayerNorm(cols), feed(cols, 4 * cols)

    def forward(self, h):
        x = h.view(-1, self.token_norm.weight.numel(), h.shape[1])
        x = x + self.token_feedforward["ffn"](self.token_norm(x.transpose(1, 2))).transpose(1, 2)
        x = x + self.channel_feedforward["ffn"](self.channel_norm(x))
        return x.reshape(h.shape)


case("mixer", Mixer(4, IN), lambda m, h: m(h))


class VirtualNode(torch.nn.Module):
    """The virtual node of the Open Graph Benchmark's networks, around layers that change nothing."""

    def __init__(self, cols, layers, residual):
        super().__init__()
        self.residual = residual
        self.embedding = torch.nn.Parameter(torch.zeros(1, cols))
        self.mlps = torch.nn.ModuleList(
            torch.nn.ModuleDict({
                "lins": torch.nn.ModuleList([torch.nn.Linear(cols, 2 * cols), torch.nn.Linear(2 * cols, cols)]),
                "norms": torch.nn.ModuleList([BatchNorm(2 * cols), BatchNorm(cols)]),
            }) for _ in range(layers - 1))

    def forward(self, h, index, graphs):
        state = self.embedding.expand(graphs, -1)
        for i in range(len(self.mlps) + 1):
            h = h + state[index]
            if i < len(self.mlps):
                new = global_add_pool(h, index, graphs) + state
                for lin, norm in zip(self.mlps[i]["lins"], self.mlps[i]["norms"]):
                    new = norm(lin(new)).relu()
                state = state + new if self.residual else new
        return h


virtual = lambda m, h: m(h, torch.tensor([0, 0, 0, 2, 2, 2, 2, 3]), 4)
case("virtual node", VirtualNode(IN, 3, False), virtual, train=True)
case("virtual node, residual", VirtualNode(IN, 3, True), virtual)

case("gcn model", GCN(IN, 6, 3, OUT), plain)
case("gcn model, layer norm", GCN(IN, 6, 3, OUT, norm="layer", norm_kwargs={"mode": "node"}), plain)
case("gat model", GAT(IN, 6, 3, OUT, heads=2, act="elu"), plain)
case("gatv2 model", GAT(IN, 6, 3, OUT, heads=2, act="elu", v2=True), plain)
case("gatv2 model, edges", GAT(IN, 6, 3, OUT, heads=2, act="elu", v2=True, edge_dim=EDGE), edged)
case("gin model", GIN(IN, 6, 2, OUT), plain)
case("gin model, batch norm", GIN(IN, 6, 2, OUT, norm="batch"), plain, train=True)
case("sage model, jk cat", GraphSAGE(IN, 6, 3, OUT, jk="cat"), plain)
case("gcn model, jk max, layer norm", GCN(IN, 6, 3, OUT, norm="layer", norm_kwargs={"mode": "node"}, jk="max"), plain)
case("gat model, jk max", GAT(IN, 6, 3, OUT, heads=2, act="elu", jk="max"), plain)
case("gatv2 model, jk lstm", GAT(IN, 6, 3, OUT, heads=2, act="elu", v2=True, jk="lstm"), plain)
case("gin model, jk lstm, batch norm", GIN(IN, 5, 2, OUT, norm="batch", jk="lstm"), plain, train=True)
case("sage model, batch norm", GraphSAGE(IN, 6, 2, OUT, norm="batch"), plain, train=True)


class Plus(torch.nn.Module):
    """The arrangement of GNN+ around layers that keep the width, which call makes of a layer, rows of nodes and rows of edges."""

    def __init__(self, layers, width, conv, call, norm=None, residual=False, feed_forward=False, states=False):
        super().__init__()
        self.call, self.residual = call, residual
        many = lambda make, n=layers: torch.nn.ModuleList(make() for _ in range(n))
        self.convs = many(conv)
        self.encoder, self.head = torch.nn.Linear(IN, width), torch.nn.Linear(width, OUT)
        self.norms = many(lambda: norm(width)) if norm else None
        self.ffs = many(lambda: MLP([width, 2 * width, width], norm=None)) if feed_forward else None
        self.ff_norms = many(lambda: norm(width)) if norm and feed_forward else None
        self.edge_encoder = torch.nn.Linear(EDGE, width) if states else None
        self.edge_norms = many(lambda: norm(width), layers - 1) if norm and states else None

    def forward(self, h, e):
        h = self.encoder(h)
        if self.edge_encoder:
            e = self.edge_encoder(e)
        for i, conv in enumerate(self.convs):
            y = self.call(conv, h, e)
            if self.edge_encoder:
                y, gates = y
                if i < len(self.convs) - 1:
                    gates = (self.edge_norms[i](gates) if self.edge_norms else gates).relu()
                    e = gates + e if self.residual else gates
            y = (self.norms[i](y) if self.norms else y).relu()
            h = y + h if self.residual else y
            if self.ffs:
                h = h + self.ffs[i](h)
                h = self.ff_norms[i](h) if self.ff_norms else h
        return self.head(h)


last = lambda m, h: m(h, attr)
message = lambda conv, h, e: conv(h, edges, edge_attr=e)
gated = lambda conv, h, e: conv.both(h, e)
gine = lambda: GINEConv(MLP([6, 6, 6], norm=None), edge_dim=EDGE)
by_row = lambda width: LayerNorm(width, mode="node")
case("gine model", Plus(2, 6, gine, message), last)
case("gine model, plus", Plus(2, 6, gine, message, BatchNorm, True, True), last, train=True)
case("pna model, plus", Plus(2, 6, lambda: PNAConv(6, 6, *paper, degrees, edge_dim=EDGE), message, by_row, True, True), last)
case("gatedgcn model", Plus(2, 6, lambda: GatedGCN(EDGE, 6, 6), lambda *at: gated(*at)[0], by_row, True), last)
case("gatedgcn model, states", Plus(3, 6, lambda: GatedGCN(6, 6, 6), gated, None, False, False, True), last)
case("gatedgcn model, states, plus", Plus(3, 6, lambda: GatedGCN(6, 6, 6), gated, BatchNorm, True, True, True), last, train=True)

class Strong(torch.nn.Module):
    """The arrangement of the strong baselines, with the names of package nn."""

    def __init__(self, conv, layers, hidden, norm=None, res=False, pre=False, jk=False):
        super().__init__()
        first = hidden if pre else IN
        widths = [(first if i == 0 else hidden, hidden) for i in range(layers)]
        if pre:
            self.lin_in = torch.nn.Linear(IN, hidden)
        self.convs = torch.nn.ModuleList(conv(*w) for w in widths)
        self.norms = torch.nn.ModuleList(norm(hidden) for _ in widths) if norm else None
        self.res = torch.nn.ModuleList(torch.nn.Linear(*w) for w in widths) if res else None
        self.lin = torch.nn.Linear(hidden, OUT)
        self.jk = jk

    def forward(self, h, edge_index):
        if hasattr(self, "lin_in"):
            h = self.lin_in(h)
        total = 0
        for i, conv in enumerate(self.convs):
            y = conv(h, edge_index)
            if self.res is not None:
                y = y + self.res[i](h)
            if self.norms is not None:
                y = self.norms[i](y)
            h = y.relu()
            total = total + h
        return self.lin(total if self.jk else h)


rows = lambda n: torch.nn.LayerNorm(n)
gin = lambda i, o: GINConv(MLP([i, o, o], norm=None))
case("strong gcn, layer norm, residual", Strong(GCNConv, 3, 6, rows, res=True), plain)
case("strong gcn", Strong(GCNConv, 2, 4), plain)
case("strong sage, batch norm, residual, pre-linear", Strong(SAGEConv, 3, 6, BatchNorm, res=True, pre=True), plain, train=True)
case("strong gat, layer norm, sum", Strong(lambda i, o: GATConv(i, o // 2, heads=2, bias=False), 3, 6, rows, jk=True), plain)
case("strong gatv2, layer norm", Strong(lambda i, o: GATv2Conv(i, o // 2, heads=2, bias=False), 2, 6, rows), plain)
case("strong gin, residual", Strong(gin, 2, 6, res=True), plain)

logits, target = values(12, 3).view(4, 3) * 4, (values(12, 1).view(4, 3) > 0).float()
logits.requires_grad_()
present = torch.tensor([1, 1, 0, 1, 1, 1, 1, 0, 1, 1, 1, 1]).view(4, 3)
loss = F.binary_cross_entropy_with_logits(logits, target, weight=present.float(), reduction="sum")
loss.backward()
labels = torch.where(present == 1, target, torch.tensor(-1.0))
out["bce"] = {"logits": flat(logits), "labels": [int(v) for v in labels.reshape(-1)], "loss": loss.item(), "grad": flat(logits.grad)}
print(json.dumps(out, separators=(",", ":")))

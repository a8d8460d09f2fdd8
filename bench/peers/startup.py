"""The first training step on Cora, as short as each library allows; timed from outside.

    python -m peers.startup pyg|dgl DIR
"""

import sys


def main() -> None:
    from peers import graph

    g = graph.load(sys.argv[2])
    import torch
    import torch.nn.functional as F

    ptr, idx = torch.from_numpy(g.indptr), torch.from_numpy(g.indices).long()
    dst = torch.repeat_interleave(torch.arange(g.nodes), ptr.diff())
    x, y, t = torch.from_numpy(g.features), torch.from_numpy(g.labels), torch.from_numpy(g.splits["train"])
    if sys.argv[1] == "pyg":
        from torch_geometric.nn import GCNConv

        a, b, adj = GCNConv(x.size(1), 16), GCNConv(16, g.classes), torch.stack([idx, dst])
        forward = lambda: b(F.dropout(a(x, adj).relu()), adj)
    else:
        import dgl
        from dgl.nn import GraphConv

        a, b, adj = GraphConv(x.size(1), 16), GraphConv(16, g.classes), dgl.add_self_loop(dgl.graph((idx, dst), num_nodes=g.nodes))
        forward = lambda: b(adj, F.dropout(a(adj, x).relu()))
    adam = torch.optim.Adam([*a.parameters(), *b.parameters()], lr=0.01)
    loss = F.cross_entropy(forward()[t], y[t])
    loss.backward()
    adam.step()
    print("step 1, loss", loss.item(), flush=True)


if __name__ == "__main__":
    main()

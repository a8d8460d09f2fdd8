"""DGL: dataloading.NeighborSampler, SAGEConv and GraphConv on blocks. It lists the seeds' hop last."""

import dgl
import dgl.nn as dnn
import torch
import torch.nn.functional as F

from peers import graph as g
from peers.engines import timing
from peers.engines.torch_base import TorchEngine


class DGL(TorchEngine):
    def info(self) -> dict:
        return {**super().info(), "dgl": dgl.__version__}

    def dgl_graph(self, formats: tuple[str, ...] = ("csc",)) -> dgl.DGLGraph:
        def make() -> dgl.DGLGraph:
            empty = torch.empty(0, dtype=torch.int64)
            return dgl.graph(("csc", (self.indptr, self.indices.long(), empty)), num_nodes=self.graph.nodes).formats(list(formats))

        return self.keep("graph" + " ".join(formats), make)

    def loader(self, fanout=g.FANOUT, nodes=None, batch=g.BATCH, shuffle=True):
        nodes = self.splits["train"] if nodes is None else nodes
        sampler = dgl.dataloading.NeighborSampler(list(reversed(fanout)))
        return dgl.dataloading.DataLoader(self.dgl_graph(), nodes, sampler, batch_size=batch, shuffle=shuffle)

    def convs(self) -> list[torch.nn.Module]:
        return [dnn.SAGEConv(i, o, "mean") for i, o in self.widths()]

    def hops(self, batch) -> timing.Hops:
        return [(b.num_dst_nodes(), b.num_src_nodes(), b.num_edges()) for b in reversed(batch[2])]

    def inputs(self, batch) -> tuple[torch.Tensor, torch.Tensor]:
        return self.x[batch[0]], self.y[batch[1]]

    def blocks(self, batch) -> list:
        return batch[2]

    def forward(self, model, batch, x, variant):
        for i, (conv, block) in enumerate(zip(model, self.blocks(batch))):
            x = conv(block, x)
            if i + 1 < len(model):
                x = F.dropout(x.relu(), g.DROPOUT, model.training)
        return x

    def gcn(self, hidden: int) -> torch.nn.ModuleList:
        return torch.nn.ModuleList([dnn.GraphConv(self.x.size(1), hidden), dnn.GraphConv(hidden, self.graph.classes)])

    def conv(self, layer, x):
        looped = self.keep("looped", lambda: dgl.add_self_loop(self.dgl_graph(("coo", "csr", "csc"))))
        return layer(looped, x)

    def adjacency(self, variant: str) -> dgl.DGLGraph:
        # Inference needs no gradients, and so no edges by source.
        return self.dgl_graph(("csc", "csr") if torch.is_grad_enabled() else ("csc",))

    def over(self, conv, adjacency, x):
        return conv(adjacency, x)

    @torch.no_grad()
    def infer(self, count: int, warm: int, variant: str = "") -> dict:
        """Variants: "whole" computes the whole graph at once, "loader" layer by layer in batches."""
        model = self.keep("infer", lambda: torch.nn.ModuleList(self.convs()).eval())
        last = len(model) - 1

        def layers() -> torch.Tensor:
            x = self.x
            nodes = torch.arange(self.graph.nodes)
            for i, (conv, (_, width)) in enumerate(zip(model, self.widths())):
                out = torch.empty(self.graph.nodes, width)
                for src, dst, blocks in self.loader([-1], nodes, 4096, False):
                    h = conv(blocks[0], x[src])
                    out[dst] = h.relu() if i < last else h
                x = out
            return x

        return timing.repeat(layers if variant == "loader" else lambda: self.whole(model, self.x, variant), count, warm)

    def spmm(self, count: int, warm: int, columns: int, backward: bool) -> dict:
        """The mean over in-neighbours by DGL's own kernel (copy_u, mean)."""
        graph = self.dgl_graph(("csc", "csr"))
        x = torch.randn(self.graph.nodes, columns, requires_grad=backward)
        if not backward:
            with torch.no_grad():
                return timing.repeat(lambda: dgl.ops.copy_u_mean(graph, x), count, warm)
        y = dgl.ops.copy_u_mean(graph, x)
        dy = torch.randn_like(y)
        return timing.repeat(lambda: torch.autograd.grad(y, x, dy, retain_graph=True), count, warm)

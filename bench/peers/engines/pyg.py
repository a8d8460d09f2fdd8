"""PyTorch Geometric: NeighborLoader on pyg-lib, SAGEConv and GCNConv.

Variants of train: "" is as its tutorials write it, every layer on all nodes of the batch; "trim" leaves out
what later layers do not need (trim_to_layer). NeighborLoader expands only nodes that it has not seen in an
earlier hop, so its batches have fewer edges than those of the other engines.
"""

import torch
import torch.nn.functional as F
import torch_geometric
import torch_geometric.typing
from torch_geometric.data import Data
from torch_geometric.loader import NeighborLoader
from torch_geometric.nn import GCNConv, SAGEConv
from torch_geometric.utils import trim_to_layer

from peers import graph as g
from peers.engines import timing
from peers.engines.torch_base import TorchEngine


class PyG(TorchEngine):
    def info(self) -> dict:
        return {**super().info(), "torch_geometric": torch_geometric.__version__, "pyg_lib": getattr(torch_geometric.typing.pyg_lib, "__version__", "") if torch_geometric.typing.WITH_PYG_LIB else ""}

    def edge_index(self) -> torch.Tensor:
        def make() -> torch.Tensor:
            e = torch.empty(2, self.graph.edges, dtype=torch.int64)
            e[0] = self.indices
            e[1] = torch.repeat_interleave(torch.arange(self.graph.nodes), self.indptr.diff(), output_size=e.size(1))
            return e

        return self.keep("edge_index", make)

    def data(self) -> Data:
        return self.keep("data", lambda: Data(edge_index=self.edge_index(), num_nodes=self.graph.nodes))

    def loader(self, fanout=g.FANOUT, nodes=None, batch=g.BATCH, shuffle=True) -> NeighborLoader:
        if not torch_geometric.typing.WITH_PYG_LIB:
            raise RuntimeError("pyg-lib is not installed")
        nodes = self.splits["train"] if nodes is None else nodes
        return NeighborLoader(self.data(), list(fanout), input_nodes=nodes, batch_size=batch, shuffle=shuffle, is_sorted=True)

    def convs(self) -> list[torch.nn.Module]:
        return [SAGEConv(i, o) for i, o in self.widths()]

    def hops(self, batch) -> timing.Hops:
        nodes, edges = batch.num_sampled_nodes, batch.num_sampled_edges
        return [(nodes[i], sum(nodes[: i + 2]), e) for i, e in enumerate(edges)]

    def inputs(self, batch) -> tuple[torch.Tensor, torch.Tensor]:
        return self.x[batch.n_id], self.y[batch.n_id[: batch.batch_size]]

    def forward(self, model, batch, x, variant):
        e = batch.edge_index
        for i, conv in enumerate(model):
            if variant == "trim":
                x, e, _ = trim_to_layer(i, batch.num_sampled_nodes, batch.num_sampled_edges, x, e)
            x = conv(x, e)
            if i + 1 < len(model):
                x = F.dropout(x.relu(), g.DROPOUT, model.training)
        return x[: batch.batch_size]

    def gcn(self, hidden: int) -> torch.nn.ModuleList:
        return torch.nn.ModuleList([GCNConv(self.x.size(1), hidden, cached=True), GCNConv(hidden, self.graph.classes, cached=True)])

    def conv(self, layer, x):
        return layer(x, self.edge_index())

    @torch.no_grad()
    def infer(self, count: int, warm: int, variant: str = "") -> dict:
        """Variants: "edge_index" and "csr" compute the whole graph at once, "loader" layer by layer in batches."""
        model = self.keep("infer", lambda: torch.nn.ModuleList(self.convs()).eval())

        def layers() -> torch.Tensor:
            x = self.x
            for i, conv in enumerate(model):
                out = [conv(x[b.n_id], b.edge_index)[: b.batch_size] for b in self.loader([-1], torch.arange(self.graph.nodes), 4096, False)]
                x = torch.cat(out)
                x = x.relu() if i + 1 < len(model) else x
            return x

        if variant == "loader":
            return timing.repeat(layers, count, warm)
        return timing.repeat(lambda: self.whole(model, self.x, variant), count, warm)

    def adjacency(self, variant: str) -> torch.Tensor:
        return self.csr() if variant == "csr" else self.edge_index()

    def over(self, conv, adjacency, x):
        return conv(x, adjacency)

    def csr(self) -> torch.Tensor:
        def make() -> torch.Tensor:
            n = self.graph.nodes
            return torch.sparse_csr_tensor(self.indptr, self.indices.long(), torch.ones(self.graph.edges), (n, n))

        return self.keep("csr", make)

    def spmm(self, count: int, warm: int, columns: int, backward: bool) -> dict:
        """The mean over in-neighbours as PyG's message passing computes it from an edge_index."""
        from torch_geometric.nn import SimpleConv

        conv = self.keep("mean", lambda: SimpleConv("mean"))
        x = torch.randn(self.graph.nodes, columns, requires_grad=backward)
        if not backward:
            with torch.no_grad():
                return timing.repeat(lambda: conv(x, self.edge_index()), count, warm)
        y = conv(x, self.edge_index())
        dy = torch.randn_like(y)
        return timing.repeat(lambda: torch.autograd.grad(y, x, dy, retain_graph=True), count, warm)

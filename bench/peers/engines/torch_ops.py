"""PyTorch's own matrix products and sparse products."""

import torch

from peers.engines import timing
from peers.engines.torch_base import TorchEngine


class Torch(TorchEngine):
    def gemm(self, count: int, warm: int, m: int, n: int, k: int, trans: str) -> dict:
        """trans is "nn", "nt" (the right factor stored [n, k], as Linear's weight) or "tn" (the left one stored [k, m])."""
        def make():
            a = torch.randn(k, m).t() if trans[0] == "t" else torch.randn(m, k)
            b = torch.randn(n, k).t() if trans[1] == "t" else torch.randn(k, n)
            return a, b, torch.empty(m, n)

        a, b, out = make()
        return timing.repeat(lambda: torch.mm(a, b, out=out), count, warm)

    def spmm(self, count: int, warm: int, columns: int, backward: bool) -> dict:
        """torch.sparse.mm(A, x, "mean") of a CSR matrix; backward is the gradient that its autograd computes."""
        n = self.graph.nodes
        adj = self.keep("csr", lambda: torch.sparse_csr_tensor(self.indptr, self.indices.long(), torch.ones(self.graph.edges), (n, n)))
        x = torch.randn(n, columns, requires_grad=backward)
        if not backward:
            with torch.no_grad():
                return timing.repeat(lambda: torch.sparse.mm(adj, x, reduce="mean"), count, warm)
        y = torch.sparse.mm(adj, x, reduce="mean")
        dy = torch.randn_like(y)
        return timing.repeat(lambda: torch.autograd.grad(y, x, dy, retain_graph=True), count, warm)

"""DGL's GraphBolt: a fused CSC graph with int32 ids (its fastest setting), sample_neighbor and DataLoader.

It lists the seeds' hop last. Worker processes are not used: on two cores they never beat its threads.
"""

import dgl.graphbolt as gb
import torch

from peers import graph as g
from peers.engines import timing
from peers.engines.dgl_blocks import DGL


class GraphBolt(DGL):
    def loader(self, fanout=g.FANOUT, nodes=None, batch=g.BATCH, shuffle=True):
        nodes = self.splits["train"] if nodes is None else nodes
        graph = self.keep("fused", lambda: gb.fused_csc_sampling_graph(self.indptr, self.indices))
        items: tuple[torch.Tensor, ...] = (nodes.int(),)
        names = ("seed_nodes",)
        if self.y is not None:
            items, names = (*items, self.y[nodes]), (*names, "labels")
        pipe = gb.ItemSampler(gb.ItemSet(items, names=names), batch_size=batch, shuffle=shuffle)
        return gb.DataLoader(pipe.sample_neighbor(graph, list(reversed(fanout))), num_workers=0)

    def hops(self, batch) -> timing.Hops:
        return [(s.original_column_node_ids.numel(), s.original_row_node_ids.numel(), s.sampled_csc.indices.numel())
                for s in reversed(batch.sampled_subgraphs)]

    def inputs(self, batch) -> tuple[torch.Tensor, torch.Tensor]:
        return self.x[batch.input_nodes.long()], batch.labels

    def blocks(self, batch) -> list:
        return batch.blocks

    def gather(self, count: int, warm: int, variant: str = "") -> dict:
        """Fetches the features of sampled batches. Variants: "index" x[ids], "gb" GraphBolt's own operation,
        "reused" index_select into memory that is kept. Returns the bytes of rows, too."""
        def make() -> list[torch.Tensor]:
            it = timing.endless(self.loader())
            return [next(it).input_nodes for _ in range(8)]

        ids = self.keep("ids", make)
        longs = self.keep("long ids", lambda: [i.long() for i in ids])
        out = self.keep("out", lambda: torch.zeros(max(i.numel() for i in ids), self.x.size(1)))
        fetch = {
            "index": lambda k: self.x[longs[k]],
            "gb": lambda k: gb.index_select(self.x, ids[k]),
            "reused": lambda k: torch.index_select(self.x, 0, longs[k], out=out[: longs[k].numel()]),
        }[variant]

        def every() -> None:
            for k in range(len(ids)):
                fetch(k)

        r = timing.repeat(every, count, warm)
        return {**r, "count": count * len(ids), "bytes": count * sum(i.numel() for i in ids) * self.x.size(1) * 4}

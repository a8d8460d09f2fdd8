"""PyTorch Geometric on the GPU, beside GraphNB: GraphSAGE with the mean, 3 layers of 256, fanouts 15, 10, 5, batches
of 1024, on a directory that "gnb data generate" wrote. Features lie on the device; NeighborLoader samples on the CPU,
with workers of its own.

usage: peer.py DIR EPOCHS: a line of JSON with the seconds of each epoch, or why there are none
"""

import json
import os
import pathlib
import sys
import time


def main() -> dict:
    try:
        import numpy as np
        import torch
        import torch.nn.functional as F
        import torch_geometric
        from torch_geometric.data import Data
        from torch_geometric.loader import NeighborLoader
        from torch_geometric.nn import SAGEConv
    except ImportError as e:
        return {"why": f"{sys.executable} has no PyTorch Geometric: {e}"}
    if not torch.cuda.is_available():
        return {"why": f"PyTorch {torch.__version__} sees no GPU"}
    folder, epochs = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    load = {name: np.load(folder / f"{name}.npy") for name in ("indptr", "indices", "features", "labels", "split_train")}
    degrees = torch.from_numpy(np.diff(load["indptr"]))
    nodes = len(degrees)
    edges = torch.stack([torch.from_numpy(load["indices"]).long(), torch.repeat_interleave(torch.arange(nodes), degrees)])
    x, y = torch.from_numpy(load["features"]).cuda(), torch.from_numpy(load["labels"]).long().cuda()
    sizes = [x.size(1), 256, 256, int(y.max()) + 1]
    model = torch.nn.ModuleList(SAGEConv(i, o) for i, o in zip(sizes, sizes[1:])).cuda()
    adam = torch.optim.Adam(model.parameters(), lr=0.003)
    workers = max(1, min(12, (os.cpu_count() or 2) - 2))
    loader = NeighborLoader(
        Data(edge_index=edges, num_nodes=nodes), [15, 10, 5], input_nodes=torch.from_numpy(load["split_train"]).long(),
        batch_size=1024, shuffle=True, is_sorted=True, num_workers=workers, persistent_workers=True,
    )  # fmt: skip
    seconds = []
    for _ in range(epochs):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for b in loader:
            h, e = x[b.n_id.cuda()], b.edge_index.cuda()
            for i, conv in enumerate(model):
                h = conv(h, e)
                if i + 1 < len(model):
                    h = F.dropout(h.relu(), 0.5)
            loss = F.cross_entropy(h[: b.batch_size], y[b.n_id[: b.batch_size].cuda()])
            adam.zero_grad(set_to_none=True)
            loss.backward()
            adam.step()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    return {"epoch_seconds": seconds, "version": torch_geometric.__version__, "torch": torch.__version__, "workers": workers}


if __name__ == "__main__":
    try:
        out = main()
    except Exception as e:  # noqa: BLE001: whatever it is, the check says it and goes on
        out = {"why": f"{type(e).__name__}: {e}"}
    print(json.dumps(out))

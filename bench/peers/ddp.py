"""Data-parallel training by PyTorch's DistributedDataParallel over gloo.

    python -m peers.ddp ENGINE DIR --workers 2 --threads 1 --steps 20 --warmup 3 [--variant trim]

Prints {"seconds", "count"} of the steps of rank 0; each step trains 1,024 seeds a worker.
"""

import argparse
import json
import os
import sys
import time
import warnings


def rank_main(rank: int, o: argparse.Namespace) -> None:
    warnings.filterwarnings("ignore")
    import torch
    import torch.distributed as dist
    import torch.nn.functional as F

    from peers import engines
    from peers import graph as g
    from peers.engines import timing

    engine = engines.make(o.engine, o.data, o.threads)
    engine.splits["train"] = engine.splits["train"].tensor_split(o.workers)[rank]
    model = torch.nn.ModuleList(engine.convs()).train()
    forward = lambda batch, x: engine.forward(model, batch, x, o.variant)
    parameters = list(model.parameters())
    if o.workers > 1:
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(o.port), "GLOO_SOCKET_IFNAME": "lo"}
        dist.init_process_group("gloo", rank=rank, world_size=o.workers)

        class Whole(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.layers = model

            def forward(self, batch, x):
                return engine.forward(self.layers, batch, x, o.variant)

        parallel = torch.nn.parallel.DistributedDataParallel(Whole())
        forward = parallel
    adam = torch.optim.Adam(parameters, lr=g.LR)
    batches = timing.endless(engine.loader())
    start = 0.0
    for step in range(o.warmup + o.steps):
        if step == o.warmup:
            start = time.perf_counter()
        batch = next(batches)
        x, y = engine.inputs(batch)
        adam.zero_grad()
        F.cross_entropy(forward(batch, x), y).backward()
        adam.step()
    seconds = time.perf_counter() - start
    if rank == 0:
        print(json.dumps({"seconds": seconds, "count": o.steps}), flush=True)
    if o.workers > 1:
        dist.barrier()
        sys.stdout.flush()
        os._exit(0)  # gloo's teardown hangs now and then


def main() -> None:
    p = argparse.ArgumentParser()
    p.add_argument("engine")
    p.add_argument("data")
    p.add_argument("--variant", default="")
    p.add_argument("--port", type=int, default=29511)
    for name, value in (("workers", 2), ("threads", 1), ("steps", 20), ("warmup", 3)):
        p.add_argument(f"--{name}", type=int, default=value)
    o = p.parse_args()
    if o.workers == 1:
        rank_main(0, o)
        return
    import torch.multiprocessing as mp

    mp.spawn(rank_main, (o,), nprocs=o.workers)


if __name__ == "__main__":
    main()

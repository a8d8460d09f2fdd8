"""The peers, each a class with one method a task.

A task does some unmeasured repetitions, then the measured ones, and returns {"seconds", "count", …}; what
follows is summed over the measured ones: stages in seconds, and what was sampled as "hops", a list of
{"dst", "src", "edges"} with the seeds' hop first. State (graph, loader, model) is kept from call to call.
"""

import importlib
import os

ENGINES = {
    "torch": "torch_ops.Torch",
    "openblas": "openblas.OpenBLAS",
    "pyg": "pyg.PyG",
    "dgl": "dgl_blocks.DGL",
    "graphbolt": "graphbolt.GraphBolt",
}


def make(name: str, data: str | None, threads: int):
    os.environ.setdefault("DGLBACKEND", "pytorch")
    module, cls = ENGINES[name].split(".")
    return getattr(importlib.import_module(f"peers.engines.{module}"), cls)(data, threads)

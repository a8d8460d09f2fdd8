"""What the engines on PyTorch share."""

import os
import platform
from collections.abc import Iterator

import numpy as np
import torch
import torch.nn.functional as F

from peers import graph as g
from peers.engines import timing


class TorchEngine:
    """An engine with a dataset and a three-layer GraphSAGE on it. Sub-classes make loaders, convolutions
    and the pass over a batch."""

    def __init__(self, data: str | None, threads: int) -> None:
        torch.set_num_threads(threads)
        torch.manual_seed(0)
        self.threads = threads
        self.kept: dict[str, object] = {}
        self.graph = g.load(data) if data else None
        if self.graph is not None:
            self.indptr = torch.from_numpy(self.graph.indptr)
            self.indices = torch.from_numpy(self.graph.indices)
            self.x = None if self.graph.features is None else torch.from_numpy(self.graph.features)
            self.y = None if self.graph.labels is None else torch.from_numpy(self.graph.labels)
            self.splits = {k: torch.from_numpy(v) for k, v in self.graph.splits.items()}

    def keep(self, name: str, make):
        """The value made the first time it was asked for."""
        if name not in self.kept:
            self.kept[name] = make()
        return self.kept[name]

    def info(self) -> dict:
        return {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__, "threads": torch.get_num_threads(), "pid": os.getpid(),
                "cpu_capability": torch.backends.cpu.get_cpu_capability()}

    # What sub-classes give.
    def convs(self) -> list[torch.nn.Module]: ...
    def batches(self) -> Iterator: ...
    def hops(self, batch) -> timing.Hops: ...
    def inputs(self, batch) -> tuple[torch.Tensor, torch.Tensor]: ...
    def forward(self, model: torch.nn.ModuleList, batch, x: torch.Tensor, variant: str) -> torch.Tensor: ...
    def adjacency(self, variant: str): ...
    def over(self, conv: torch.nn.Module, adjacency, x: torch.Tensor) -> torch.Tensor: ...

    def widths(self) -> list[tuple[int, int]]:
        w = [self.x.size(1), g.HIDDEN, g.HIDDEN, self.graph.classes]
        return list(zip(w, w[1:]))

    def sample(self, count: int, warm: int) -> dict:
        it = self.keep("batches", lambda: timing.endless(self.loader()))
        return timing.loop(it, lambda b, _: self.hops(b), count, warm)

    def train(self, count: int, warm: int, variant: str = "") -> dict:
        it = self.keep("batches", lambda: timing.endless(self.loader()))

        def make():
            model = torch.nn.ModuleList(self.convs()).train()
            return model, torch.optim.Adam(model.parameters(), lr=g.LR)

        model, adam = self.keep("model" + variant, make)

        def step(batch, stages: timing.Stages) -> timing.Hops:
            x, y = self.inputs(batch)
            stages.done("fetch")
            loss = F.cross_entropy(self.forward(model, batch, x, variant), y)
            stages.done("forward")
            adam.zero_grad()
            loss.backward()
            stages.done("backward")
            adam.step()
            stages.done("optimizer")
            return self.hops(batch)

        return timing.loop(it, step, count, warm)

    def full(self, count: int, warm: int, variant: str = "") -> dict:
        """Steps of full-graph training: every layer on all nodes, the loss over the training nodes."""
        train, labels = self.splits["train"], self.y[self.splits["train"]]

        def make():
            model = torch.nn.ModuleList(self.convs()).train()
            return model, torch.optim.Adam(model.parameters(), lr=g.LR)

        model, adam = self.keep("full" + variant, make)

        def step() -> None:
            loss = F.cross_entropy(self.whole(model, self.x, variant)[train], labels)
            adam.zero_grad()
            loss.backward()
            adam.step()

        return timing.repeat(step, count, warm)

    def whole(self, model: torch.nn.ModuleList, x: torch.Tensor, variant: str) -> torch.Tensor:
        """The model of all nodes at once."""
        adjacency = self.adjacency(variant)
        for i, conv in enumerate(model):
            x = self.over(conv, adjacency, x)
            if i + 1 < len(model):
                x = F.dropout(x.relu(), g.DROPOUT, model.training)
        return x

    def cora(self, count: int, warm: int) -> dict:
        """Trains a two-layer GCN for count epochs with an evaluation of both other splits after each."""
        x, y = self.x, self.y
        tr, va, te = (self.splits[s] for s in ("train", "val", "test"))

        def run(epochs: int) -> float:
            model = self.gcn(16)
            adam = torch.optim.Adam([{"params": model[0].parameters(), "weight_decay": 5e-4},
                                     {"params": model[1].parameters()}], lr=0.01)

            def forward(train: bool) -> torch.Tensor:
                h = self.conv(model[0], F.dropout(x, 0.5, train)).relu()
                return self.conv(model[1], F.dropout(h, 0.5, train))

            best, at_best = 0.0, 0.0
            for _ in range(epochs):
                adam.zero_grad()
                F.cross_entropy(forward(True)[tr], y[tr]).backward()
                adam.step()
                with torch.no_grad():
                    right = forward(False).argmax(1) == y
                val, test = (right[s].float().mean().item() for s in (va, te))
                if val > best:
                    best, at_best = val, test
            return at_best

        run(warm)
        accuracy = []
        r = timing.repeat(lambda: accuracy.append(run(count)), 1, 0)
        return {**r, "count": 1, "accuracy": accuracy[0]}

"""A dataset's directory, as "gnb data" writes it, read with NumPy."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

# What all engines train: GraphSAGE with the mean, three layers, and these sizes.
FANOUT = (15, 10, 5)  # the seeds' hop first
BATCH = 1024
HIDDEN = 256
DROPOUT = 0.5
LR = 0.003


@dataclass
class Graph:
    """A directed graph by destination: the sources of v's in-edges are indices[indptr[v]:indptr[v+1]]."""

    name: str
    indptr: np.ndarray  # int64 [nodes + 1]
    indices: np.ndarray  # int32 [edges]
    features: np.ndarray | None  # float32 [nodes, columns]
    labels: np.ndarray | None  # int64 [nodes]
    splits: dict[str, np.ndarray]  # int64
    classes: int

    @property
    def nodes(self) -> int:
        return len(self.indptr) - 1

    @property
    def edges(self) -> int:
        return len(self.indices)


def load(path: str) -> Graph:
    """Reads all of a dataset into memory, as the peers' own loaders do."""
    d = Path(path)
    meta = json.loads((d / "metadata.json").read_text())

    def get(name: str) -> np.ndarray | None:
        f = d / f"{name}.npy"
        return np.load(f) if f.exists() else None

    indptr, indices = get("indptr"), get("indices")
    if indptr is None or indices is None:
        raise SystemExit(f"{path} is no dataset: it has no indptr.npy and indices.npy")
    features = get("features")
    if features is None and (ptr := get("features_indptr")) is not None:
        features = np.zeros((len(indptr) - 1, meta["feature_dim"]), np.float32)
        rows = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
        features[rows, get("features_indices")] = get("features_values")
    labels = get("labels")
    splits = {f.stem.removeprefix("split_"): np.load(f).astype(np.int64) for f in sorted(d.glob("split_*.npy"))}
    return Graph(meta["name"], indptr, indices, features, None if labels is None else labels.astype(np.int64), splits,
                 meta.get("num_classes", 0))

"""Events in time, their split and the negatives of their evaluation, as the Temporal Graph Benchmark makes them.

usage: python3 bench/temporal/data.py collegemsg|etcd OUT.npz
       with a Python that has py-tgb 2.3.0 (bench/requirements-temporal.txt)

Events are those of GNB_DATA/temporal, sorted by time; events of one time keep the order of the file. Nodes of collegemsg have
the numbers of the file, minus 1; the files of etcd are numbered after its authors. The split is by the quantiles 0.70 and 0.85 of all times. The
negatives are made by NegativeEdgeGenerator of py-tgb itself, with its arguments for tgbl-uci: hist_rnd, 1,000 per event, seed 42, the
destinations between the smallest and the largest. OUT.npz has src, dst, t [events], split [events] (0 train, 1 val, 2 test), and
negatives [events of val and test, 1000], in the order of the events, filled up with -1.

TGB's own tgbl-uci numbers destinations apart from sources, so that a person who sends and a person who receives are two nodes. Here they
are one; the negatives are the same but for that shift.
"""

import os
import pathlib
import pickle
import sys
import tempfile

import numpy as np

DATA = pathlib.Path(os.environ.get("GNB_DATA", pathlib.Path(__file__).resolve().parents[3] / "shared" / "data")) / "temporal"


def events(name):
    """The ends and times of the events, in order."""
    path, apart = {"collegemsg": (DATA / "collegemsg" / "uci.csv", False), "etcd": (DATA / "etcd" / "events.csv", True)}[name]
    rows = np.loadtxt(path, delimiter=",", skiprows=1, usecols=(0, 1, 2), dtype=np.int64)
    rows = rows[np.argsort(rows[:, 2], kind="stable")]
    src, dst, t = rows.T
    if apart:
        return src - src.min(), dst - dst.min() + src.max() - src.min() + 1, t
    return src - 1, dst - 1, t


def split(t):
    val, test = np.quantile(t, [0.70, 0.85])
    return np.where(t <= val, 0, np.where(t <= test, 1, 2)).astype(np.int8)


def negatives(src, dst, t, part, count=1000, seed=42):
    """What py-tgb generates for the events of val and of test, in this order, filled up with -1."""
    import torch
    from tgb.linkproppred.negative_generator import NegativeEdgeGenerator
    from torch_geometric.data import TemporalData

    def of(p):
        return TemporalData(*(torch.from_numpy(x[part == p]) for x in (src, dst, t)), msg=torch.ones(int((part == p).sum()), 1))

    out = []
    with tempfile.TemporaryDirectory() as folder:
        made = NegativeEdgeGenerator("x", int(dst.min()), int(dst.max()), num_neg_e=count, strategy="hist_rnd", rnd_seed=seed, historical_data=of(0))
        for p, mode in ((1, "val"), (2, "test")):
            made.generate_negative_samples(of(p), mode, folder)
            with open(f"{folder}/x_{mode}_ns.pkl", "rb") as f:
                of_event = pickle.load(f)
            for key in zip(src[part == p], dst[part == p], t[part == p]):
                row = np.full(count, -1, np.int32)
                row[: len(of_event[key])] = of_event[key]
                out.append(row)
    return np.stack(out)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    src, dst, t = events(sys.argv[1])
    part = split(t)
    neg = negatives(src, dst, t, part)
    np.savez_compressed(sys.argv[2], src=src, dst=dst, t=t, split=part, negatives=neg)
    print(f"{len(src):,} events of {len(np.union1d(src, dst)):,} nodes; train, val, test: {np.bincount(part)}; {np.mean((neg >= 0).sum(1)):.1f} negatives per event")

"""Writes tgb.json: negatives and metrics of py-tgb 2.3.0, and EdgeBank of tgm-lib 0.1.0b1, on a generated stream of events.

    pip install py-tgb==2.3.0 tgm-lib==0.1.0b1
    python tgb_fixtures.py [.../temporal/collegemsg/uci.csv] > tgb.json

With CollegeMsg, it also writes the digest of its negatives.
"""

import contextlib
import hashlib
import io
import json
import pickle
import sys
import tempfile

import numpy as np
import torch
from torch_geometric.data import TemporalData
from tgb.linkproppred.evaluate import Evaluator
from tgb.linkproppred.negative_generator import NegativeEdgeGenerator
from tgm.nn.modules.edgebank import EdgeBankPredictor


def split(t):
    a, b = np.quantile(t, [1 - 0.15 - 0.15, 1 - 0.15])
    return t <= a, (t > a) & (t <= b), t > b


def negatives(src, dst, t, **options):
    """The negatives of the events of validation, and of the test, in order."""
    parts = [TemporalData(src=torch.tensor(src[m]), dst=torch.tensor(dst[m]), t=torch.tensor(t[m])) for m in split(t)]
    found = []
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
        g = NegativeEdgeGenerator("made", int(dst.min()), int(dst.max()), historical_data=parts[0], **options)
        for name, part in zip(["val", "test"], parts[1:]):
            g.generate_negative_samples(data=part, split_mode=name, partial_path=folder)
            with open(f"{folder}/made_{name}_ns.pkl", "rb") as f:
                of = pickle.load(f)
            for key in zip(part.src.tolist(), part.dst.tolist(), part.t.tolist()):
                found.append([int(v) for v in of[key]])
    return found


def digest(lists):
    h = hashlib.sha256()
    for one in lists:
        h.update(np.array([len(one)] + one, dtype="<i4").tobytes())
    return h.hexdigest()


r = np.random.default_rng(7)
n = 400
src = r.integers(0, 30, n) ** 2 // 30
dst = 5 + r.integers(0, 40, n) ** 2 // 40
t = np.sort(r.integers(0, 120, n))  # with equal times
src[10:400:9], dst[10:400:9], t[10:400:9] = src[9:399:9], dst[9:399:9], t[9:399:9]  # and with equal events
out = {"src": src.tolist(), "dst": dst.tolist(), "time": t.tolist()}
out["hist_rnd_12"] = negatives(src, dst, t, num_neg_e=12, strategy="hist_rnd", rnd_seed=42)
out["hist_rnd_1000"] = digest(negatives(src, dst, t, num_neg_e=1000, strategy="hist_rnd", rnd_seed=5))
out["hist_rnd_25"] = digest(negatives(src, dst, t, num_neg_e=25, strategy="hist_rnd", rnd_seed=123, hist_ratio=0.3))
out["rnd_12"] = digest(negatives(src, dst, t, num_neg_e=12, strategy="rnd", rnd_seed=42))

e = Evaluator("tgbl-uci", k_value=10)
pos = r.integers(0, 12, 64).astype(np.float32) / 8  # with ties
neg = r.integers(0, 12, (64, 50)).astype(np.float32) / 8
got = e.eval({"y_pred_pos": pos, "y_pred_neg": neg, "eval_metric": ["mrr"]})
out["scores"] = {"pos": pos.tolist(), "neg": neg.ravel().tolist(), "mrr": float(got["mrr"]), "hits_10": float(got["hits@10"])}

train, val, test = split(t)
out["edgebank"] = {}
for mode in ["unlimited", "fixed"]:
    with contextlib.redirect_stderr(io.StringIO()):
        bank = EdgeBankPredictor(*[torch.tensor(x[train]) for x in (src, dst, t)], memory_mode=mode, window_ratio=0.15)
    answers, at = [], int(train.sum())
    while at < n:  # in steps of 20 events, each against all destinations
        end = min(at + 20, n)
        for u in range(30):
            answers.append("".join(str(int(x)) for x in bank(torch.full((45,), u), torch.arange(45))))
        bank.update(*[torch.tensor(x[at:end]) for x in (src, dst, t)])
        at = end
    out["edgebank"][mode] = hashlib.sha256("\n".join(answers).encode()).hexdigest()

if len(sys.argv) > 1:
    rows = np.loadtxt(sys.argv[1], delimiter=",", skiprows=1, dtype=np.int64)
    src, dst, t = rows[:, 0] - 1, rows[:, 1] - 1, rows[:, 2]
    out["collegemsg"] = digest(negatives(src, dst, t, num_neg_e=1000, strategy="hist_rnd", rnd_seed=42))

json.dump(out, sys.stdout)
print()

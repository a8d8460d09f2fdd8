"""How far the losses of the first ten steps differ between ways to compute the same batches, relative to the loss.

    python3 bench/rounding.py --gnb build/gnb --seeds 5 build/bench/arxiv        # several workers beside one
    python3 bench/rounding.py --pytorch --seeds 3 build/bench/arxiv              # PyTorch beside itself; needs numpy and torch

Of GraphNB: two and four cooperative workers, and two independent ones, beside one worker with two threads. Of PyTorch: the
same batches and dropout masks with the rows and edges of all sums in the reverse order, and in float64. Both train
GraphSAGE of three layers, fanouts 15, 10 and 5, 1024 seeds, a hidden width of 64 and Adam.
"""

import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path

STEPS = 10
WAYS = {"2 cooperative": ("2", "1", True), "4 cooperative": ("4", "1", True), "2 independent": ("2", "1", False)}


def losses(gnb: str, data: str, lr: float, seed: int, workers: str, threads: str, cooperative: bool) -> list[float]:
    """The losses of the first steps of a run, which then ends."""
    with tempfile.TemporaryDirectory() as folder:
        cmd = [gnb, "train", data, "--fanout", "15,10,5", "--epochs", "1", "--eval", "none", "--resume", "never", "--run", folder + "/run",
               "--lr", str(lr), "--seed", str(seed), "--workers", workers, "--threads", threads] + ["--cooperative"] * cooperative
        run = subprocess.Popen(cmd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while True:
            over, out = run.poll() is not None, []
            metrics = Path(folder, "run", "metrics.jsonl")
            for line in metrics.read_text().split("\n")[:-1] if metrics.exists() else []:
                event = json.loads(line)
                out += [r["loss"] for r in event["records"]] if event["event"] == "steps" else []
            if over or len(out) >= STEPS:
                break
            time.sleep(.1)
        run.terminate()
        run.wait()
        if len(out) < STEPS:
            raise SystemExit(f"{' '.join(cmd)}: {len(out)} steps, want {STEPS}")
        return out[:STEPS]


def pytorch(data: str, lr: float, seed: int, dropout: float) -> dict[str, list[float]]:
    """The losses of PyTorch, in each way."""
    import numpy as np
    import torch

    d = {n: np.load(Path(data, n + ".npy"), mmap_mode="r") for n in ("indptr", "indices", "features", "labels", "split_train")}
    rng = np.random.default_rng(seed)

    def batch():
        ids, blocks = rng.choice(d["split_train"], 1024, replace=False).astype(np.int64), []
        seeds = ids
        for fanout in (15, 10, 5):
            lo = d["indptr"][ids].astype(np.int64)
            n = d["indptr"][ids + 1].astype(np.int64) - lo
            picks = [np.arange(k) if k <= fanout else rng.choice(k, fanout, replace=False) for k in n.tolist()]
            dst = np.repeat(np.arange(len(ids)), [len(p) for p in picks])
            src = d["indices"][lo[dst] + np.concatenate(picks)].astype(np.int64)
            every = np.concatenate([ids, np.setdiff1d(src, ids)])
            order = np.argsort(every)
            blocks.append((torch.from_numpy(dst), torch.from_numpy(order[np.searchsorted(every[order], src)]), len(ids)))
            ids = every
        return blocks[::-1], torch.from_numpy(np.array(d["features"][ids], np.float32)), torch.from_numpy(d["labels"][seeds].astype(np.int64))

    batches, widths = [batch() for _ in range(STEPS)], [d["features"].shape[1], 64, 64, int(d["labels"].max()) + 1]

    def train(kind: torch.dtype, reverse: bool) -> list[float]:
        turn = (lambda *x: [t.flip(0) for t in x]) if reverse else (lambda *x: x)
        draw, out = torch.Generator().manual_seed(seed), []
        weights = [((torch.rand(*shape, generator=draw) * 2 - 1) / a ** .5).to(kind).requires_grad_()
                   for a, b in zip(widths, widths[1:]) for shape in ((b, a), (b,), (b, a))]
        opt = torch.optim.Adam(weights, lr=lr)
        for blocks, x, y in batches:
            h = x.to(kind)
            for i, (dst, src, n) in enumerate(blocks):
                left, bias, right = weights[3 * i:3 * i + 3]
                to, at = turn(dst, src)
                mean = torch.zeros(n, h.shape[1], dtype=kind).index_add_(0, to, h[at]) / torch.bincount(dst, minlength=n).clamp(min=1)[:, None]
                mean, own = turn(mean, h[:n])
                h, = turn(mean @ left.T + bias + own @ right.T)
                if i < 2:
                    h = h.relu() * ((torch.rand(h.shape, generator=draw) >= dropout) / (1 - dropout)).to(kind)
            loss = torch.nn.functional.cross_entropy(h, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            out.append(loss.item())
        return out

    return {"one": train(torch.float32, False), "reverse order": train(torch.float32, True), "float64": train(torch.float64, False)}


def main() -> None:
    a = argparse.ArgumentParser()
    a.add_argument("--gnb", default="build/gnb")
    a.add_argument("--pytorch", action="store_true")
    a.add_argument("--seeds", type=int, default=5)
    a.add_argument("--dropout", type=float, default=.5, help="of PyTorch")
    a.add_argument("data")
    o = a.parse_args()
    for lr in (.01, .001):
        for seed in range(o.seeds):
            if o.pytorch:
                ways = pytorch(o.data, lr, seed, o.dropout)
            else:
                ways = {w: losses(o.gnb, o.data, lr, seed, *how) for w, how in {"one": ("1", "2", False), **WAYS}.items()}
            one = ways.pop("one")
            far = {w: [abs(x - y) / y for x, y in zip(other, one)] for w, other in ways.items()}
            print(f"lr {lr}, seed {seed}: " + "; ".join(f"{w} {max(d[:2]):.1e} in two steps, {max(d):.1e} in {STEPS}" for w, d in far.items()), flush=True)


if __name__ == "__main__":
    main()

"""Classes and numbers of whole graphs in GraphNB and PyG, on the same graphs and splits.

usage: python3 bench/graphs.py GNB [ROW[:SPLITS]...]      ROW: esol-gine, esol-gatedgcn, proteins-gin, proteins-blind, mutag-gin, mutag-blind,
                                                     proteins-pyg, mutag-pyg, esol-pyg, time, million, tenth; default all
    with a Python that has torch and torch_geometric for the rows of PyG: bench/requirements-newest.txt

esol: the measured log solubility of 1,128 molecules from GNB_DATA/graphs/esol, whose tables gnb data convert reads. Five random splits
of 80, 10 and 10 % (--split random:0.8,0.1,0.1 --seed K); the RMSE of the test at the epoch with the best validation RMSE.

proteins, mutag: accuracy on ten folds. Those of PROTEINS are fair_splits.json of Errica et al. (arXiv:1912.09893): in each fold the
inner holdout alone chooses among the settings of GRID, and the test fold is measured once, by the setting and the epoch that it
chose. MUTAG has --split folds:10. The blind model is an MLP of the nodes' features, whose rows are summed.

The rows of PyG train the first setting of GRID, or the one model of esol, on the same splits, with the same layers, norm, loss,
optimiser, batch and epochs. "tenth" is an epoch of training on 100,000 planted molecules in both, with the memory. "time" is the time of an epoch of that model, without evaluation, of both in turn: nothing else may run.

With :3, or :0-2, a row measures these splits alone and keeps the others that were measured. Results are in bench/results/graphs.json.
"""

import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import hardware

HERE = pathlib.Path(__file__).resolve().parent
RESULTS = HERE / "results" / "graphs.json"
DATA = pathlib.Path(os.environ.get("GNB_DATA", HERE.parent.parent / "shared" / "data")) / "graphs"
ESOL = "--batch 64 --epochs 100 --lr 0.001 --hidden 64 --layers 4 --metric rmse"
FOLDS = "--batch 64 --epochs 100 --patience 40 --layers 4"
GRID = {"pool": ["sum", "mean"], "lr": ["0.001", "0.01"], "dropout": ["0", "0.5"]}
# row: data, what it is measured by, arguments of gnb train, splits, published value and source
ROWS = {
    "esol-gine": ("esol", "rmse", f"--model gine {ESOL}", 5, "0.8 to 1.0", "networks of this kind, from memory"),
    "esol-gatedgcn": ("esol", "rmse", f"--model gatedgcn --residual {ESOL}", 5, "0.8 to 1.0", "networks of this kind, from memory"),
    "proteins-blind": ("proteins", "accuracy", f"--model mlp {FOLDS}", 10, "75.8 ± 3.7", "Errica et al. 2020, arXiv:1912.09893"),
    "proteins-gin": ("proteins", "accuracy", f"--model gin {FOLDS}", 10, "73.3 ± 4.0", "Errica et al. 2020, arXiv:1912.09893"),
    "mutag-blind": ("mutag", "accuracy", f"--model mlp {FOLDS}", 10, "–", "none by this protocol"),
    "mutag-gin": ("mutag", "accuracy", f"--model gin {FOLDS}", 10, "89.4 ± 5.6, best epoch on the test fold", "Xu et al. 2019, arXiv:1810.00826"),
}
TUNED = {"GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=4294967295:glibc.malloc.trim_threshold=18446744073709551615:glibc.malloc.top_pad=67108864"}
PEERS = {"esol-pyg": "esol-gine", "proteins-pyg": "proteins-gin", "mutag-pyg": "mutag-gin"}


def gnb(*words, **more):
    done = subprocess.run([GNB, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"gnb {' '.join(map(str, words))}: {done.stderr.strip().splitlines()[-1]}")
    return done.stdout


def converted(name, k, folder):
    """The dataset of a split, and the set of splits in it."""
    source = {"esol": "esol", "proteins": "PROTEINS", "mutag": "MUTAG"}[name]
    split = {"esol": f"random:0.8,0.1,0.1", "proteins": str(DATA / "PROTEINS" / "fair_splits.json"), "mutag": "folds:10"}[name]
    to = os.path.join(folder, f"{name}-{k}" if name == "esol" else name)
    if not os.path.exists(to):
        gnb("data", "convert", DATA / source, to, "--split", split, *(["--seed", k] if name == "esol" else []))
    return to, 0 if name == "esol" else k


def train(name, args, k, folder):
    """The result of a training, or of the best of a search over GRID."""
    data, set_ = converted(name, k, folder)
    words = ["--task", "graphs", *args.split(), "--split", set_, "--seed", k, "--json"]
    env = {**os.environ, "GNB_RUNS": os.path.join(folder, "runs")}
    if name == "esol":
        return json.loads(gnb("train", data, *words, "--resume", "never", env=env).strip().splitlines()[-1])
    grid = [w for p, values in GRID.items() for w in ("--param", f"{p}={','.join(values)}")]
    study = json.loads(gnb("sweep", data, *words, "--method", "grid", *grid, "--dir", tempfile.mkdtemp(dir=folder), "--resume", "never", env=env).strip().splitlines()[-1])
    with open(os.path.join(study["best"]["run"], "result.json")) as f:
        return json.load(f)["values"]


def arrays(folder, set_, labels=False):
    """A dataset of many graphs as PyG's Data, and its splits."""
    import numpy as np
    import torch
    from torch_geometric.data import Data

    read = lambda n: np.load(os.path.join(folder, n + ".npy"))
    meta = json.load(open(os.path.join(folder, "metadata.json")))
    at, indptr, indices, x = read("graph_offsets"), read("indptr"), read("indices"), read("features")
    e = read("edge_features") if meta.get("edge_feature_dim") else None
    y = read("graph_targets") if meta["graphs"].get("target_dim") and not labels else read("graph_labels")
    all_ = []
    for g in range(len(at) - 1):
        lo, hi = at[g], at[g + 1]
        first, last = indptr[lo], indptr[hi]
        dst = np.repeat(np.arange(hi - lo), np.diff(indptr[lo : hi + 1]))
        d = Data(x=torch.tensor(x[lo:hi], dtype=torch.float32), edge_index=torch.tensor(np.stack([indices[first:last] - lo, dst]), dtype=torch.long), y=torch.tensor(y[g : g + 1]))
        if e is not None:
            d.edge_attr = torch.tensor(e[first:last], dtype=torch.float32)
        all_.append(d)
    names = {s: f"graph_split_{s}" + (f"@{set_}" if set_ else "") for s in ("train", "val", "test")}
    return all_, {s: read(n).tolist() for s, n in names.items()}


def pyg(name, k, folder, epochs=None, threads=2):
    """Trains the model of a row in PyG; returns the test value at the best validation epoch, and the median time of an epoch."""
    import torch
    import torch.nn.functional as F
    from torch_geometric.loader import DataLoader
    from torch_geometric.nn import GIN, GINEConv, global_add_pool, global_mean_pool
    from torch_geometric.nn.models import MLP

    torch.set_num_threads(threads)
    torch.manual_seed(k)
    data, set_ = (os.path.join(folder, "tenth"), 0) if name == "tenth" else converted(name, k, folder)
    start = time.perf_counter()
    graphs, split = arrays(data, set_, labels=name == "tenth")
    read = time.perf_counter() - start
    width, numeric, batch = 64, name == "esol", 1024 if name == "tenth" else 64
    classes = 1 if numeric else max(2, 1 + max(int(g.y) for g in graphs))
    inputs = graphs[0].x.size(1)

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            if numeric:
                self.encoder = torch.nn.Linear(inputs, width)
                self.convs = torch.nn.ModuleList(GINEConv(MLP([width, width, width], norm=None), edge_dim=graphs[0].edge_attr.size(1)) for _ in range(4))
                self.norms = torch.nn.ModuleList(torch.nn.BatchNorm1d(width) for _ in range(4))
                self.out = torch.nn.Linear(width, width)
            else:
                self.body = GIN(inputs, width, 4, width, norm="batch_norm")
            self.head = MLP([width, width, classes], norm=None)

        def forward(self, b):
            if numeric:
                h = self.encoder(b.x)
                for conv, norm in zip(self.convs, self.norms):
                    h = norm(conv(h, b.edge_index, b.edge_attr)).relu()
                return self.head(global_mean_pool(self.out(h), b.batch))
            return self.head(global_add_pool(self.body(b.x, b.edge_index), b.batch))

    net = Net()
    opt = torch.optim.Adam(net.parameters(), lr=0.001)
    loaders = {s: DataLoader([graphs[i] for i in ids], batch_size=batch, shuffle=s == "train") for s, ids in split.items()}
    y = torch.stack([graphs[i].y for i in split["train"]]).float()
    mean, deviation = y.mean(), y.std(unbiased=False)

    def measure(s):
        net.eval()
        with torch.no_grad():
            pairs = [(net(b), b.y) for b in loaders[s]]
        out, want = torch.cat([p for p, _ in pairs]), torch.cat([w for _, w in pairs])
        if numeric:
            return ((out * deviation + mean - want.view_as(out)) ** 2).mean().sqrt().item()
        return (out.argmax(1) == want).float().mean().item()

    best, test, times, since = None, None, [], 0
    for _ in range(epochs or 100):
        net.train()
        start = time.perf_counter()
        for b in loaders["train"]:
            opt.zero_grad()
            out = net(b)
            loss = F.mse_loss(out, (b.y.view_as(out).float() - mean) / deviation) if numeric else F.cross_entropy(out, b.y.long())
            loss.backward()
            opt.step()
        times.append(time.perf_counter() - start)
        if epochs:
            continue
        val, since = measure("val"), since + 1
        if best is None or (val < best if numeric else val > best):
            best, test, since = val, measure("test"), 0
        if not numeric and since >= 40:
            break
    if name == "tenth":
        print(json.dumps({"read_seconds": round(read, 1), "epoch_seconds": round(times[-1], 2)}))
    return test, statistics.median(times)


def timed(folder):
    """Seconds of an epoch: GraphNB's is the difference of a long and a short run, PyG's the median, in turns."""
    rows = {}
    for name, row in (("esol", "esol-gine"), ("proteins", "proteins-gin"), ("mutag", "mutag-gin")):
        data, set_ = converted(name, 0, folder)
        args = ROWS[row][2].replace("--epochs 100", "").replace("--patience 40", "").split()
        if name != "esol":
            args += ["--pool", "sum", "--lr", "0.001"]
        words = ["train", data, "--task", "graphs", *args, "--split", set_, "--eval", "none", "--resume", "never", "--json"]
        words = [w for i, w in enumerate(words) if w != "--metric" and (i == 0 or words[i - 1] != "--metric")]
        ours, theirs, tuned = [], [], []
        for _ in range(3):
            seconds = [json.loads(gnb(*words, "--epochs", n).strip().splitlines()[-1])["seconds"] for n in (5, 45)]
            ours.append((seconds[1] - seconds[0]) / 40)
            for env, to in (({}, theirs), (TUNED, tuned)):
                done = subprocess.run([sys.executable, __file__, GNB, f"epoch:{name}", folder], capture_output=True, text=True, env={**os.environ, **env})
                if done.returncode != 0:
                    sys.exit(done.stderr.strip().splitlines()[-1])
                to.append(float(done.stdout.strip().splitlines()[-1]))
        rows[name] = {"GraphNB": [round(x, 4) for x in ours], "PyG": [round(x, 4) for x in theirs], "PyG, tuned malloc": [round(x, 4) for x in tuned]}
        print(name, {k: statistics.median(v) for k, v in rows[name].items()}, flush=True)
    return rows


def million(folder):
    """A million planted molecules: written, trained for an epoch, predicted; the greatest sum of the processes' proportional memory."""
    out = {}
    data = os.path.join(folder, "million")

    def run(what, *words):
        out[what] = {"command": "gnb " + " ".join(words), **watched(folder, [GNB, *words])[0]}
        print(what, out[what], flush=True)

    run("generate", "data", "generate", "molecules?graphs=1000000", data)
    run("train", "train", data, "--task", "graphs", "--predict", "labels", "--epochs", "1", "--batch", "1024", "--lr", "0.005", "--resume", "never", "--json")
    run("infer", "infer", data, "--out", os.path.join(folder, "million.npy"), "--json")
    return out


def watched(folder, words, **env):
    """Seconds and greatest memory of a command, and what it printed."""
    p = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env={**os.environ, "GNB_RUNS": os.path.join(folder, "runs"), **env})
    start, peak, mapped = time.time(), 0, 0
    while p.poll() is None:
        own, files = memory(p.pid)
        if own > peak:
            peak, mapped = own, files
        time.sleep(0.2)
    text = p.stdout.read()
    if p.returncode != 0:
        sys.exit(f"{' '.join(words)} failed")
    return {"seconds": round(time.time() - start, 1), "own_bytes": peak, "mapped_file_bytes": mapped}, text


def tenth(folder):
    """Epochs of training on 100,000 planted molecules: GIN of four layers of 64, batches of 1024 graphs, without evaluation."""
    data, rows = os.path.join(folder, "tenth"), {}
    gnb("data", "generate", "molecules?graphs=100000", data)
    words = ["train", data, "--task", "graphs", "--predict", "labels", "--model", "gin", "--layers", "4", "--batch", "1024", "--lr", "0.001", "--pool", "sum", "--eval", "none", "--resume", "never", "--json"]
    short, _ = watched(folder, [GNB, *words, "--epochs", "1"])
    long, _ = watched(folder, [GNB, *words, "--epochs", "4"])
    seconds = [json.loads(gnb(*words, "--epochs", n).strip().splitlines()[-1])["seconds"] for n in (1, 4)]
    rows["GraphNB"] = {**long, "epoch_seconds": round((seconds[1] - seconds[0]) / 3, 2), "seconds_of_one_epoch_with_start": short["seconds"], "command": "gnb " + " ".join(words[:1] + ["molecules?graphs=100000"] + words[2:])}
    for what, env in (("PyG", {}), ("PyG, tuned malloc", TUNED)):
        own, text = watched(folder, [sys.executable, __file__, GNB, "epoch:tenth", folder], **env)
        rows[what] = {**own, **json.loads(text.strip().splitlines()[-2])}
    print(json.dumps(rows, indent=1), flush=True)
    return rows


def memory(pid):
    """Bytes of a process and its children: anonymous and shared memory by Pss, and mapped files by Pss."""
    own = files = 0
    ids, seen = [pid], set()
    while ids:
        p = ids.pop()
        if p in seen:
            continue
        seen.add(p)
        try:
            for t in os.listdir(f"/proc/{p}/task"):
                ids += map(int, open(f"/proc/{p}/task/{t}/children").read().split())
            for line in open(f"/proc/{p}/smaps_rollup"):
                if line.startswith("Pss_File:"):
                    files += 1024 * int(line.split()[1])
                elif line.startswith(("Pss_Anon:", "Pss_Shmem:")):
                    own += 1024 * int(line.split()[1])
        except OSError:
            pass
    return own, files


def splits_of(row, wanted):
    n = ROWS[PEERS.get(row, row)][3]
    if not wanted:
        return range(n)
    lo, _, hi = wanted.partition("-")
    return range(int(lo), int(hi or lo) + 1)


def main():
    recorded = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    version = json.loads(gnb("version", "--json"))
    about = lambda: {"date": datetime.date.today().isoformat(), "version": version["version"], "revision": version.get("revision", ""), "machine": hardware.describe()}

    def keep(name, value):
        recorded[name] = {**value, **about()}
        RESULTS.write_text(json.dumps(recorded, indent=1, ensure_ascii=False) + "\n")

    with tempfile.TemporaryDirectory() as folder:
        for arg in sys.argv[2:] or [*ROWS, *PEERS, "time", "million", "tenth"]:
            row, _, wanted = arg.partition(":")
            print(row, flush=True)
            if row == "time":
                keep(row, {"seconds_of_an_epoch": timed(folder), "versions": versions()})
                continue
            if row == "tenth":
                keep(row, {"rows": tenth(folder), "versions": versions()})
                continue
            if row == "million":
                keep(row, million(folder))
                continue
            data, metric, args, _, published, source = ROWS[PEERS.get(row, row)]
            values = dict(recorded.get(row, {}).get("test", {})) if wanted else {}
            for k in splits_of(row, wanted):
                if row in PEERS:
                    values[str(k)] = round(pyg(data, k, folder)[0], 4)
                else:
                    values[str(k)] = round(train(data, args, k, folder)[f"test_{metric}"], 4)
                print(f"  {k}: {values[str(k)]}", flush=True)
                numbers = list(values.values())
                keep(row, {"metric": metric, "command": f"gnb train --task graphs {args}" if row in ROWS else "the same model in PyG", "grid": GRID if row in ROWS and data != "esol" else None,
                           "published": published, "source": source, "test": values, "mean": round(statistics.mean(numbers), 4),
                           "deviation": round(statistics.pstdev(numbers), 4), **({"versions": versions()} if row in PEERS else {})})


def versions():
    import torch
    import torch_geometric

    return {"torch": torch.__version__, "torch_geometric": torch_geometric.__version__}


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    GNB = os.path.abspath(sys.argv[1])
    if len(sys.argv) == 4 and sys.argv[2].startswith("epoch:"):
        print(pyg(sys.argv[2][6:], 0, sys.argv[3], epochs=3 if sys.argv[2] == "epoch:tenth" else 6)[1])
    else:
        main()

"""Tables to a dataset: gnb data convert beside pandas, on the same Parquet files.

usage: tables.py GNB DIR [--rows N] [--out FILE] [--make] [--rounds K]

Makes DIR/tables/nodes.parquet and edges.parquet with N rows each (10,000,000 by default) unless they are there;
--make does only that. Then gnb and pandas turn them into features, labels, splits and a graph in compressed columns,
in turns, and the script prints the seconds and the peak memory of each and writes them to FILE. It needs pandas,
pyarrow, NumPy and SciPy.

Both do the same: a category of 4 values to one column each, two numbers to (x - mean) / deviation with a column where
one is missing, a date to its age and its sine and cosine in year and week, fitted to the training rows; ids to
positions; edges sorted by destination, equal edges merged. gnb also looks for the kinds of the columns, refuses
defects, writes checksums and syncs the files; pandas is told what the columns are and checks nothing.
"""
import argparse, json, os, platform, shutil, statistics, subprocess, sys, time

PANDAS = r'''
import sys, os, numpy as np, pandas as pd, scipy.sparse as sp
src, dst = sys.argv[1:]
os.makedirs(dst)
n = pd.read_parquet(src + "/nodes.parquet")
train = (n["split"] == "train").to_numpy()
cols = [pd.get_dummies(n["plan"], dtype=np.float32).to_numpy()]
for name in ("spent", "calls"):
    x = n[name].astype(np.float64)
    mean, std = x[train].mean(), x[train].std(ddof=0)
    cols.append(((x.fillna(mean) - mean) / std).to_numpy(np.float32)[:, None])
    if x[train].isna().any():
        cols.append(x.isna().to_numpy(np.float32)[:, None])
d = pd.to_datetime(n["joined"])
age = (d[train].max() - d).dt.days.to_numpy(np.float64)
cols.append(((age - age[train].mean()) / age[train].std()).astype(np.float32)[:, None])
for part in ((d.dt.dayofyear - 1) / 365.25, (d.dt.dayofweek + 1) % 7 / 7):
    a = 2 * np.pi * part.to_numpy()
    cols += [np.sin(a).astype(np.float32)[:, None], np.cos(a).astype(np.float32)[:, None]]
np.save(dst + "/features.npy", np.concatenate(cols, axis=1))
np.save(dst + "/labels.npy", n["label"].fillna(-1).to_numpy(np.int32))
for s in ("train", "val", "test"):
    np.save(dst + f"/split_{s}.npy", np.flatnonzero(n["split"] == s).astype(np.int32))
ids = pd.Index(n["id"])
assert ids.is_unique
del cols, d, age
e = pd.read_parquet(src + "/edges.parquet")
u, v = ids.get_indexer(e["source"]), ids.get_indexer(e["target"])
assert (u >= 0).all() and (v >= 0).all()
g = sp.csr_matrix((e["weight"].to_numpy(np.float32), (v, u)), shape=(len(n), len(n)))
g.sum_duplicates()
np.save(dst + "/indptr.npy", g.indptr.astype(np.int64))
np.save(dst + "/indices.npy", g.indices.astype(np.int32))
np.save(dst + "/weights.npy", g.data)
'''


def make(folder, rows):
    import numpy as np, pyarrow as pa, pyarrow.parquet as pq
    os.makedirs(folder, exist_ok=True)
    r, chunk = np.random.default_rng(1), 1_000_000
    writers = {}
    for lo in range(0, rows, chunk):
        k = min(chunk, rows - lo)
        ids = pa.array(np.arange(lo, lo + k, dtype=np.int64) * 7 + 3)
        plans = pa.DictionaryArray.from_arrays(pa.array(r.integers(0, 4, k, dtype=np.int8)), pa.array(["basic", "family", "gold", "student"])).cast(pa.string())
        spent, label = r.normal(30, 15, k), r.integers(0, 2, k).astype(np.int8)
        split = pa.DictionaryArray.from_arrays(pa.array((np.arange(k) % 10 > 5).astype(np.int8) + (np.arange(k) % 10 > 7)), pa.array(["train", "val", "test"])).cast(pa.string())
        nodes = pa.table({
            "id": ids, "plan": plans, "spent": pa.array(spent, mask=r.random(k) < .05), "calls": pa.array(r.poisson(20, k).astype(np.int32)),
            "joined": pa.array(r.integers(14000, 20000, k).astype(np.int32)).cast(pa.date32()), "label": pa.array(label, mask=r.random(k) < .1), "split": split})
        edges = pa.table({"source": pa.array(r.integers(0, rows, k) * 7 + 3), "target": pa.array(r.integers(0, rows, k) * 7 + 3), "weight": pa.array(r.integers(1, 9, k).astype(np.float32))})
        for name, t in (("nodes", nodes), ("edges", edges)):
            if name not in writers:
                writers[name] = pq.ParquetWriter(f"{folder}/{name}.tmp", t.schema)
            writers[name].write_table(t, row_group_size=250_000)
    for name, w in writers.items():
        w.close()
        os.rename(f"{folder}/{name}.tmp", f"{folder}/{name}.parquet")


def run(command):
    """Seconds and peak resident bytes of a command."""
    start = time.time()
    p = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(p.pid, 0)
    if status:
        sys.exit(f"{command[0]} failed with status {status}")
    return time.time() - start, usage.ru_maxrss * 1024


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("gnb")
    a.add_argument("dir")
    a.add_argument("--rows", type=int, default=10_000_000)
    a.add_argument("--rounds", type=int, default=1)
    a.add_argument("--out")
    a.add_argument("--make", action="store_true")
    o = a.parse_args()
    src = os.path.join(o.dir, "tables")
    if not os.path.exists(src + "/edges.parquet"):
        make(src, o.rows)
    if o.make:
        return
    import numpy, pandas, pyarrow
    engines = {
        "gnb": lambda dst: [o.gnb, "data", "convert", src, dst, "--format", "tables", "--kinds", "spent=number"],
        "pandas": lambda dst: [sys.executable, "-c", PANDAS, src, dst],
    }
    found = {name: [] for name in engines}
    for k in range(o.rounds):
        for name in sorted(engines, reverse=k % 2 == 1):
            dst = os.path.join(o.dir, name)
            shutil.rmtree(dst, ignore_errors=True)
            found[name].append(run(engines[name](dst)))
            print(name, "%.1f s, %.0f MB" % (found[name][-1][0], found[name][-1][1] / 1e6), flush=True)
    # The same graph and, to rounding, the same features.
    a, b = (numpy.load(f"{o.dir}/{name}/features.npy", mmap_mode="r") for name in ("gnb", "pandas"))
    rows = numpy.linspace(0, len(a) - 1, 10_000).astype(int)
    apart = float(numpy.abs(numpy.sort(a[rows], axis=1) - numpy.sort(b[rows], axis=1)).max())
    same = all(numpy.array_equal(numpy.load(f"{o.dir}/gnb/{f}.npy"), numpy.load(f"{o.dir}/pandas/{f}.npy")) for f in ("indptr", "indices", "weights", "labels"))
    if apart > 1e-4 or not same or a.shape != b.shape:
        sys.exit(f"the results differ: features by {apart}, shapes {a.shape} and {b.shape}, graph and labels equal: {same}")
    result = {"rows": o.rows, "features": a.shape[1], "cpu": platform.processor() or platform.machine(), "cores": os.cpu_count(), "versions": {"pandas": pandas.__version__, "pyarrow": pyarrow.__version__}}
    for name, runs in found.items():
        result[name] = {"seconds": round(statistics.median(r[0] for r in runs), 1), "peak_mb": round(max(r[1] for r in runs) / 1e6)}
    print(json.dumps(result))
    if o.out:
        with open(o.out, "w") as f:
            json.dump(result, f, indent=1)
            f.write("\n")


if __name__ == "__main__":
    main()

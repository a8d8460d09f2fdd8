"""What is measured: each function gives the rows of one subject, ours first."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from peers import graph as g
from peers import process
from peers.process import TUNED, Failed, Peer, gnb
from peers.turns import Call, Engine, Row

FANOUT = ",".join(map(str, g.FANOUT))
LOADER = ["--fanout", FANOUT, "--batch", str(g.BATCH)]
MODEL = ["--hidden", str(g.HIDDEN), "--dropout", str(g.DROPOUT), "--lr", str(g.LR)]
EXPANDS_NEW = "expands only nodes not seen before: fewer edges"


def bench(what: str, *args: str, threads: int) -> Call:
    """A window of "gnb bench"."""

    def call(count: int, warm: int) -> dict:
        r = gnb("bench", what, *args, "--threads", str(threads), "--limits=false", "--steps", str(count), "--warmup", str(max(warm, 1)))
        out = {"seconds": r["seconds"], "count": r["steps"], "raw": r}
        if "hops" in r:
            out["hops"] = [{k: v * r["steps"] for k, v in h.items()} for h in r["hops"]]
        return out

    return call


def asks(peer: Peer, do: str, **arguments) -> Call:
    return lambda count, warm: peer.ask(do, count=count, warm=warm, **arguments)


class Peers:
    """The peers on one dataset, each started when a row first needs it."""

    def __init__(self, data: str | None, threads: int) -> None:
        self.data, self.threads, self._all = data, threads, {}

    def __call__(self, engine: str, tuned: bool = False, threads: int = 0, env: dict[str, str] | None = None, newest: bool = False) -> Peer:
        """newest runs the engine in the second environment, on the newest PyTorch."""
        threads = threads or self.threads
        key = (engine, newest, tuned, threads, json.dumps(env))
        if key not in self._all:
            extra = (TUNED if tuned else {}) | (env or {})
            self._all[key] = Peer(engine, self.data, threads, extra, process.NEWEST if newest else sys.executable)
        return self._all[key]

    def infos(self, newest: bool) -> list[dict]:
        """What the engines of one environment said of themselves."""
        return [p.info for k, p in self._all.items() if k[1] == newest and p.info]

    def close(self) -> None:
        for p in self._all.values():
            p.close()
        self._all.clear()


def edges_rate(r: dict) -> tuple[float, str]:
    return sum(h["edges"] for h in r["hops"]) / r["seconds"] / 1e6, "M edges/s"


def sample(name: str, data: str, peers: Peers, threads: int) -> Row:
    e = [Engine("GraphNB", bench("sample", "--dataset", data, *LOADER, threads=threads), ours=True, warm=5, least=5)]
    e += [Engine(n, asks(peers(p), "sample"), own_rule=p == "pyg", warm=5, least=5, slow=p == "dgl",
                 note=EXPANDS_NEW if p == "pyg" else "")
          for n, p in (("GraphBolt int32", "graphbolt"), ("DGL", "dgl"), ("PyG", "pyg"))]
    e.append(Engine(f"PyG on torch {process.newest_torch()}", asks(peers("pyg", newest=True), "sample"), own_rule=True, warm=5, least=5, slow=True,
                    note=EXPANDS_NEW))
    e.append(Engine("GraphBolt int32, tuned malloc", asks(peers("graphbolt", True), "sample"), tuned=True, warm=5, least=5))
    return Row(f"sample-{name}", f"sampling alone, [{FANOUT}], {g.BATCH} seeds", e, rate=edges_rate)


def gather(name: str, data: str, peers: Peers, threads: int) -> Row:
    def rate(r: dict) -> tuple[float, str]:
        return (r["bytes"] / r["seconds"] / 1e9 if "bytes" in r else r["raw"]["gb_per_second"]), "GB/s"

    e = [Engine("GraphNB", bench("gather", "--dataset", data, *LOADER, threads=threads), ours=True, least=8)]
    ways = (("PyTorch x[ids], as used", "index", False), ("GraphBolt gb.index_select", "gb", False),
            ("PyTorch index_select(out=reused)", "reused", True))
    e += [Engine(n, asks(peers("graphbolt"), "gather", variant=v), tuned=t) for n, v, t in ways]
    return Row(f"gather-{name}", "features of a sampled batch", e, rate=rate, window=1.5)


def spmm(name: str, data: str, peers: Peers, threads: int) -> list[Row]:
    rows = []
    for columns in (128, 256):
        for backward in (False, True):
            args = ["--dataset", data, "--columns", str(columns)] + (["--backward"] if backward else [])
            e = [Engine("GraphNB", bench("spmm", *args, threads=threads), ours=True)]
            e += [Engine(n, asks(peers(p, t), "spmm", columns=columns, backward=backward), tuned=t)
                  for n, p, t in (("DGL copy_u_mean", "dgl", False), ("PyTorch sparse.mm mean", "torch", False),
                                  ("PyG edge_index", "pyg", False), ("DGL, tuned malloc", "dgl", True))]
            way = "gradient" if backward else "forward"
            rows.append(Row(f"spmm-{name}-{columns}-{way}", f"mean over in-neighbours, {columns} columns, {way}", e, window=1.5))
    return rows


def train(name: str, data: str, peers: Peers, threads: int, lean: bool) -> Row:
    """lean leaves out what takes too much memory or time on a large graph."""
    newest = f"PyG on torch {process.newest_torch()}, trim"
    e = [Engine("GraphNB", train_ours(data, threads), ours=True, least=3, warm=5),
         Engine("GraphNB, --precision bf16", train_ours(data, threads, "--precision", "bf16"), ours=True, least=3, warm=5)]
    e += [
        Engine("GraphBolt int32", asks(peers("graphbolt"), "train"), least=3, warm=2),
        Engine("DGL", asks(peers("dgl"), "train"), least=3, warm=2),
        Engine("PyG trim_to_layer", asks(peers("pyg"), "train", variant="trim"), own_rule=True, least=2, note=EXPANDS_NEW),
        Engine(f"{newest}_to_layer", asks(peers("pyg", newest=True), "train", variant="trim"), own_rule=True, slow=True, least=2, note=EXPANDS_NEW),
        Engine("PyG as in its tutorials", asks(peers("pyg"), "train"), own_rule=True, slow=True, note=EXPANDS_NEW),
        Engine("GraphBolt int32, tuned malloc", asks(peers("graphbolt", True), "train"), tuned=True, least=3, warm=2),
    ]
    if not lean:
        e += [Engine("DGL, tuned malloc", asks(peers("dgl", True), "train"), tuned=True, least=3, warm=2),
              Engine("PyG trim, tuned malloc", asks(peers("pyg", True), "train", variant="trim"), tuned=True, own_rule=True, least=2, note=EXPANDS_NEW),
              Engine(f"{newest}, tuned malloc", asks(peers("pyg", True, newest=True), "train", variant="trim"), tuned=True, own_rule=True, least=2,
                     note=EXPANDS_NEW)]
    return Row(f"train-{name}", f"a training step: 3-layer SAGE-mean, hidden {g.HIDDEN}, dropout {g.DROPOUT}, Adam", e, rate=edges_rate, window=4,
               limits=limits_now(threads, 400 if lean else 512))


def train_ours(data: str, threads: int, *extra: str, workers: int = 1, watch: bool = False) -> Call:
    """Steps of g.BATCH seeds for each worker."""
    loader = ["--fanout", FANOUT, "--workers", str(workers), "--batch-per-worker", str(g.BATCH)]

    def call(count: int, warm: int) -> dict:
        r = gnb("bench", "train", "--dataset", data, *loader, *MODEL, "--threads", str(threads), "--limits=false", "--windows", "1",
                "--steps", str(count), "--warmup", str(max(warm, 1)), *extra, watch_memory=watch)
        n = r["steps"]
        return {"seconds": r["seconds"], "count": n, "stages": {k: v * n for k, v in r["stages"].items()},
                "hops": [{k: v * n for k, v in h.items()} for h in r["hops"]],
                "extra": {k: r[k] for k in ("work", "allocs_per_step", "allocated_bytes_per_step", "peak_rss_bytes") if k in r},
                "peak": r.get("peak")}

    return call


def infer(name: str, data: str, peers: Peers, threads: int) -> Row:
    def ours(count: int, warm: int) -> dict:
        r = gnb("bench", "infer", "--dataset", data, "--hidden", str(g.HIDDEN), "--threads", str(threads), "--limits=false", "--steps", str(count))
        return {"seconds": r["seconds"], "count": r["steps"], "extra": {"work": r["work"]}}

    e = [Engine("GraphNB, layer by layer", ours, ours=True)]
    ways = [("DGL, whole graph", "dgl", "whole"), ("PyG, whole graph, CSR", "pyg", "csr"), ("PyG, whole graph, edge_index", "pyg", "edge_index"),
            ("DGL, layer-wise loader", "dgl", "loader")]
    e += [Engine(n, asks(peers(p), "infer", variant=v), slow=v in ("edge_index", "loader"), warm=int(v != "loader")) for n, p, v in ways]
    e.append(Engine("DGL, whole graph, tuned malloc", asks(peers("dgl", True), "infer", variant="whole"), tuned=True))
    return Row(f"infer-{name}", "inference of all nodes with all neighbours, 3 layers", e, window=0.1, limits=limits_now(threads, 1024))


def full(name: str, data: str, peers: Peers, threads: int) -> Row:
    e = [Engine("GraphNB", train_ours(data, threads, "--full-graph"), ours=True, least=2, warm=1)]
    ways = (("DGL", "dgl", "", False), ("PyG, CSR", "pyg", "csr", False), ("PyG, edge_index", "pyg", "edge_index", False), ("DGL, tuned malloc", "dgl", "", True))
    e += [Engine(n, asks(peers(p, t), "full", variant=v), tuned=t, slow=v == "edge_index") for n, p, v, t in ways]
    return Row(f"full-{name}", f"a step of full-graph training: 3-layer SAGE-mean, hidden {g.HIDDEN}, dropout {g.DROPOUT}, Adam", e, window=0.1,
               limits=limits_now(threads, 1024))


SHAPES = [  # m, n, k, how the factors are stored
    (1024, 1024, 1024, "nn"), (65536, 256, 128, "nt"), (65536, 256, 256, "nt"), (65536, 256, 100, "nt"), (33529, 256, 128, "nt"),
    (7334, 256, 256, "nt"), (1024, 47, 256, "nt"), (65536, 256, 256, "nn"), (256, 128, 65536, "tn"), (256, 256, 65536, "tn"), (2708, 16, 1433, "nt"),
]


def gemm(peers: Peers, threads: int, quick: bool) -> list[Row]:
    core = openblas_core(threads)
    name = f"OpenBLAS ({core or 'its own choice'})"
    rows = []
    for t in [threads] if quick else sorted({1, threads}):
        for m, n, k, trans in SHAPES[:3] if quick else SHAPES:
            flop = 2.0 * m * n * k
            args = ["--m", str(m), "--n", str(n), "--k", str(k)] + ["--trans-a"] * (trans[0] == "t") + ["--trans-b"] * (trans[1] == "t")
            shape = {"m": m, "n": n, "k": k, "trans": trans}
            e = [Engine("GraphNB", bench("gemm", *args, threads=t), ours=True, warm=3, least=3),
                 Engine("PyTorch (MKL)", asks(peers("torch", threads=t), "gemm", **shape), warm=3, least=3),
                 Engine(name, asks(peers("openblas", threads=t, env={"OPENBLAS_CORETYPE": core} if core else None), "gemm", **shape), warm=3, least=3)]
            kind = {"nn": "A·B", "nt": "A·Bᵀ", "tn": "Aᵀ·B"}[trans]
            rows.append(Row(f"gemm-{m}x{n}x{k}-{trans}-{t}", f"{kind}, [{m},{k}]·[{k},{n}], {t} thread" + "s" * (t > 1), e,
                            rate=lambda r, flop=flop: (flop * r["count"] / r["seconds"] / 1e9, "GFLOP/s"), window=0.4, most=100_000))
    return rows


def openblas_core(threads: int) -> str:
    """The kernel of OpenBLAS that is fastest here: it does not always choose that itself."""
    best, fastest = "", float("inf")
    for core in ("", "SkylakeX", "Cooperlake", "Sapphirerapids", "Zen", "Haswell"):
        p = Peer("openblas", None, threads, {"OPENBLAS_CORETYPE": core} if core else None)
        try:
            r = min(p.ask("gemm", count=10, warm=5, m=1024, n=1024, k=1024, trans="nn")["seconds"] for _ in range(3))
            if r < 0.97 * fastest:
                best, fastest = core, r
        except Failed:
            pass  # a kernel that this processor cannot run
        finally:
            p.close()
    return best


def cora(data: str, peers: Peers, threads: int) -> Row:
    epochs = 200

    def ours(count: int, warm: int) -> dict:
        with tempfile.TemporaryDirectory() as runs:
            r = gnb("train", data, "--model", "gcn", "--layers", "2", "--hidden", "16", "--fanout", "full", "--epochs", str(epochs), "--eval", "full",
                    "--lr", "0.01", "--weight-decay", "0.0005", "--dropout", "0.5", "--input-dropout", "0.5", "--threads", str(threads),
                    "--checkpoint-every", "-1", "--resume", "never", runs=runs)
        return {"seconds": sum(r["epoch_seconds"]), "count": 1, "extra": {"test_accuracy": r["test_accuracy"]}}

    def theirs(peer: Peer) -> Call:
        def call(count: int, warm: int) -> dict:
            r = peer.ask("cora", count=epochs, warm=2)
            return {**r, "extra": {"test_accuracy": r["accuracy"]}}

        return call

    e = [Engine("GraphNB", ours, ours=True), Engine("PyG", theirs(peers("pyg"))), Engine("DGL", theirs(peers("dgl")))]
    return Row("cora", "2-layer GCN, hidden 16, 200 epochs with evaluation of val and test after each", e, unit="s", window=0.1)


def startup(data: str, threads: int) -> Row:
    env = process.environment(threads)

    def ours(count: int, warm: int) -> dict:
        with tempfile.TemporaryDirectory() as runs:
            cmd = [str(process.GNB), "train", data, "--model", "gcn", "--hidden", "16", "--fanout", "full", "--epochs", "1", "--eval", "none",
                   "--threads", str(threads), "--resume", "never", "--json"]
            return {"seconds": process.until_line(cmd, '"event":"epoch"', env | {"GNB_RUNS": runs}), "count": 1}

    def theirs(library: str) -> Call:
        cmd = [sys.executable, "-m", "peers.startup", library, data]
        return lambda count, warm: {"seconds": process.until_line(cmd, "step 1", env), "count": 1}

    e = [Engine("GraphNB", ours, ours=True), Engine("PyG", theirs("pyg")), Engine("DGL", theirs("dgl"))]
    return Row("startup", "from exec to the end of the first training step on Cora, files cached", e, window=0.1, rounds=7)


def workers(name: str, data: str, threads: int) -> Row:
    steps = 30

    def seeds(r: dict) -> tuple[float, str]:
        return g.BATCH * r["count"] / r["seconds"], "seeds/s"

    def ours(w: int, t: int) -> Call:
        def call(count: int, warm: int) -> dict:
            r = train_ours(data, t, workers=w)(steps, 5)
            return {"seconds": r["seconds"], "count": w * r["count"]}

        return call

    def theirs(engine: str, variant: str, w: int, t: int) -> Call:
        def call(count: int, warm: int) -> dict:
            cmd = [sys.executable, "-m", "peers.ddp", engine, data, "--workers", str(w), "--threads", str(t), "--variant", variant,
                   "--steps", str(steps if engine != "pyg" else max(4, steps // 3)), "--warmup", "3", "--port", str(process.free_port())]
            r = json.loads(process.last_line(cmd, process.environment(t), timeout=180))
            return {"seconds": r["seconds"], "count": w * r["count"]}

        return call

    e = []
    for w, t in ((1, threads), (threads, 1)):
        at = f", {w} × {t}"
        e += [Engine("GraphNB" + at, ours(w, t), ours=True), Engine("GraphBolt int32" + at, theirs("graphbolt", "", w, t)),
              Engine("PyG trim_to_layer" + at, theirs("pyg", "trim", w, t), own_rule=True)]
    return Row(f"workers-{name}", f"worker processes × threads, steps of {g.BATCH} seeds a worker: time for {g.BATCH} seeds", e, rate=seeds, window=0.1, rounds=3)


def limits_now(threads: int, row_bytes: int) -> Callable[[], dict]:
    """Measures the limits that a row's floor is computed from: clocks and bandwidth change within minutes."""
    names = ("peak_gflops", "copy_gb_per_second", "random_row_gb_per_second", "random_row_bytes")

    def now() -> dict:
        r = gnb("bench", "limits", "--threads", str(threads), "--row-bytes", str(row_bytes))
        return {k: r[k] for k in names}

    return now


def limits(threads: int) -> list[dict]:
    """The machine's limits by a plain C program where there is a compiler, and by ours."""
    out = []
    src = Path(__file__).with_name("limits.c")
    with tempfile.TemporaryDirectory() as d:
        exe = f"{d}/limits"
        built = subprocess.run(["cc", "-O3", "-march=native", "-fopenmp", str(src), "-o", exe], capture_output=True, check=False)
        for t in sorted({1, threads}):
            if built.returncode == 0:
                r = json.loads(subprocess.run([exe, str(t)], capture_output=True, text=True, check=True, env=process.environment(t)).stdout)
                out.append({"by": "C", **r})
            if t != threads:
                continue
            ours = {"by": "GraphNB", "threads": t, "random_row_gb_per_second": {}}
            for row in (400, 512, 1024):
                r = gnb("bench", "limits", "--threads", str(t), "--row-bytes", str(row))
                ours["random_row_gb_per_second"][str(row)] = r["random_row_gb_per_second"]
                for k in ("peak_gflops", "copy_gb_per_second"):
                    ours[k] = max(ours.get(k, 0), r[k])
            out.append(ours)
    return out

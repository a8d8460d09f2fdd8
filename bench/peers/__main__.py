"""GraphNB and its peers, side by side on this machine.

    make bench-peers ARGS="[--quick] [--only ROWS]"

ROWS are beginnings of names, separated by commas: limits, gemm, arxiv (sample, gather, spmm, train, memory, infer, full of
it), products, cora, startup, workers; or sample, train-products and so on. Prints progress on standard error and
writes one Markdown page and one JSON file.
"""

import argparse
import datetime
import os
import platform
import subprocess
import sys
from pathlib import Path

from peers import data, machine, process, report, rows
from peers.process import Failed
from peers.turns import Result, Row, measure


class Session:
    """One run: what is wanted, and what came of it."""

    def __init__(self, o: argparse.Namespace) -> None:
        self.o = o
        self.only = [x for x in (o.only or "").split(",") if x]
        self.results: list[Result] = []
        self.limits: list[dict] = []
        self.left_out: list[str] = []
        self.versions: dict[bool, dict[str, str]] = {False: {}, True: {}}  # of this environment, and of the newest PyTorch's

    def wants(self, *names: str) -> bool:
        return not self.only or any(n.startswith(x) or x in n.split("-") for n in names for x in self.only)

    def run(self, row: Row) -> None:
        if not self.wants(row.name):
            return
        if self.o.quick:
            row.window, row.rounds = min(row.window, 0.7), min(row.rounds, 3)
            row.engines = [e for e in row.engines if not (e.tuned or e.slow)]
        row.window, row.rounds = self.o.window or row.window, self.o.rounds or row.rounds
        self.results += measure(row)

    def graph(self, name: str, path: str, lean: bool) -> None:
        """Every row on one graph, its peers started once."""
        kinds = ["sample", "gather", "train", "memory"] + ([] if lean else ["spmm", "infer", "full"])
        if not self.wants(*(f"{k}-{name}" for k in kinds)):
            return
        peers = rows.Peers(path, self.o.threads)
        try:
            self.run(rows.sample(name, path, peers, self.o.threads))
            self.run(rows.gather(name, path, peers, self.o.threads))
            train = rows.train(name, path, peers, self.o.threads, lean)
            self.run(train)
            if self.wants(f"memory-{name}"):
                self.memory(name, path, peers, train)
            if not lean:
                for row in rows.spmm(name, path, peers, self.o.threads)[: 2 if self.o.quick else 4]:
                    self.run(row)
                for row in (rows.infer(name, path, peers, self.o.threads), rows.full(name, path, peers, self.o.threads)):
                    self.run(row)
            self.note(peers)
        finally:
            peers.close()

    def memory(self, name: str, path: str, peers: rows.Peers, train: Row) -> None:
        """The peak of each engine's memory during some training steps; mapped files are shown apart."""
        print(f"memory-{name}", file=sys.stderr)
        engines = {"GraphNB": None, "GraphBolt int32": ("graphbolt", False, ""), "DGL": ("dgl", False, ""), "PyG trim_to_layer": ("pyg", False, "trim"),
                   "GraphBolt int32, tuned malloc": ("graphbolt", True, "")}
        for label, spec in engines.items():
            if self.o.quick and spec and spec[1]:
                continue
            r = Result(f"memory-{name}", label, spec is None, bool(spec and spec[1]), "MB", count=1)
            try:
                if spec is None:
                    peak = rows.train_ours(path, self.o.threads, watch=True)(20, 5)["peak"]
                else:
                    p = peers(spec[0], spec[1])
                    p.ask("train", count=1, warm=1, variant=spec[2])
                    watch = machine.PeakMemory(p.pid)
                    p.ask("train", count=10 if spec[0] != "pyg" else 3, warm=0, variant=spec[2])
                    peak = watch.stop()
                r.windows = [peak[0] / 1e6]
                r.extra = {"own_bytes": peak[0], "mapped_file_bytes": peak[1]}
                r.note = f"mapped files beside it: {peak[1] / 1e6:.0f} MB"
            except Failed as e:
                r.refused = str(e)
            self.results.append(r)

    def note(self, peers: rows.Peers) -> None:
        for newest, versions in self.versions.items():
            for info in peers.infos(newest):
                versions |= {k: str(info[k]) for k in ("python", "torch", "torch_geometric", "pyg_lib", "dgl", "numpy", "openblas") if info.get(k)}
                if info.get("pyg_lib") == "":
                    self.left_out.append(f"PyG's sampled rows on torch {info['torch']}: pyg-lib is not installed; "
                                         "PYG_LIB_SRC names a checkout to build it from")

    def all(self) -> None:
        o = self.o
        if self.wants("limits"):
            print("limits", file=sys.stderr)
            self.limits = rows.limits(o.threads)
        if self.wants("gemm"):
            peers = rows.Peers(None, o.threads)
            try:
                for row in rows.gemm(peers, o.threads, o.quick):
                    self.run(row)
                self.note(peers)
            finally:
                peers.close()
        cora, why = data.cora(o.data)
        if why:
            self.left_out.append(f"cora, startup: {why}")
        else:
            if self.wants("cora"):
                peers = rows.Peers(cora, o.threads)
                try:
                    self.run(rows.cora(cora, peers, o.threads))
                    self.note(peers)
                finally:
                    peers.close()
            self.run(rows.startup(cora, o.threads))
        arxiv, why = data.arxiv(o.data)
        name = "arxiv"
        if why:
            self.left_out.append(f"arxiv: {why}; a small graph of products' kind stands in for it")
            name, arxiv = "small", data.products(small=True)
        self.graph(name, arxiv, lean=False)
        if o.threads > 1 and (not o.quick or "workers" in self.only):
            self.run(rows.workers(name, arxiv, o.threads))
        if o.quick and not any("products" in x for x in self.only):
            self.left_out.append("products and workers, tuned and slow engines: not in a quick run")
        elif self.wants(*(f"{k}-products" for k in ("sample", "gather", "train", "memory"))):
            self.graph("products", data.products(), lean=True)


def commit() -> str:
    r = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=process.ROOT, capture_output=True, text=True, check=False)
    return r.stdout.strip() or "unknown"


def main() -> None:
    p = argparse.ArgumentParser(prog="bench-peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--quick", action="store_true", help="fewer and shorter windows, under three minutes; results go to build/bench")
    p.add_argument("--only", help="rows to measure")
    p.add_argument("--rounds", type=int, help="windows of each engine (default 5, or what the row says)")
    p.add_argument("--window", type=float, help="seconds of a window (default what the row says)")
    p.add_argument("--threads", type=int, default=os.cpu_count(), help="threads of every engine")
    p.add_argument("--data", default=os.environ.get("GNB_DATA", "../shared/data"), help="folder of the real graphs (GNB_DATA)")
    p.add_argument("--out", help="folder for the results (default bench/results)")
    o = p.parse_args()
    session = Session(o)
    about = {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), "threads": o.threads, "only": o.only or "", "machine": machine.describe(),
             "command": " ".join(["make bench-peers", f'ARGS="{" ".join(sys.argv[1:])}"'] if sys.argv[1:] else ["make bench-peers"])}
    watch = machine.Watch()
    session.all()
    go = subprocess.run(["go", "version"], capture_output=True, text=True, check=False).stdout.split()
    about |= {"versions": {"graphnb": commit(), "go": go[2] if len(go) > 2 else "", "python": platform.python_version(), **session.versions[False]},
              **({"versions_newest": session.versions[True]} if session.versions[True] else {}),
              "left_out": list(dict.fromkeys(session.left_out)), "load": vars(watch.stop())}
    out = Path(o.out) if o.out else process.ROOT / ("build/bench" if o.quick or o.only else "bench/results")
    page = report.write(out, about, session.limits, session.results)
    print(page.read_text())
    print(f"written to {page} and {page.with_suffix('.json').name}", file=sys.stderr)


if __name__ == "__main__":
    main()

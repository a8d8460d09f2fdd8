"""Measures cooperative batches beside independent workers and one worker, and writes results/cooperative.json.

    python3 bench/cooperative.py --gnb build/gnb planted build/bench/cora build/bench/arxiv build/bench/products-like

A step samples fanouts 15, 10 and 5 for 1024 seeds and trains GraphSAGE with a hidden width of 64. One worker with two
threads and two workers with one thread each take turns; the median of the turns counts. The processor time of a step is
that of an epoch of `gnb train`, all processes together, divided by its steps; other programs disturb it less than the
time of a step. It is left out for epochs of fewer than 10 steps. Edges, rows and digests are counted with 1, 2 and 4
workers. Results of other datasets stay in the file, and those of a dataset's times if --seconds is 0, or its counts with
--times, so that several calls can measure in short windows; each result has its own date.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

FANOUT = ["--fanout", "15,10,5"]
BATCH = 1024
MODES = {"one": ("1", "2", False), "independent": ("2", "1", False), "cooperative": ("2", "1", True)}


def result(cmd: list[str]) -> dict:
    out = subprocess.run([*cmd, "--json"], capture_output=True, text=True, check=True).stdout
    last = json.loads(out.strip().split("\n")[-1])
    return last.get("result", last)


def step_times(gnb: str, data: str, steps: int) -> dict[str, float]:
    """Milliseconds of a step in each mode, one turn."""
    ms = {}
    for workers, threads in (("1", "2"), ("2", "1")):
        cmd = [gnb, "scaling", data, *FANOUT, "--workers", workers, "--threads", threads, "--repeats", "1", "--warmup", "3", "--steps", str(steps)]
        for p in result(cmd + (["--cooperative"] if workers != "1" else []))["points"]:
            mode = "one" if workers == "1" else "cooperative" if p.get("cooperative") else "independent"
            ms[mode] = 1e3 * p["step_seconds"]
    return ms


def processor_time(gnb: str, data: str, steps: int, mode: str) -> float:
    """Milliseconds of processor time per step of an epoch."""
    workers, threads, together = MODES[mode]
    with tempfile.TemporaryDirectory() as folder:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [gnb, "train", data, *FANOUT, "--workers", workers, "--threads", threads, "--epochs", "1", "--eval", "none", "--run", folder + "/run"]
            + (["--cooperative"] if together else []), check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / steps


def counts(gnb: str, data: str) -> list[dict]:
    """What 1, 2 and 4 workers repeat and move, and the digests of their cooperative batches."""
    out = []
    curve = result([gnb, "scaling", data, *FANOUT, "--workers", "1,2,4", "--cooperative", "--repeats", "1", "--warmup", "1", "--steps", "2"])
    for p in curve["points"]:
        together = p.get("cooperative", False)
        cmd = [gnb, "sample", data, *FANOUT, "--steps", "4", "--workers", str(p["workers"]), "--threads", "1"]
        out.append({
            "workers": p["workers"], "cooperative": together, "edges": round(p["repeated_edges"], 4), "rows": round(p["repeated_rows"], 4),
            "moved_mb": round(p.get("moved_bytes", 0) / 1e6, 2), "digest": result(cmd + (["--cooperative"] if together else []))["digest"],
        })
    return out


def measure(o: argparse.Namespace, data: str, batches: int, d: dict) -> None:
    """Adds the times of a step to d."""
    turns, cpu, end = {m: [] for m in MODES}, {m: [] for m in MODES}, time.time() + o.seconds
    while not turns["one"] or time.time() < end:
        for mode, ms in step_times(o.gnb, data, o.steps).items():
            turns[mode].append(ms)
        if batches >= 10:
            for mode in MODES:
                cpu[mode].append(processor_time(o.gnb, data, batches, mode))
    d["load"].append(round(os.getloadavg()[0], 1))
    d["turns"] = len(turns["one"])
    d["step_ms"] = {m: round(statistics.median(v), 2) for m, v in turns.items()}
    if cpu["one"]:
        d["cpu_ms"] = {m: round(statistics.median(v), 2) for m, v in cpu.items()}


def main() -> None:
    a = argparse.ArgumentParser()
    a.add_argument("--gnb", default="build/gnb")
    a.add_argument("--steps", type=int, default=20)
    a.add_argument("--seconds", type=float, default=60, help="time for the turns of a dataset; 0 only counts, and keeps the times in the file")
    a.add_argument("--out", default=str(Path(__file__).parent / "results" / "cooperative.json"))
    a.add_argument("--times", action="store_true", help="only measure times, and keep the counts in the file")
    a.add_argument("data", nargs="+")
    o = a.parse_args()
    all_of = {"datasets": []}
    if os.path.exists(o.out):
        all_of = json.loads(Path(o.out).read_text())
        for d in all_of["datasets"]:  # of the time when a file had one date
            d.setdefault("date", all_of.get("date"))
    all_of |= {"date": time.strftime("%Y-%m-%d"), "cores": os.cpu_count()}
    for data in o.data:
        info = result([o.gnb, "sample", data, "--fanout", "1"])
        d = {"name": "products-like" if "products" in data else Path(data).name, "date": all_of["date"], "load": [round(os.getloadavg()[0], 1)]}
        at = next((i for i, old in enumerate(all_of["datasets"]) if old["name"] == d["name"]), len(all_of["datasets"]))
        old = all_of["datasets"][at] if at < len(all_of["datasets"]) else {}
        d["counts"] = old["counts"] if o.times and "counts" in old else counts(o.gnb, data)
        if o.seconds > 0:
            measure(o, data, info["batches"], d)
        elif "step_ms" in old:
            d |= {"load": old["load"], "timed": old.get("timed", old["date"])} | {k: old[k] for k in ("turns", "step_ms", "cpu_ms") if k in old}
        all_of["datasets"][at:at + 1] = [d]
        print(json.dumps(d, indent=1), flush=True)
    Path(o.out).write_text(json.dumps(all_of, indent=1) + "\n")


if __name__ == "__main__":
    main()

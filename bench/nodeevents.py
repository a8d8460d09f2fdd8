"""Trains models of what will happen to nodes on CollegeMsg and on the changes of etcd, three seeds each, and records their error or ROC AUC beside
those of predictions that learn nothing.

usage: python3 bench/nodeevents.py GNB [DATA/ASK/MODEL …]      for instance collegemsg/any/counts (default all)

The tables come from GNB_DATA (temporal/…). The metrics are those of the test at the epoch with the best validation metric. The results are
recorded in bench/results/nodeevents.json, one at a time; those that are not measured again are kept.
"""

import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import hardware

HERE = pathlib.Path(__file__).resolve().parent
RESULTS = HERE / "results" / "nodeevents.json"
DATA = {
    "collegemsg": ("temporal/collegemsg/uci.csv", ""),
    "etcd": ("temporal/etcd/events.csv", "--bipartite"),
}
ASKS = {
    "collegemsg/any": "--ask any --window 7d --every 1d",
    "collegemsg/count": "--window 1d",
    "etcd/any": "--ask any --who destinations --window 4w",
    "etcd/count": "--who destinations --window 4w",
}
MODELS = ("counts", "tgn")
SEEDS = (1, 2, 3)


def command(words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}: {done.stderr.strip()}")
    return done.stdout


def main():
    gnb, chosen = str(pathlib.Path(sys.argv[1]).resolve()), sys.argv[2:]
    version = json.loads(command([gnb, "version", "--json"]))
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for ask, flags in ASKS.items():
        name, kind = ask.split("/")
        metric, plain = ("auc", ("persistent", "frequent")) if kind == "any" else ("mae", ("persistent", "average"))
        for model in MODELS:
            if chosen and f"{ask}/{model}" not in chosen:
                continue
            with tempfile.TemporaryDirectory() as folder:
                table, convert = DATA[name]
                command([gnb, "data", "convert", os.path.join(os.environ["GNB_DATA"], table), f"{folder}/data", *convert.split()])
                rows = []
                for seed in SEEDS:
                    words = [gnb, "train", f"{folder}/data", "--task", "node-events", *flags.split(), "--model", model, "--seed", str(seed), "--run", f"{folder}/run{seed}", "--json"]
                    values = json.loads(command(words).splitlines()[-1])
                    names = [f"{split}_{m}" for split in ("val", "test") for m in (metric, *(f"{p}_{metric}" for p in plain))]
                    rows.append({n: values[n] for n in [*names, "best_epoch", "seconds"]})
            results[f"{ask}/{model}"] = {
                "command": f"gnb train D --task node-events {flags} --model {model} --seed S",
                "metric": metric,
                "test": [statistics.mean(r[f"test_{metric}"] for r in rows), statistics.stdev(r[f"test_{metric}"] for r in rows)],
                "plain": {p: rows[0][f"test_{p}_{metric}"] for p in plain},
                "seconds_of_a_run": round(statistics.median(r["seconds"] for r in rows), 1),
                "seeds": rows,
                "date": datetime.date.today().isoformat(), "version": version["version"], "revision": version.get("revision", ""), "machine": hardware.describe(),
            }
            RESULTS.write_text(json.dumps(results, indent=1) + "\n")
            print(ask, model, results[f"{ask}/{model}"]["test"], results[f"{ask}/{model}"]["plain"], results[f"{ask}/{model}"]["seconds_of_a_run"], flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main()

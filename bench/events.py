"""Trains models of events on CollegeMsg and on the changes of etcd, five seeds each (mixer and tgat three), and records MRR and the time of an epoch.

usage: python3 bench/events.py GNB [DATA/MODEL …]      DATA: collegemsg, etcd; MODEL: counts, walks, tgn, mixer, tgat (default all)

The tables come from GNB_DATA (temporal/…). The metrics are those of the test at the epoch with the best validation MRR, among the negatives
of the Temporal Graph Benchmark. The time of an epoch is that of training alone, the median over epochs and seeds; it counts only if nothing
else runs. The results are recorded in bench/results/events.json, one at a time; those that are not measured again are kept. bench/temporal has
the programs of PyG's and TGM's TGN.
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
RESULTS = HERE / "results" / "events.json"
DATA = {
    "collegemsg": ("temporal/collegemsg/uci.csv", ""),
    "etcd": ("temporal/etcd/events.csv", "--bipartite"),
}
MODELS = {"counts": "--epochs 5", "walks": "--epochs 5", "tgn": "--epochs 10", "mixer": "--epochs 3", "tgat": "--epochs 2"}
SEEDS = {"counts": 5, "walks": 5, "tgn": 5, "mixer": 3, "tgat": 3}


def command(words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}: {done.stderr.strip()}")
    return done.stdout


def train(gnb, data, model, seed, folder):
    words = [gnb, "train", data, "--task", "events", "--model", model, *MODELS[model].split(), "--seed", str(seed), "--run", folder, "--json"]
    values = json.loads(command(words).splitlines()[-1])
    epochs = []
    for line in (pathlib.Path(folder) / "metrics.jsonl").read_text().splitlines():
        event = json.loads(line)
        if event["event"] == "epoch":
            stages = event["stages"]
            epochs.append(event["seconds"] - stages.get("evaluate", 0))
    return {name: values[name] for name in ("val_mrr", "test_mrr", "test_hits_10", "best_epoch", "test_edgebank_mrr", "test_edgebank_window_mrr")}, epochs


def main():
    gnb, chosen = str(pathlib.Path(sys.argv[1]).resolve()), sys.argv[2:]
    version = json.loads(command([gnb, "version", "--json"]))
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name, (table, flags) in DATA.items():
        for model in MODELS:
            if chosen and f"{name}/{model}" not in chosen:
                continue
            with tempfile.TemporaryDirectory() as folder:
                command([gnb, "data", "convert", os.path.join(os.environ["GNB_DATA"], table), f"{folder}/data", *flags.split()])
                rows, epochs = [], []
                for seed in range(1, SEEDS[model] + 1):
                    row, seconds = train(gnb, f"{folder}/data", model, seed, f"{folder}/run{seed}")
                    rows.append(row)
                    epochs += seconds
            results[f"{name}/{model}"] = {
                "command": f"gnb train D --task events --model {model} {MODELS[model]} --seed S",
                "test_mrr": [statistics.mean(r["test_mrr"] for r in rows), statistics.stdev(r["test_mrr"] for r in rows)],
                "val_mrr": [statistics.mean(r["val_mrr"] for r in rows), statistics.stdev(r["val_mrr"] for r in rows)],
                "edgebank": rows[0]["test_edgebank_mrr"], "edgebank_window": rows[0]["test_edgebank_window_mrr"],
                "seconds_of_an_epoch": round(statistics.median(epochs), 2), "seeds": rows,
                "date": datetime.date.today().isoformat(), "version": version["version"], "revision": version.get("revision", ""), "machine": hardware.describe(),
            }
            RESULTS.write_text(json.dumps(results, indent=1) + "\n")
            print(name, model, results[f"{name}/{model}"]["test_mrr"], results[f"{name}/{model}"]["seconds_of_an_epoch"])


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main()

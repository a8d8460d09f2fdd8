"""Trains embeddings of FB15k-237 with GraphNB, and measures an epoch of the same model in PyTorch.

usage: python3 bench/kg.py GNB [NAME …]      NAME: distmult, complex, rgcn, torch (default all); torch needs a Python with torch

The triples come from GNB_DATA (kg/fb15k-237). Each command trains with one thread; the metrics are those of the test
triples, filtered, at the epoch with the best validation MRR. "torch" measures the processor time of the first steps of
DistMult with the same queries, columns, batch and loss in PyTorch with one thread. The results are recorded in
bench/results/kg.json, one at a time; those that are not measured again are kept.
"""

import datetime
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

import hardware

HERE = pathlib.Path(__file__).resolve().parent
RESULTS = HERE / "results" / "kg.json"
COMMON = "--task triples --loss 1vsall --batch 512 --lr 0.005 --threads 1 --seed 1"
RGCN = "--encoder rgcn --encoder-blocks 40 --encoder-dropout 0.2 --messages 0.5 --loss bce --negatives 10 --batch 30000 --lr 0.01 --clip 1"
COMMANDS = {
    "distmult": {"aim": 0.24, "flags": f"--decoder distmult --dim 128 --dropout 0.3 --epochs 10 --eval-every 2 {COMMON}"},
    "complex": {"aim": 0.247, "flags": f"--decoder complex --dim 64 --dropout 0.3 --epochs 10 --eval-every 2 {COMMON}"},
    "rgcn": {"aim": 0.24, "flags": f"--task triples --decoder distmult {RGCN} --dim 200 --dropout 0.2 --epochs 120 --eval-every 8 --threads 1 --seed 1"},
}
TORCH_STEPS = 20


def processor():
    use = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in use)


def train(gnb, data, flags):
    command = [gnb, "train", str(data), *flags.split(), "--resume", "never", "--json"]
    began, spent = time.time(), processor()
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    values = json.loads(done.stdout.splitlines()[-1])
    row = {name: values[name] for name in ("val_mrr", "test_mrr", "test_hits_1", "test_hits_3", "test_hits_10", "best_epoch") if name in values}
    return {**row, "seconds": round(time.time() - began, 1), "processor_seconds": round(processor() - spent, 1)}


def torch_epoch(folder):
    """The processor seconds of an epoch of DistMult in PyTorch, from its first steps."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(1)
    entities, relations, answers = {}, {}, {}
    for line in (folder / "train.txt").read_text().splitlines():
        h, r, t = line.split("\t")
        h, t = (entities.setdefault(x, len(entities)) for x in (h, t))
        r = relations.setdefault(r, len(relations))
        answers.setdefault((h, 2 * r), []).append(t)
        answers.setdefault((t, 2 * r + 1), []).append(h)
    entity = torch.nn.Parameter(torch.empty(14541, 128).uniform_(-0.1, 0.1))
    relation = torch.nn.Parameter(torch.empty(2 * len(relations), 128).uniform_(-0.1, 0.1))
    optimizer = torch.optim.Adam([entity, relation], lr=0.005)
    queries = list(answers)
    order = torch.randperm(len(queries)).tolist()
    spent = None
    for step in range(TORCH_STEPS + 2):
        if step == 2:  # the first steps allocate memory
            spent = processor()
        chosen = [queries[i] for i in order[step * 512:(step + 1) * 512]]
        heads, rels = torch.tensor(chosen).t()
        rows = torch.tensor([i for i, q in enumerate(chosen) for _ in answers[q]])
        tails = torch.tensor([t for q in chosen for t in answers[q]])
        count = torch.bincount(rows, minlength=len(chosen)).float()
        optimizer.zero_grad()
        drop = torch.nn.functional.dropout
        scores = (drop(entity[heads], 0.3) * drop(relation[rels], 0.3)) @ entity.t()
        loss = (scores.logsumexp(1) @ count - scores[rows, tails].sum()) / len(tails)
        loss.backward()
        optimizer.step()
    steps = (len(queries) + 511) // 512
    return {"processor_seconds_per_epoch": round((processor() - spent) / TORCH_STEPS * steps, 1), "queries": len(queries), "steps_measured": TORCH_STEPS, "torch": torch.__version__}


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    gnb, names = os.path.abspath(sys.argv[1]), sys.argv[2:] or [*COMMANDS, "torch"]
    raw = pathlib.Path(os.environ.get("GNB_DATA", HERE / "../../shared/data")) / "kg/fb15k-237"
    version = json.loads(subprocess.run([gnb, "version", "--json"], capture_output=True, text=True, check=True).stdout)
    with tempfile.TemporaryDirectory() as tmp:
        os.environ["GNB_RUNS"] = f"{tmp}/runs"
        data = pathlib.Path(tmp) / "fb15k-237"
        subprocess.run([gnb, "data", "convert", str(raw), str(data)], check=True, stdout=subprocess.DEVNULL)
        for name in names:
            row = torch_epoch(raw) if name == "torch" else {"aim": COMMANDS[name]["aim"], "command": f"gnb train D {COMMANDS[name]['flags']}", **train(gnb, data, COMMANDS[name]["flags"])}
            row |= {"date": datetime.date.today().isoformat(), "version": version["version"], "revision": version.get("revision", ""), "machine": hardware.describe()}
            record = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
            record[name] = row
            RESULTS.write_text(json.dumps(record, indent=1) + "\n")
            print(name, row, flush=True)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Compares GraphNB's sum of gradients with the all-reduce of Gloo (PyTorch) and of Open MPI.

    bench/allreduce.py GNB [--mpicc PATH [--gnb-mpi GNB]] [--ranks 2] [--turns 10]

GNB is the command gnb. In shared memory GraphNB's ranks are worker processes, those of multigpu's benchmark, which the
command go builds; over TCP each is a thread of GNB. Gloo runs if this Python has PyTorch, Open MPI if --mpicc names its compiler,
and GraphNB through it if --gnb-mpi names a command that is built for it (scripts/mpi-env.sh). Open MPI
runs twice, since it may choose a slower transport than its own shared memory: as it is, and with pml ob1.
The engines take turns; in a turn each sums 30 times after 5 that do not count, and the median of
the 30 counts. The table shows the median of the turns and their range, in microseconds.
"""
import argparse, json, os, pathlib, re, shutil, statistics, subprocess, sys, tempfile

SIZES = {"0.9 MB": 225_000, "20 MB": 5_000_000}
STEPS, WARMUP = 30, 5

GLOO = """
import os, statistics, sys, time
import torch, torch.distributed as d
rank, world, n, steps, warmup = map(int, sys.argv[1:6])
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=sys.argv[6], GLOO_SOCKET_IFNAME="lo")
d.init_process_group("gloo", rank=rank, world_size=world)
x, each = torch.full((n,), float(rank)), []
for i in range(warmup + steps):
    start = time.perf_counter()
    d.all_reduce(x)
    if i >= warmup:
        each.append(time.perf_counter() - start)
    x.fill_(1.0)
if rank == 0:
    print(statistics.median(each))
d.barrier()
d.destroy_process_group()
"""

MPI = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
static int by_size(const void *a, const void *b) { double x = *(double *)a, y = *(double *)b; return (x > y) - (x < y); }
int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank, n = atoi(argv[1]), steps = atoi(argv[2]), warmup = atoi(argv[3]);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  float *from = malloc(4L * n), *to = malloc(4L * n);
  double *each = malloc(8L * steps);
  for (int i = 0; i < n; i++) from[i] = rank;
  for (int i = 0; i < warmup + steps; i++) {
    double start = MPI_Wtime();
    MPI_Allreduce(from, to, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    if (i >= warmup) each[i - warmup] = MPI_Wtime() - start;
  }
  qsort(each, steps, 8, by_size);
  if (rank == 0) printf("%.9f\n", each[steps / 2]);
  MPI_Finalize();
}
"""


def gnb_workers(folder):
    """Sums between worker processes, by a benchmark that does 20 more before it measures."""
    root, program = pathlib.Path(__file__).parents[1], folder / "multigpu.test"
    subprocess.run(["go", "test", "-c", "-o", program, "./multigpu"], check=True, cwd=root)

    def run(n, ranks, _):
        out = subprocess.run([program, "-test.run=^$", f"-test.bench=Collectives/reduce/floats={n}/world={ranks}$", f"-test.benchtime={STEPS}x"],
                             check=True, capture_output=True, text=True, cwd=root / "multigpu").stdout
        return float(re.search(r"([\d.]+) ns/op", out)[1]) / 1e9
    return run


def gnb_tcp(command):
    def run(n, ranks, _):
        out = subprocess.run([command, "bench", "allreduce", "--json", "--limits=false", "--transport=tcp", f"--elements={n}",
                              f"--workers={ranks}", f"--steps={STEPS}", f"--warmup={WARMUP}"], check=True, capture_output=True, text=True)
        return json.loads(out.stdout)["median_seconds"]
    return run


def gnb_mpi(command, mpicc):
    mpirun = pathlib.Path(mpicc).parent / "mpirun"

    def run(n, ranks, _):
        out = subprocess.run([mpirun, "--allow-run-as-root", "--oversubscribe", "-np", str(ranks), command, "bench", "allreduce", "--json",
                              "--limits=false", "--transport=mpi", f"--elements={n}", f"--steps={STEPS}", f"--warmup={WARMUP}"],
                             check=True, capture_output=True, text=True)
        return json.loads(out.stdout)["median_seconds"]
    return run


def gloo(n, ranks, port):
    args = [str(a) for a in (ranks, n, STEPS, WARMUP, port)]
    each = [subprocess.Popen([sys.executable, "-c", GLOO, str(r), *args], stdout=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
            for r in range(ranks)]
    outs = [p.communicate(timeout=300)[0] for p in each]
    if any(p.returncode for p in each):
        raise SystemExit("Gloo failed")
    return float(outs[0])


def open_mpi(mpicc, folder, options=()):
    source, program = folder / "allreduce.c", folder / "allreduce"
    source.write_text(MPI)
    subprocess.run([mpicc, "-O2", "-o", program, source], check=True)
    mpirun = pathlib.Path(mpicc).parent / "mpirun"

    def run(n, ranks, _):
        out = subprocess.run([mpirun, "--allow-run-as-root", "--oversubscribe", *options, "-np", str(ranks), program, str(n), str(STEPS), str(WARMUP)],
                             check=True, capture_output=True, text=True)
        return float(out.stdout)
    return run


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gnb")
    parser.add_argument("--mpicc", help="the compiler of Open MPI; its mpirun lies beside it")
    parser.add_argument("--gnb-mpi", help="the command gnb, built for that Open MPI")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--json", help="file for the results")
    a = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp())
    engines = {"GraphNB, shared memory": gnb_workers(folder), "GraphNB, TCP": gnb_tcp(a.gnb)}
    try:
        import torch  # noqa: F401
        engines["Gloo"] = gloo
    except ImportError:
        print("no PyTorch: Gloo is left out", file=sys.stderr)
    try:
        if a.mpicc:
            if a.gnb_mpi:
                engines["GraphNB, Open MPI"] = gnb_mpi(a.gnb_mpi, a.mpicc)
            engines["Open MPI"] = open_mpi(a.mpicc, folder)
            engines["Open MPI, pml ob1"] = open_mpi(a.mpicc, folder, ["--mca", "pml", "ob1"])
        results = {}
        for size, n in SIZES.items():
            times = {e: [] for e in engines}
            for turn in range(a.turns):
                for i, (name, run) in enumerate(engines.items()):
                    times[name].append(1e6 * run(n, a.ranks, 21000 + 7 * turn + i))
            results[size] = times
            for name, each in times.items():
                print(f"{size:>7}  {name:24} {statistics.median(each):9.0f} µs  ({min(each):.0f} to {max(each):.0f})", flush=True)
        if a.json:
            pathlib.Path(a.json).write_text(json.dumps({"ranks": a.ranks, "sums_per_turn": STEPS, "microseconds": results}, indent=1) + "\n")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()

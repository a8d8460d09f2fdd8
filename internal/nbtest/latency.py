"""Measures how long a user of a notebook waits: from running an edited cell to its first output and, if the
cell trains, to its first loss.

usage: latency.py [--repeats N] [--json FILE] KERNEL…

The script edits every cell (it changes a number, so that the cell is compiled and linked again) and runs it
once for warming up and then N times. It prints a line for each kernel and cell: medians, the slowest of
ten, and the aims. The time to the end is that of the cell whose training takes about a second.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

import lean  # noqa: F401 (for what it does; before Jupyter's packages)
from jupyter_client.manager import start_new_kernel

import ports  # noqa: F401 (for what it does)

IMPORT = 'import "github.com/graphnb/graphnb/gnb"\n\n'
# The cells to run, and the aims in seconds: first output, first loss.
CELLS = [
    ("prints", IMPORT + "%%%%\nfmt.Println(%d)\n", None, None),
    ("loads a graph", IMPORT + '%%%%\nfmt.Println(gnb.Must(gnb.Load(context.Background(), "karate")), %d)\n', None, None),
    ("trains, 2 workers", IMPORT + '%%%%\nds := gnb.Must(gnb.Load(context.Background(), "planted"))\n'
     "var o gnb.TrainOptions\no.Workers, o.Epochs, o.Seed = 2, 10, %d\nfmt.Println(gnb.Must(gnb.Train(context.Background(), ds, gnb.SAGE, o)))\n", 0.6, 2.0),
]
LIST = '{{if and (ne .Name "main") .GoFiles}}{{.ImportPath}}{{end}}'
RELINK_CUDA = 1.0  # s, until the first output of a cell under a kernel for GPUs


def every_package(cell):
    """Returns the cell with imports of all of the module's packages that a cell may import."""
    listed = subprocess.run(["go", "list", "-f", LIST, "./..."], check=True, capture_output=True, text=True).stdout.split()
    return "".join(f'import _ "{p}"\n' for p in listed if "internal" not in p.split("/")) + cell


def once(kc, code):
    """Returns the seconds until the first output, the first loss (or None) and the end of code in a cell."""
    start = time.perf_counter()
    seen = {"output": None, "loss": None, "error": None}

    def hook(msg):
        kind, content = msg["msg_type"], msg["content"]
        now = time.perf_counter() - start
        if kind == "error":
            seen["error"] = content["evalue"]
        if kind in ("stream", "display_data", "update_display_data"):
            text = content.get("text") or content["data"].get("text/plain", "")
            if seen["output"] is None:
                seen["output"] = now
            if seen["loss"] is None and re.search(r"\bloss \d", text):
                seen["loss"] = now

    reply = kc.execute_interactive(code, output_hook=hook, timeout=300)
    end = time.perf_counter() - start
    if reply["content"]["status"] != "ok" or seen["output"] is None:
        sys.exit(f"a cell ended as {reply['content']['status']}: {seen['error']}\n{code}")
    return seen["output"], seen["loss"], end


def busy(seconds=2):
    """Returns the share of the machine's processor time that other programs use."""
    def read():
        with open("/proc/stat") as f:
            t = [int(x) for x in f.readline().split()[1:9]]
        return sum(t), t[3] + t[4]
    all0, idle0 = read()
    time.sleep(seconds)
    all1, idle1 = read()
    return 1 - (idle1 - idle0) / max(1, all1 - all0)


def measure(kernel, repeats):
    rows = []
    with tempfile.TemporaryDirectory(prefix="gnb-") as tmp, open(os.devnull, "w") as null:
        env = dict(os.environ, JUPYTER_PREFER_ENV_PATH="1", GNB_RUNS=os.path.join(tmp, "runs"), TMPDIR=tmp)
        start = time.perf_counter()
        km, kc = start_new_kernel(kernel_name=kernel, startup_timeout=120, env=env, cwd=tmp, stdout=null, stderr=null)
        try:
            ready = time.perf_counter() - start
            for name, code, aim_output, aim_loss in CELLS:
                first = once(kc, code % (1000 + len(rows)))
                runs = [once(kc, code % (2000 + i)) for i in range(repeats)]
                rows.append({"kernel": kernel, "cell": name, "kernel_ready": ready, "first_run": first, "runs": runs,
                             "aim_output": RELINK_CUDA if kernel.endswith("-cuda") else aim_output, "aim_loss": aim_loss})
        finally:
            kc.stop_channels()
            km.shutdown_kernel(now=True)
    return rows


def middle(values):
    """Returns the median and the 90th percentile of the known values, as text."""
    values = sorted(v for v in values if v is not None)
    if not values:
        return "", ""
    return f"{statistics.median(values):.2f}", f"{values[min(len(values) - 1, int(0.9 * len(values)))]:.2f}"


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--repeats", type=int, default=15)
    p.add_argument("--json")
    p.add_argument("kernels", nargs="+")
    a = p.parse_args()
    before, load = busy(), os.getloadavg()[0]
    CELLS.append(("trains, all imported", every_package(CELLS[-1][1]), None, None))
    rows = [row for k in a.kernels for row in measure(k, a.repeats)]
    print(f"seconds, medians of {a.repeats} runs of edited cells; before, other programs used {100 * before:.0f} % of {os.cpu_count()} CPUs (load {load:.1f})")
    line = "{:13} {:20} {:>12} {:>7} {:>5} {:>10} {:>7} {:>5} {:>6}"
    print(line.format("kernel", "cell", "first output", "9 of 10", "aim", "first loss", "9 of 10", "aim", "end"))
    for r in rows:
        output, loss, end = zip(*r["runs"])
        print(line.format(r["kernel"], r["cell"], *middle(output), r["aim_output"] or "", *middle(loss), r["aim_loss"] or "", middle(end)[0]))
    if a.json:
        with open(a.json, "w") as f:
            json.dump({"busy": before, "load": load, "cpus": os.cpu_count(), "rows": rows}, f, indent=1)


main()

"""Interrupts a cell in the middle of its run, then runs it once more.

usage: interrupt.py --kernel NAME --dir DIR --updates N [--shows TEXT] CODE_FILE

The script interrupts the cell by Jupyter's own request after N updates of its display, once the text displayed
contains TEXT. It prints {"first": {...}, "second": {...}}: for each run "status", "seconds", "updates", "stdout", "stderr" and
"shown", the text displayed last; for the first run also "gone", the seconds from the interrupt until no
worker process is left, and "idle", the seconds until the cell has ended.
"""

import argparse
import glob
import json
import os
import queue
import signal
import tempfile
import time

import lean  # noqa: F401 (for what it does; before Jupyter's packages)
from jupyter_client.manager import start_new_kernel

import ports  # noqa: F401 (for what it does)


def workers(tmp):
    """Returns the process ids of the workers below the kernel whose temporary directory is tmp."""
    found, needle = [], os.fsencode(tmp)
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            with open(path, "rb") as f:
                env = f.read()
        except OSError:
            continue
        if needle in env and b"GNB_WORKER=" in env:
            found.append(int(path.split("/")[2]))
    return found


def run(km, kc, code, tmp, interrupt_after, shows=""):
    """Runs code to its end, or interrupts it after the given number of updates of its display, when it shows a text."""
    r = {"status": None, "updates": 0, "stdout": "", "stderr": "", "shown": "", "gone": None, "idle": None}
    start = time.monotonic()
    request = kc.execute(code, store_history=False)
    sent = None
    while r["status"] is None or r["idle"] is None:
        if time.monotonic() - start > 120:
            raise SystemExit("the cell did not end within two minutes")
        if sent and r["gone"] is None and not workers(tmp):
            r["gone"] = time.monotonic() - sent
        try:
            msg = kc.get_iopub_msg(timeout=0.02)
        except queue.Empty:
            msg = None
        if msg and msg["parent_header"].get("msg_id") == request:
            kind, content = msg["msg_type"], msg["content"]
            if kind == "stream":
                r[content["name"]] += content["text"]
            elif kind in ("display_data", "update_display_data"):
                r["updates"] += 1
                r["shown"] = content["data"].get("text/plain", "")
            elif kind == "status" and content["execution_state"] == "idle":
                r["idle"] = time.monotonic() - (sent or start)
        if interrupt_after and sent is None and r["updates"] >= interrupt_after and shows in r["shown"]:
            r["workers"] = len(workers(tmp))
            sent = time.monotonic()
            km.interrupt_kernel()
        try:
            reply = kc.get_shell_msg(timeout=0)
            if reply["parent_header"].get("msg_id") == request:
                r["status"] = reply["content"]["status"]
        except queue.Empty:
            pass
    while sent and r["gone"] is None and time.monotonic() - sent < 10:
        if not workers(tmp):
            r["gone"] = time.monotonic() - sent
    r["seconds"] = time.monotonic() - start
    return r


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--kernel", required=True)
    p.add_argument("--dir", required=True)
    p.add_argument("--updates", type=int, default=5)
    p.add_argument("--shows", default="")
    p.add_argument("code")
    a = p.parse_args()
    with open(a.code) as f:
        code = f.read()
    with tempfile.TemporaryDirectory(prefix="gnb-interrupt-") as tmp, open(os.devnull, "w") as null:
        env = dict(os.environ, TMPDIR=tmp, JUPYTER_PREFER_ENV_PATH="1")
        km, kc = start_new_kernel(kernel_name=a.kernel, startup_timeout=120, env=env, cwd=a.dir, stdout=null, stderr=null)
        signal.signal(signal.SIGTERM, lambda *_: km.shutdown_kernel(now=True))
        try:
            first = run(km, kc, code, tmp, a.updates, a.shows)
            second = run(km, kc, code, tmp, 0)
        finally:
            kc.stop_channels()
            km.shutdown_kernel(now=True)
    print(json.dumps({"first": first, "second": second}))


main()

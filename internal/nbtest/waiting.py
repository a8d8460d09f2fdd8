"""Sends cells to a kernel all at once, as Run All does, and reports how each ends.

usage: waiting.py --kernel NAME --dir DIR

Each case is a list of cells; the first fails, or is interrupted after its first output. It prints, by the name of
the case, a list of {"status", "ename", "stdout", "stderr", "errors": number of messages "error"} and, last, that of a
cell sent after all replies.
"""

import argparse
import json
import os
import queue
import signal
import tempfile
import time

import lean  # noqa: F401 (for what it does; before Jupyter's packages)
from jupyter_client.manager import start_new_kernel

import ports  # noqa: F401 (for what it does)

PRINT = "%%\nfmt.Println(6 * 7)\n"
CASES = {
    "exit": ("%%\nos.Exit(3)\n", True),
    "compile": ("%%\nx := 1\n", True),
    "panic": ("%%\npanic(1)\n", True),
    "go on": ("%%\nos.Exit(3)\n", False),
    "interrupt": ('%%\nfmt.Println("runs")\ntime.Sleep(time.Minute)\n', True),
    "interrupt handled": (
        '%%\nc := make(chan os.Signal, 1)\nsignal.Notify(c, os.Interrupt)\nfmt.Println("runs")\n<-c\nfmt.Println("saved")\nos.Exit(1)\n', True),
    "interrupt shell": ("!echo runs; sleep 60\n", True),
    "interrupt compiler": ("interrupt at once: %%\n", True),
}


def run(km, kc, name, code, stop):
    if name == "interrupt compiler":
        # Other imports than before make "go build" link for a while.
        code = 'import ("net/http/httptest"; "html/template"; "encoding/xml"; "go/types")\n%%\nfmt.Println(httptest.DefaultRemoteAddr, template.HTML(""), xml.Header, types.Universe)\n'
    ids = [kc.execute(c, store_history=False, stop_on_error=stop) for c in (code, PRINT, PRINT)]
    cells = {i: {"status": None, "ename": "", "stdout": "", "stderr": "", "errors": 0} for i in ids}
    sent, end = not name.startswith("interrupt"), time.monotonic() + 60
    if name == "interrupt compiler":
        time.sleep(0.3)
        km.interrupt_kernel()
        sent = True
    idle = set()

    def follow():
        nonlocal sent
        while time.monotonic() < end and (len(idle) < len(cells) or any(c["status"] is None for c in cells.values())):
            for get in (kc.get_iopub_msg, kc.get_shell_msg):
                try:
                    msg = get(timeout=0.05)
                except queue.Empty:
                    continue
                cell, kind, content = cells.get(msg["parent_header"].get("msg_id")), msg["msg_type"], msg["content"]
                if cell is None:
                    continue
                if kind == "stream":
                    cell[content["name"]] += content["text"]
                elif kind == "error":
                    cell["errors"] += 1
                elif kind == "execute_reply":
                    cell["status"], cell["ename"] = content["status"], content.get("ename", "")
                elif kind == "status" and content["execution_state"] == "idle":
                    idle.add(msg["parent_header"]["msg_id"])
                if not sent and "runs" in cell["stdout"]:
                    km.interrupt_kernel()
                    sent = True

    follow()
    last = kc.execute(PRINT, store_history=False)
    cells[last] = {"status": None, "ename": "", "stdout": "", "stderr": "", "errors": 0}
    follow()
    return list(cells.values())


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--kernel", required=True)
    p.add_argument("--dir", required=True)
    a = p.parse_args()
    with tempfile.TemporaryDirectory(prefix="gnb-waiting-") as tmp, open(os.devnull, "w") as null:
        env = dict(os.environ, TMPDIR=tmp, JUPYTER_PREFER_ENV_PATH="1")
        km, kc = start_new_kernel(kernel_name=a.kernel, startup_timeout=120, env=env, cwd=a.dir, stdout=null, stderr=null)
        signal.signal(signal.SIGTERM, lambda *_: km.shutdown_kernel(now=True))
        try:
            facts = {name: run(km, kc, name, *case) for name, case in CASES.items()}
        finally:
            kc.stop_channels()
            km.shutdown_kernel(now=True)
    print(json.dumps(facts))


main()

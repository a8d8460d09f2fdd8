"""Executes a notebook in a real kernel and records the kernel's messages.

usage: run.py --kernel NAME --out EXECUTED.ipynb --summary SUMMARY.json [--dir DIR] [--timeout S] NOTEBOOK

Exit status: 0 when every cell ran, 1 when one failed (the summary says which and why), 2 when the
notebook could not be run at all. In the first two cases the script writes the executed
notebook, with the outputs up to a failure. A cell also fails when one of its !commands fails, which the
kernel itself does not report.

The summary is {"ok", "failure", "seconds", "cells", "displays"}:
cells     [{"index", "source", "seconds", "first_output_seconds" (or null), "stdout", "stderr",
            "error" (or null)}], code cells only, those that ran
displays  {display id: {"cell", "displays", "updates", "distinct_updates", "times" (seconds from
            the cell's start to each update), "mime" (types of the last bundle)}}
"""

import argparse
import hashlib
import json
import os
import re
import signal
import sys
import tempfile
import time

import lean  # noqa: F401 (for what it does; before Jupyter's packages)
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

import ports  # noqa: F401 (for what it does)

# Read by the bash that GoNB starts for a !command, and by no bash below it: the command's failure
# goes to a file. (The failure of a command that replaces the shell by "exec" is not recorded.)
SHELL_HOOK = """
unset BASH_ENV
read -r gnb_parent < "/proc/$PPID/comm" 2>/dev/null
if [ "$gnb_parent" = gonb ]; then
  trap 'gnb_status=$?; [ $gnb_status -eq 0 ] || printf "%s\\t%s\\n" "$gnb_status" "$BASH_EXECUTION_STRING" >> "$GNB_SHELL_FAILURES"' EXIT
fi
unset gnb_parent
"""


class ShellFailed(Exception):
    pass


class Recorder(NotebookClient):
    """A client that records the time of each message and the contents of each display id."""

    def prepare(self, failures):
        self.failures, self.cells, self.displays = failures, [], {}
        self.current = None

    async def async_execute_cell(self, cell, cell_index, **kwargs):
        if cell.cell_type != "code" or not cell.source.strip():
            return cell
        self.started = time.monotonic()
        self.current = {"index": cell_index, "source": cell.source, "seconds": 0.0,
                        "first_output_seconds": None, "stdout": "", "stderr": "", "error": None}
        self.cells.append(self.current)
        try:
            cell = await super().async_execute_cell(cell, cell_index, **kwargs)
        finally:
            self.current["seconds"] = time.monotonic() - self.started
        with open(self.failures) as f:
            failed = f.read()
        if failed:
            status, _, command = failed.partition("\t")
            self.current["error"] = f"!{command.strip()}: exit status {status}"
            raise ShellFailed(self.current["error"])
        return cell

    def process_message(self, msg, cell, cell_index):
        now, kind, content = time.monotonic() - self.started, msg["msg_type"], msg["content"]
        c = self.current
        if kind in ("stream", "display_data", "update_display_data", "execute_result", "error"):
            if c["first_output_seconds"] is None:
                c["first_output_seconds"] = now
        if kind == "stream":
            c[content["name"]] += content["text"]
        elif kind == "error":
            trace = "\n".join(content.get("traceback") or [])
            c["error"] = ": ".join(x for x in (content["ename"], content["evalue"]) if x) + ("\n" + trace if trace else "")
        elif kind in ("display_data", "update_display_data"):
            shown = (content.get("transient") or {}).get("display_id")
            if shown:
                d = self.displays.setdefault(shown, {"cell": cell_index, "displays": 0, "updates": 0, "hashes": set(), "times": [], "mime": []})
                d["mime"] = sorted(content["data"])
                if kind == "display_data":
                    d["displays"] += 1
                else:
                    d["updates"] += 1
                    d["times"].append(now)
                    d["hashes"].add(hashlib.sha256(json.dumps(content["data"], sort_keys=True).encode()).digest())
        return super().process_message(msg, cell, cell_index)

    def shown(self):
        out = {}
        for name, d in self.displays.items():
            d = dict(d)
            d["distinct_updates"] = len(d.pop("hashes"))
            out[name] = d
        return out


def describe(client, error):
    """Returns one text with the cell, the error and the end of the cell's stderr."""
    c = client.current
    if c is None:
        return f"{type(error).__name__}: {error}"
    first = next(iter(c["source"].strip().splitlines()), "")
    if isinstance(error, CellTimeoutError):
        c["error"] = f"still running after {client.timeout} s"
    elif isinstance(error, DeadKernelError):
        c["error"] = "the kernel died"
    elif c["error"] is None:
        c["error"] = f"{type(error).__name__}: {error}"
    parts = [f"cell {c['index']} ({first}): {c['error']}"]
    if c["stderr"].strip():
        parts.append("\n".join(c["stderr"].strip().splitlines()[-30:]))
    return re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(parts))  # colours


def stop(*_):
    raise SystemExit(2)


def main():
    p = argparse.ArgumentParser()
    for name in ("--kernel", "--out", "--summary"):
        p.add_argument(name, required=True)
    p.add_argument("--dir", help="where the cells run; default: the notebook's directory")
    p.add_argument("--timeout", type=int, default=300, help="seconds for one cell")
    p.add_argument("notebook")
    a = p.parse_args()
    signal.signal(signal.SIGTERM, stop)  # so that the kernel is shut down on the way out
    nb = nbformat.read(a.notebook, as_version=4)
    for c in nb.cells:  # what is saved in it is of another execution
        if c.cell_type == "code":
            c.outputs, c.execution_count = [], None
    directory = a.dir or os.path.dirname(os.path.abspath(a.notebook))
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="gnb-nbtest-") as tmp:
        hook, failures = os.path.join(tmp, "hook.sh"), os.path.join(tmp, "failures")
        for path, text in ((hook, SHELL_HOOK), (failures, "")):
            with open(path, "w") as f:
                f.write(text)
        env = dict(os.environ, GNB_HEADLESS="1", JUPYTER_PREFER_ENV_PATH="1", BASH_ENV=hook, GNB_SHELL_FAILURES=failures)
        client = Recorder(nb, kernel_name=a.kernel, timeout=a.timeout, startup_timeout=120, iopub_timeout=60,
                          resources={"metadata": {"path": directory}})
        client.prepare(failures)
        failure, log = "", open(os.path.join(tmp, "kernel.log"), "w+")
        try:
            client.execute(env=env, stderr=log, stdout=log, cwd=directory)
        except (CellExecutionError, CellTimeoutError, DeadKernelError, ShellFailed) as e:
            failure = describe(client, e)
            if isinstance(e, DeadKernelError):
                log.seek(0)
                failure += "\nthe end of its log:\n" + log.read()[-4000:]
        except Exception as e:  # no such kernel, or it does not start
            log.seek(0)
            print(f"{a.notebook} could not be run with the kernel {a.kernel}: {e}\n{log.read()[-4000:]}".rstrip(), file=sys.stderr)
            return 2
        finally:
            log.close()
    nbformat.write(nb, a.out)
    with open(a.summary, "w") as f:
        json.dump({"ok": not failure, "failure": failure, "seconds": time.monotonic() - began, "cells": client.cells,
                   "displays": client.shown()}, f, indent=1)
    if failure:
        print(failure, file=sys.stderr)
    return 1 if failure else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, nbformat.reader.NotJSONError) as e:
        print(e, file=sys.stderr)
        sys.exit(2)

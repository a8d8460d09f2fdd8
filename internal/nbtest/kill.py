"""Ends a running kernel and reports the processes and files that are left.

usage: kill.py --kernel NAME --way restart|kill-gonb|kill-kernel|kill-group|shutdown [--wait S]

A cell starts three processes (one in its own session, one orphaned) and then waits forever. The script
finds the kernel's processes by the kernel's own temporary directory: they inherit the variable TMPDIR.
It prints {"before": number of processes while the cell runs, "left": [command lines of the processes
left after S seconds], "files": [files left in TMPDIR], "seconds": time until nothing is left}.
"""

import argparse
import glob
import json
import os
import shutil
import signal
import tempfile
import time

import lean  # noqa: F401 (for what it does; before Jupyter's packages)
from jupyter_client.manager import start_new_kernel

import ports  # noqa: F401 (for what it does)

CELL = """
import ("os/exec"; "syscall")

%%
for _, line := range []string{"exec sleep 3600", "exec setsid sleep 3600", "sleep 3600 & "} {
	c := exec.Command("sh", "-c", line)
	if err := c.Start(); err != nil { panic(err) }
}
c := exec.Command("sleep", "3600")
c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
if err := c.Start(); err != nil { panic(err) }
fmt.Println("started")
time.Sleep(time.Hour)
"""


def processes(tmp):
    """Returns the command line, by pid, of every process whose environment mentions tmp."""
    found, needle = {}, os.fsencode(tmp)
    for path in glob.glob("/proc/[0-9]*/environ"):
        pid = int(path.split("/")[2])
        try:
            with open(path, "rb") as f:
                if pid != os.getpid() and needle in f.read():
                    with open(f"/proc/{pid}/cmdline", "rb") as c:
                        found[pid] = c.read().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            pass
    return found


def child(pid, name):
    """Returns the process id of pid's child with the given name."""
    for path in glob.glob(f"/proc/{pid}/task/*/children"):
        with open(path) as f:
            for kid in f.read().split():
                with open(f"/proc/{kid}/comm") as c:
                    if c.read().strip() == name:
                        return int(kid)
    raise SystemExit(f"process {pid} has no child {name}")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--kernel", required=True)
    p.add_argument("--way", required=True, choices=["restart", "kill-gonb", "kill-kernel", "kill-group", "shutdown"])
    p.add_argument("--wait", type=float, default=5)
    a = p.parse_args()
    tmp = tempfile.mkdtemp(prefix="gnb-kill-")
    env = dict(os.environ, TMPDIR=tmp, JUPYTER_PREFER_ENV_PATH="1", GNB_HEADLESS="1")
    with open(os.devnull, "w") as null:
        km, kc = start_new_kernel(kernel_name=a.kernel, startup_timeout=120, env=env, stdout=null, stderr=null)
        try:
            kc.execute(CELL)
            end = time.monotonic() + 60
            while sum(c.startswith("sleep 3600") for c in processes(tmp).values()) < 4:
                if time.monotonic() > end:
                    raise SystemExit("the cell did not start its processes")
                time.sleep(0.02)
            before = processes(tmp)
            pid = km.provisioner.process.pid
            start = time.monotonic()
            if a.way == "restart":
                km.restart_kernel(now=True)
            elif a.way == "kill-gonb":
                os.kill(child(pid, "gonb"), signal.SIGKILL)
            elif a.way == "kill-kernel":
                os.kill(pid, signal.SIGKILL)
            elif a.way == "kill-group":
                os.killpg(km.provisioner.pgid, signal.SIGKILL)
            else:
                km.shutdown_kernel(now=True)
            left = before
            while time.monotonic() - start < a.wait:
                # A restart begins a new kernel, so only the processes from before it count.
                left = {k: v for k, v in processes(tmp).items() if k in before}
                if not left:
                    break
                time.sleep(0.005)
            seconds = time.monotonic() - start
            if a.way == "restart":
                kc.wait_for_ready(timeout=60)
                fresh = processes(tmp)  # the new kernel works, and goes the usual way
                if not fresh:
                    raise SystemExit("no kernel after the restart")
        finally:
            kc.stop_channels()
            km.shutdown_kernel(now=True)
        end = time.monotonic() + a.wait
        while (os.listdir(tmp) or processes(tmp)) and time.monotonic() < end:
            time.sleep(0.01)
        left.update(processes(tmp))
        files = os.listdir(tmp)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        shutil.rmtree(tmp, ignore_errors=True)
    print(json.dumps({"before": len(before), "left": sorted(left.values()), "files": files, "seconds": seconds}))


main()

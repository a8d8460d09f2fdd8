"""Running the engines: the peers as processes that stay, ours as the command "gnb" once a measurement."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from peers import machine

ROOT = Path(__file__).resolve().parents[2]
GNB = ROOT / "build" / "gnb"

# The second environment, which has PyG on the newest PyTorch: its Python, set by scripts/bench-peers.sh, and its pins.
NEWEST = os.environ.get("PEERS_NEWEST", "")
NEWEST_PINS = ROOT / "bench" / "requirements-newest.txt"

# A malloc that never gives pages back: nobody's default, but the strongest setting of the PyTorch engines
# found, since fresh large tensors then cost no page faults.
TUNED = {"GLIBC_TUNABLES": "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=17179869184:glibc.malloc.top_pad=268435456"}


class Failed(Exception):
    """An engine could not do what it was asked; the row says why."""


def environment(threads: int, extra: dict[str, str] | None = None) -> dict[str, str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "MKL_", "KMP_", "OPENBLAS_", "GLIBC_", "MALLOC_"))}
    n = str(threads)
    env |= {"OMP_NUM_THREADS": n, "MKL_NUM_THREADS": n, "OPENBLAS_NUM_THREADS": n, "DGLBACKEND": "pytorch",
            "PYTHONPATH": str(ROOT / "bench"), "PYTHONWARNINGS": "ignore"}
    return env | (extra or {})


class Peer:
    """One engine in a process of its own (peers.serve), started when it is first asked."""

    def __init__(self, engine: str, data: str | None, threads: int, extra: dict[str, str] | None = None, python: str = sys.executable) -> None:
        self.engine, self.data, self.threads, self.extra, self.python = engine, data, threads, extra, python
        self.info: dict = {}
        self._process: subprocess.Popen | None = None
        self._error = ""

    def _start(self) -> None:
        if not self.python:
            raise Failed("its environment was not made")
        cmd = [self.python, "-m", "peers.serve", self.engine, "--threads", str(self.threads)]
        if self.data:
            cmd += ["--data", self.data]
        self._process = subprocess.Popen(cmd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                         text=True, env=environment(self.threads, self.extra))
        self.info = self._read()

    def _read(self) -> dict:
        line = self._process.stdout.readline()
        answer = json.loads(line) if line else {"error": f"its process ended with status {self._process.wait()}"}
        if "error" in answer:
            raise Failed(answer["error"])
        return answer

    def ask(self, do: str, **arguments) -> dict:
        if self._error:
            raise Failed(self._error)
        try:
            if self._process is None:
                self._start()
            self._process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
            self._process.stdin.flush()
            return self._read()
        except (Failed, OSError) as e:
            if self._process is None or self._process.poll() is not None:
                self._error = str(e)
            raise Failed(str(e)) from e

    @property
    def pid(self) -> int:
        return self._process.pid if self._process else 0

    def close(self) -> None:
        if self._process is None:
            return
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None


def newest_torch() -> str:
    """The version of PyTorch that requirements-newest.txt pins."""
    return next(line.removeprefix("torch==").strip() for line in NEWEST_PINS.read_text().splitlines() if line.startswith("torch=="))


def gnb(*args: str, watch_memory: bool = False, runs: str | None = None) -> dict:
    """Runs gnb with --json and returns its result; with watch_memory also its "peak", (own, files) in bytes."""
    env = os.environ | ({"GNB_RUNS": runs} if runs else {})
    p = subprocess.Popen([str(GNB), *args, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    peak = machine.PeakMemory(p.pid) if watch_memory else None
    out, err = p.communicate()
    if p.returncode != 0:
        raise Failed((err.strip().splitlines() or ["no reason given"])[-1][:300])
    result = json.loads(out.strip().splitlines()[-1])
    if peak:
        result["peak"] = peak.stop()
    return result


def until_line(cmd: list[str], text: str, env: dict[str, str]) -> float:
    """Seconds from the start of a program to the first line of its output that has text in it."""
    start = time.perf_counter()
    p = subprocess.Popen(cmd, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env)
    seconds = None
    for line in p.stdout:
        if seconds is None and text in line:
            seconds = time.perf_counter() - start
    p.wait()
    if seconds is None:
        raise Failed(f"{Path(cmd[0]).name} ended with status {p.returncode} and printed no {text!r}")
    return seconds


def last_line(cmd: list[str], env: dict[str, str], timeout: float) -> str:
    """The last line that a program prints. One that prints none for so long is ended, with all that it started."""
    p = subprocess.Popen(cmd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env, start_new_session=True)
    try:
        out, err = p.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        raise Failed(f"it hung: nothing for {timeout:.0f} s") from None
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(p.pid, signal.SIGKILL)
        p.wait()
    if p.returncode != 0 or not out.strip():
        raise Failed((err.strip().splitlines() or ["it printed nothing"])[-1][:300])
    return out.strip().splitlines()[-1]


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]

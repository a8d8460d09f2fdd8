"""What machine this is, how busy others keep it, and how much memory processes take."""

import os
import platform
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

HZ = os.sysconf("SC_CLK_TCK")


def describe() -> dict:
    cpu: dict[str, str] = {}
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        cpu.setdefault(key.strip(), value.strip())
    flags = cpu.get("flags", "").split()
    thp = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    return {
        "cpu": cpu.get("model name", platform.processor()),
        "family_model": f"{cpu.get('cpu family', '?')}/{cpu.get('model', '?')}",
        "cores": os.cpu_count(),
        "simd": [f for f in ("avx2", "fma", "avx512f", "avx512_bf16", "amx_bf16") if f in flags],
        "cache": cpu.get("cache size", ""),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "kernel": platform.release(),
        "huge_pages": thp.read_text().strip() if thp.exists() else "",
        "libc": " ".join(platform.libc_ver()),
    }


def _busy() -> tuple[float, float]:
    """CPU seconds of the whole machine since it started, and those the host took away."""
    with open("/proc/stat") as f:
        v = [int(x) for x in f.readline().split()[1:9]]
    return (sum(v[:3]) + v[5] + v[6]) / HZ, v[7] / HZ


def _own() -> float:
    """CPU seconds of this process and all that it has started."""
    t = os.times()
    total = t.user + t.system + t.children_user + t.children_system
    for p in psutil.Process().children(recursive=True):
        try:
            c = p.cpu_times()
            total += c.user + c.system
        except psutil.Error:
            pass
    return total


@dataclass
class Load:
    """How busy the machine was apart from the measurement: cores that other programs used, cores that the host took
    away, and the load average, our own included."""

    others: float
    stolen: float
    average: float


class Watch:
    def __init__(self) -> None:
        self._start = (time.perf_counter(), *_busy(), _own())

    def stop(self) -> Load:
        t, busy, stolen, own = self._start
        now = (time.perf_counter(), *_busy(), _own())
        wall = max(now[0] - t, 0.01)
        others = (now[1] - busy - (now[3] - own)) / wall
        return Load(round(max(0.0, others), 2), round((now[2] - stolen) / wall, 2), round(os.getloadavg()[0], 2))


def pss(pid: int) -> tuple[int, int]:
    """Bytes of a process and all that it started, shared pages divided among those who share them: (memory of
    their own or shared without a file, pages of mapped files)."""
    own = files = 0
    try:
        root = psutil.Process(pid)
        tree = [root, *root.children(recursive=True)]
    except psutil.Error:
        return 0, 0
    for p in tree:
        try:
            for line in Path(f"/proc/{p.pid}/smaps_rollup").read_text().splitlines():
                key, _, rest = line.partition(":")
                if key in ("Pss_Anon", "Pss_Shmem"):
                    own += int(rest.split()[0]) * 1024
                elif key == "Pss_File":
                    files += int(rest.split()[0]) * 1024
        except (OSError, ValueError):
            pass
    return own, files


class PeakMemory(threading.Thread):
    """Follows a process tree until stop; the peak is that of its own memory, and what was mapped then."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid, self.peak, self._end = pid, (0, 0), threading.Event()
        self.start()

    def run(self) -> None:
        while not self._end.wait(0.1):
            self.peak = max(self.peak, pss(self.pid))

    def stop(self) -> tuple[int, int]:
        self._end.set()
        self.join()
        return self.peak

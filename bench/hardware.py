"""What machine a benchmark ran on, for its results."""

import os
import platform


def describe():
    return {"cpu": _cpu(), "cpus": os.cpu_count(), "platform": platform.platform()}


def _cpu():
    with open("/proc/cpuinfo") as f:
        for line in f:
            if line.startswith("model name"):
                return line.split(":")[1].strip()
    return platform.processor()

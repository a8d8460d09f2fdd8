"""Ports for kernels that nobody else is given.

Jupyter finds a kernel's ports by asking the system for free ones, closes them and tells the kernel their
numbers; until the kernel listens, a few hundred milliseconds later, any other process that asks for a free
port may be given one of them, and the kernel ends with "address already in use". With many kernels and
workers coming and going that happens once in some thousand starts. After "import ports" they are chosen
from below the range that the system gives out.
"""

import random
import socket

from jupyter_client.connect import LocalPortCache


def _below():
    try:
        with open("/proc/sys/net/ipv4/ip_local_port_range") as f:
            first = int(f.read().split()[0])
    except (OSError, ValueError, IndexError):
        first = 32768
    return first if first > 12000 else 32768


def find(cache, ip):
    """A port of ip where nobody listens, and that this process was not given before."""
    for _ in range(1000):
        port = random.SystemRandom().randrange(10000, _below())
        if port in cache.currently_used_ports:
            continue
        with socket.socket() as s:
            try:
                s.bind((ip, port))
            except OSError:
                continue
        cache.currently_used_ports.add(port)
        return port
    raise OSError(f"no free port of {ip} found below {_below()}")


LocalPortCache.find_available_port = find

"""Ports for kernels that nobody else is given.

Jupyter finds a kernel's ports by asking the system for free ones, closes them and tells the kernel their
numbers; until the kernel listens, a few hundred milliseconds later, any other process that asks for a free
port may be given one of them, and the kernel ends with "address already in use". With many kernels and
workers coming and going that happens once in some thousand starts. After "import ports" they are chosen
from outside of the range that the system gives out; where it is set to give nearly all ports there are no
others, and the conflict described above can happen.
"""

import random
import socket

from jupyter_client.connect import LocalPortCache


def system():
    """The first and the last port that the system gives out, Linux's default where it does not say."""
    try:
        with open("/proc/sys/net/ipv4/ip_local_port_range") as f:
            first, last = map(int, f.read().split())
            return first, last
    except (OSError, ValueError):
        return 32768, 60999


def beside(first, last):
    """The ports [from, to) to choose from where the system gives out first to last.

    They are below those, above the numbers that servers are known by if that leaves enough, else above
    them, and where neither has room among them. It is what portsBeside in ports.go does.
    """
    room, end = 2000, 65536
    if first >= 10000 + room:
        return 10000, min(first, end)
    if first >= 2048 + room:
        return 2048, first
    if last < end - room:
        return max(last + 1, 10000), end
    return 10000, end


def find(cache, ip):
    """A port of ip without a listener, not yet given to this process."""
    start, end = beside(*system())
    for _ in range(1000):
        port = random.SystemRandom().randrange(start, end)
        if port in cache.currently_used_ports:
            continue
        with socket.socket() as s:
            try:
                s.bind((ip, port))
            except OSError:
                continue
        cache.currently_used_ports.add(port)
        return port
    raise OSError(f"no free port of {ip} found from {start} to {end - 1}")


LocalPortCache.find_available_port = find

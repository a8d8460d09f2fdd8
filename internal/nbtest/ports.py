"""Chooses ports for kernels that no other process is given.

Jupyter finds a kernel's ports by asking the system for free ones, closes them and tells the kernel their
numbers; until the kernel listens, a few hundred milliseconds later, any other process that asks for a free
port may be given one of them, and the kernel ends with "address already in use". With many kernels and
workers starting and ending, this happens once in a few thousand starts. After "import ports", ports are
chosen from outside of the range that the system assigns. If the system is set to assign nearly all ports,
there are no others, and the conflict can still happen.
"""

import random
import socket

import lean  # noqa: F401 (for what it does; before Jupyter's packages)
from jupyter_client.connect import LocalPortCache


def system():
    """Returns the first and the last port that the system assigns, Linux's defaults if they are unknown."""
    try:
        with open("/proc/sys/net/ipv4/ip_local_port_range") as f:
            first, last = map(int, f.read().split())
            return first, last
    except (OSError, ValueError):
        return 32768, 60999


def beside(first, last):
    """Returns the range [from, to) of ports to choose from if the system assigns first to last.

    The range is below the system's, above well-known port numbers if that leaves enough; else above it; and
    if neither has room, within it. The function portsBeside in ports.go gives the same.
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
    """Returns a port of ip without a listener that this process has not used yet."""
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

"""Measured repetitions and their stages."""

import time
from collections.abc import Callable, Iterator
from typing import Any

Hops = list[tuple[int, int, int]]  # (dst, src, edges) of each hop, the seeds' first


class Stages:
    """Divides the time since it was made among named stages."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def done(self, name: str) -> None:
        now = time.perf_counter()
        self.seconds[name] = self.seconds.get(name, 0) + now - self._last
        self._last = now


def repeat(f: Callable[[], Any], count: int, warm: int = 1) -> dict[str, Any]:
    for _ in range(warm):
        f()
    start = time.perf_counter()
    for _ in range(count):
        f()
    return {"seconds": time.perf_counter() - start, "count": count}


def loop(batches: Iterator, step: Callable[[Any, Stages], Hops], count: int, warm: int) -> dict[str, Any]:
    """Takes batches and steps on each. The time of taking one is the stage "sample"; the size of what was
    sampled is read after the clock has stopped for the stage but counts into the total, as it costs no time
    to speak of."""
    total: dict[str, float] = {}
    hops: list[list[int]] = []
    for _ in range(warm):
        step(next(batches), Stages())
    start = time.perf_counter()
    for _ in range(count):
        stages = Stages()
        batch = next(batches)
        stages.done("sample")
        sizes = step(batch, stages)
        for name, seconds in stages.seconds.items():
            total[name] = total.get(name, 0) + seconds
        hops = [[a + b for a, b in zip(h, s)] for h, s in zip(hops, sizes)] if hops else [list(s) for s in sizes]
        del batch
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "count": count, "stages": total,
            "hops": [dict(zip(("dst", "src", "edges"), h)) for h in hops]}


def endless(loader) -> Iterator:
    while True:
        yield from loader

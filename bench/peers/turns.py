"""Measures the engines of a row in turns and keeps what each window showed."""

import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

from peers import machine
from peers.process import Failed

# call(count, warm) repeats something count times after warm unmeasured times and returns {"seconds", "count", …}.
Call = Callable[[int, int], dict]


@dataclass
class Engine:
    """One way of doing what a row measures."""

    name: str
    call: Call
    ours: bool = False
    tuned: bool = False  # not the default setting
    own_rule: bool = False  # samples by a rule of its own: sizes are shown, not compared
    slow: bool = False  # left out of a quick run
    least: int = 1  # repetitions of a window at least
    warm: int = 1
    note: str = ""


@dataclass
class Row:
    """One thing that engines are compared by. scale turns seconds into the unit shown."""

    name: str
    what: str
    engines: list[Engine]
    unit: str = "ms"
    rate: Callable[[dict], tuple[float, str]] | None = None  # of one window's result
    window: float = 3.0  # seconds
    rounds: int = 5
    most: int = 1000  # repetitions of a window at most
    limits: Callable[[], dict] | None = None  # measures the machine's limits, once a turn


@dataclass
class Result:
    row: str
    engine: str
    ours: bool
    tuned: bool
    unit: str
    windows: list[float] = field(default_factory=list)  # a repetition's mean, in the row's unit
    count: int = 0  # repetitions of a window
    loads: list[machine.Load] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    rate_unit: str = ""
    hops: list[dict] = field(default_factory=list)  # of one batch
    stages: dict[str, float] = field(default_factory=dict)  # of one repetition, in the row's unit
    extra: dict = field(default_factory=dict)
    limits: list[dict] = field(default_factory=list)  # the machine's, measured in turn with the windows
    refused: str = ""
    note: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.windows)

    def record(self) -> dict:
        d = {"row": self.row, "engine": self.engine, "ours": self.ours, "tuned": self.tuned, "unit": self.unit}
        if self.windows:
            d |= {"median": self.median, "min": min(self.windows), "max": max(self.windows), "windows": self.windows, "count": self.count}
        if self.rates:
            d |= {"rate": statistics.median(self.rates), "rate_unit": self.rate_unit}
        if self.loads:
            d |= {"others_cores": [x.others for x in self.loads], "stolen_cores": [x.stolen for x in self.loads],
                  "load_average": [x.average for x in self.loads]}
        for name in ("hops", "stages", "extra", "limits", "refused", "note"):
            if value := getattr(self, name):
                d[name] = value
        return d


UNITS = {"s": 1.0, "ms": 1e3, "µs": 1e6}


def measure(row: Row) -> list[Result]:
    """Finds how many repetitions fill a window for each engine, then measures window after window, one of each
    engine at a time, so that what changes on the machine changes for all."""
    print(f"{row.name}: {row.what}", file=sys.stderr, flush=True)
    scale = UNITS[row.unit]
    results = [Result(row.name, e.name, e.ours, e.tuned, row.unit, note=e.note) for e in row.engines]
    pairs = list(zip(row.engines, results))
    for engine, result in pairs:
        try:
            r = engine.call(engine.least, engine.warm)
            each = r["seconds"] / r["count"] * engine.least  # a call may do several things a repetition
            result.count = max(engine.least, min(row.most, round(row.window / max(each, 1e-9) * engine.least)))
        except Failed as e:
            result.refused = str(e)
    for turn in range(row.rounds):
        k = turn % len(pairs)
        if row.limits:
            measured = row.limits()
            for result in (r for r in results if r.ours):
                result.limits.append(measured)
        for engine, result in pairs[k:] + pairs[:k]:
            if result.refused:
                continue
            watch = machine.Watch()
            try:
                r = engine.call(result.count, engine.warm)
            except Failed as e:
                result.refused = str(e)
                continue
            result.loads.append(watch.stop())
            take(row, result, r, scale)
    for engine, result in pairs:
        said = f"{result.median:10.4g} {row.unit}" if result.windows else f"left out: {result.refused}"
        print(f"  {engine.name:34s}{said}", file=sys.stderr, flush=True)
    refuse_unequal(row.engines, results)
    return results


def take(row: Row, result: Result, r: dict, scale: float) -> None:
    result.windows.append(r["seconds"] / r["count"] * scale)
    if row.rate:
        rate, result.rate_unit = row.rate(r)
        result.rates.append(rate)
    if "hops" in r:
        result.hops = [{k: round(v / r.get("batches", r["count"]), 1) for k, v in h.items()} for h in r["hops"]]
    if "stages" in r:
        result.stages = {k: round(v / r["count"] * scale, 4) for k, v in r["stages"].items()}
    result.extra |= r.get("extra", {})


TOLERANCE = 0.03


def refuse_unequal(engines: list[Engine], results: list[Result]) -> None:
    """Refuses what sampled batches of other sizes than ours: it has done another thing."""
    ours = next((r for r in results if r.ours and r.hops), None)
    if ours is None:
        return
    for engine, result in zip(engines, results):
        if engine.ours or engine.own_rule or not result.hops:
            continue
        for i, (a, b) in enumerate(zip(ours.hops, result.hops)):
            for what in ("dst", "src", "edges"):
                off = abs(b[what] - a[what]) / max(a[what], 1)
                if off > TOLERANCE:
                    result.refused = f"hop {i + 1} has {b[what]:.0f} {what}, ours {a[what]:.0f}: {100 * off:.1f} % apart"

"""The results as one JSON file and one Markdown page."""

import json
import statistics
from pathlib import Path

from peers.turns import Result

BUSY = 0.1  # cores of other programs during a window from which on it is marked


def floor(work: dict, measured: list[dict]) -> dict:
    """The least time for work at the machine's limits, medians over the turns, nothing overlapping and sampling free."""
    at = {k: statistics.median(m[k] for m in measured) for k in measured[0]}
    parts = {
        "products": (work["flop"] / 1e9, "GFLOP", at["peak_gflops"], "GFLOP/s"),
        f"random rows of {at['random_row_bytes']:.0f} bytes": (work["random_bytes"] / 1e9, "GB", at["random_row_gb_per_second"], "GB/s"),
        "activations": (work["stream_bytes"] / 1e9, "GB", at["copy_gb_per_second"], "GB/s copied"),
    }
    ms = {k: v[0] / v[2] * 1e3 for k, v in parts.items()}
    text = " + ".join(f"{v[0]:.3g} {v[1]} of {k} / {v[2]:.4g} {v[3]} = {ms[k]:.1f}" for k, v in parts.items())
    return {"ms": sum(ms.values()), "arithmetic": f"{text}; in all {sum(ms.values()):.1f} ms"}


def compare(results: list[Result]) -> dict[str, dict]:
    """For each row how many times as long the best peer takes as ours, as installed and tuned."""
    out: dict[str, dict] = {}
    for row in dict.fromkeys(r.row for r in results):
        of = [r for r in results if r.row == row and r.windows and not r.refused]
        ours = next((r for r in of if r.ours), None)
        if ours is None:
            continue
        d = {}
        for key, peers in (("as_installed", [r for r in of if not r.ours and not r.tuned]), ("tuned", [r for r in of if r.tuned])):
            if peers:
                best = min(peers, key=lambda r: r.median)
                d[key] = {"engine": best.engine, "ratio": best.median / ours.median}
        out[row] = d
    return out


def number(x: float) -> str:
    return f"{x:.3g}" if abs(x) < 1000 else f"{x:,.0f}"


def table(results: list[Result]) -> list[str]:
    lines = ["| row | engine | median | min … max | rate | × ours | others' cores | load | batch: nodes / edges | |", "|---|---|---|---|---|---|---|---|---|---|"]
    ours = {}
    for r in results:
        if r.ours and r.windows:
            ours.setdefault(r.row, r)
    for r in results:
        if not r.windows:
            lines.append(f"| {r.row} | {r.engine} | – | | | | | | | left out: {r.refused} |")
            continue
        others = max((x.others for x in r.loads), default=0)
        note = "; ".join(x for x in (f"**refused**: {r.refused}" if r.refused else "", "tuned" if r.tuned else "", r.note,
                                     "machine was busy" if others > BUSY else "") if x)
        ratio = "" if r.refused or r.row not in ours or r is ours[r.row] else f"{r.median / ours[r.row].median:.2f}"
        hops = f"{number(r.hops[-1]['src'])} / {number(sum(h['edges'] for h in r.hops))}" if r.hops else ""
        rate = f"{number(sorted(r.rates)[len(r.rates) // 2])} {r.rate_unit}" if r.rates else ""
        name = f"**{r.engine}**" if r.ours else r.engine
        load = number(max((x.average for x in r.loads), default=0)) if r.loads else ""
        lines.append(f"| {r.row} | {name} | {number(r.median)} {r.unit} | {number(min(r.windows))} … {number(max(r.windows))} | {rate} | {ratio} | "
                     f"{others:.2f} | {load} | {hops} | {note} |")
    return lines


def hop_lines(results: list[Result]) -> list[str]:
    lines = ["| row | engine | hop: destinations ← sources, edges (the seeds' hop first) |", "|---|---|---|"]
    for r in results:
        if r.hops:
            hops = "; ".join(f"{h['dst']:,.0f} ← {h['src']:,.0f}, {h['edges']:,.0f}" for h in r.hops)
            lines.append(f"| {r.row} | {r.engine} | {hops} |")
    return lines


def stage_lines(results: list[Result]) -> list[str]:
    lines = ["| row | engine | stages, ms of a step |", "|---|---|---|"]
    for r in results:
        if r.stages:
            lines.append(f"| {r.row} | {r.engine} | {', '.join(f'{k} {v:.1f}' for k, v in r.stages.items() if v >= 0.05)} |")
    return lines


def limit_lines(limits: list[dict]) -> list[str]:
    lines = ["| threads | by | FMA peak, GFLOP/s | copy, GB/s read and written | random rows, GB/s |", "|---|---|---|---|---|"]
    for m in limits:
        rows = ", ".join(f"{k} B {v:.1f}" for k, v in m["random_row_gb_per_second"].items())
        lines.append(f"| {m['threads']} | {m['by']} | {m['peak_gflops']:.0f} | {m['copy_gb_per_second']:.1f} | {rows} |")
    return lines


def write(folder: Path, about: dict, limits: list[dict], results: list[Result]) -> Path:
    """Writes NAME.json and NAME.md and returns the latter."""
    threads = about["threads"]
    floors = {}
    for r in results:
        if r.ours and r.windows and "work" in r.extra and r.limits and r.row not in floors:
            f = floor(r.extra["work"], r.limits)
            f["share"] = f["ms"] / (r.median * (1e3 if r.unit == "s" else 1))
            floors[r.row] = f
    ratios = compare(results)
    name = f"{about['date'][:16].replace(':', '').replace('T', '-')}-{about['machine']['cpu'].split('@')[0].strip().replace(' ', '-')}"
    name = "".join(c for c in name if c.isalnum() or c in "-_")[:60]
    folder.mkdir(parents=True, exist_ok=True)
    data = {**about, "limits": limits, "floors": floors, "ratios": ratios, "results": [r.record() for r in results]}
    (folder / f"{name}.json").write_text(json.dumps(data, indent=1) + "\n")
    m, newest = about["machine"], about.get("versions_newest")
    page = [f"# GraphNB and its peers, {about['date'][:10]}", "",
            f"{m['cpu']} ({m['family_model']}), {m['cores']} cores, {m['memory_gib']} GiB, {' '.join(m['simd'])}; Linux {m['kernel']}, {m['libc']}, "
            f"huge pages {m['huge_pages']}. {threads} threads. GraphNB {about['versions']['graphnb']}, {about['versions']['go']}; "
            + ", ".join(f"{k} {v}" for k, v in about["versions"].items() if k not in ("graphnb", "go")) + f". Command: `{about['command']}`.", "",
            *(["This run measured only the rows " + ", ".join(dict.fromkeys(r.row for r in results)) + ".", ""] if about["only"] else []),
            *([f"The engines whose names have \"on torch {newest['torch'].partition('+')[0]}\" run in an environment of their own: "
               + ", ".join(f"{k} {v}" for k, v in newest.items()) + ".", ""] if newest else []),
            "Each window holds as many repetitions as fill some seconds; the engines of a row take turns, one window each. Shown: the median of the "
            "windows and their range; \"others' cores\" is the most that other programs used during one of them. \"tuned\" is a setting that nobody "
            "has by default.", "", *table(results), ""]
    for title, lines in (("What was sampled", hop_lines(results)), ("Stages", stage_lines(results)), ("The machine's limits", limit_lines(limits))):
        if len(lines) > 2:
            page += [f"## {title}", "", *lines, ""]
    if floors:
        page += ["## Floors", "", "The least time that the work can take, each part at the machine's limits, which \"gnb bench limits\" measured in turn with the windows: "
                 "their medians. Nothing overlaps, sampling is free. The step's share of it is floor / time.", ""]
        page += [f"- {row}: {100 * f['share']:.0f} %. {f['arithmetic']}" for row, f in floors.items()] + [""]
    if about["left_out"]:
        page += ["## Left out", "", *[f"- {x}" for x in about["left_out"]], ""]
    out = folder / f"{name}.md"
    out.write_text("\n".join(page))
    return out

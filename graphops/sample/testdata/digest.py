"""The digest of sampling, from a dataset directory alone.

usage: digest.py DIR SEED EPOCH BATCH FANOUTS STEPS [labor/KAPPA[/layers][/poisson]]
       digest.py DIR SEED EPOCH BATCH NUMBERS STEPS hgt[/TYPE:NUMBERS]...
       digest.py DIR SEED EPOCH BATCH FANOUTS STEPS trees[/times[/window:W][/strict][/recent][/age:HALFLIFE][/nodes][/R:FANOUTS]...]
       digest.py DIR SEED EPOCH BATCH FANOUTS STEPS relations[/R:FANOUTS]...[/labor[/kappa:K][/layers][/poisson]]

Reads indptr.npy, indices.npy, split_train.npy and, if there is one, edge_types.npy of DIR, samples the first STEPS
batches of BATCH seeds of EPOCH (0: all of them, the short last one included)
with FANOUTS ("15,10,-1"; the first is the hop next to the seeds, -1 takes all
in-neighbours), or with layer-neighbour sampling and a batch dependency of KAPPA,
or with a tree of its own for each seed and, with times, without the edges that are later than the seed, whose time is
that of its node in seed_times.i64, int64 for each node (edge_times.npy has those of the edges; "nodes": node_times.i64 has
those of the nodes, as int64; R:FANOUTS are fanouts of relation R),
or with numbers of nodes of each type by hop (a budget of nodes as for HGT, by the types in metadata.json),
or with fanouts by relation, uniformly or by layer-neighbour sampling (FANOUTS are those of the relations R that are not named),
and prints the SHA-256 of what was picked. Further arguments after "--" are another case, in a line of its own. NumPy only: it checks the Go code
against the written rules, so it shares no code with it.
"""

import hashlib
import json
import os
import sys

import numpy as np

SHUFFLE, SAMPLE, TREES = 0, 1, 9
LOW = np.uint64(0xFFFFFFFF)


def philox(key, c0, c1, c2, c3):
    """Philox4x32-10 of many counters at a time: four uint64 arrays of 32-bit words."""
    c0, c1, c2, c3 = np.broadcast_arrays(*(np.asarray(c, dtype=np.uint64) for c in (c0, c1, c2, c3)))
    k0, k1 = key & 0xFFFFFFFF, key >> 32
    half = np.uint64(32)
    for _ in range(10):
        p0 = np.uint64(0xD2511F53) * c0
        p1 = np.uint64(0xCD9E8D57) * c2
        c0, c1, c2, c3 = (
            (p1 >> half) ^ c1 ^ np.uint64(k0),
            p1 & LOW,
            (p0 >> half) ^ c3 ^ np.uint64(k1),
            p0 & LOW,
        )
        k0 = (k0 + 0x9E3779B9) & 0xFFFFFFFF
        k1 = (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c0, c1, c2, c3


def draws(key, ids, count, step, c3):
    """[len(ids), count]: draw j is word j % 4 of block j // 4."""
    blocks = np.arange((count + 3) // 4, dtype=np.uint64)[None, :]
    ids = np.asarray(ids, dtype=np.uint64)[:, None]
    words = philox(key, ids & LOW, ((ids >> np.uint64(32)) << np.uint64(16)) | blocks, step, c3)
    return np.stack(words, axis=-1).reshape(len(ids), -1)[:, :count]


def word3(purpose, site, epoch):
    return purpose << 28 | (site & 0xFF) << 20 | (epoch & 0xFFFFF)


def bounded(u, n):
    return (u * np.uint64(n)) >> np.uint64(32)


def epoch_order(key, epoch, ids):
    """Fisher-Yates, from the end."""
    ids = ids.copy()
    u = draws(key, np.arange(len(ids)), 1, 0, word3(SHUFFLE, 0, epoch))[:, 0]
    for i in range(len(ids) - 1, 0, -1):
        j = int(bounded(u[i], i + 1))
        ids[i], ids[j] = ids[j], ids[i]
    return ids


def floyd(key, nodes, degrees, k, step, c3):
    """[len(nodes), k]: k of the positions below each degree, which is above k."""
    u = draws(key, nodes, k, step, c3)
    picks = np.empty((len(nodes), k), dtype=np.int64)
    for i in range(k):
        j = degrees - k + i
        t = ((u[:, i] * (j + 1).astype(np.uint64)) >> np.uint64(32)).astype(np.int64)
        taken = (picks[:, :i] == t[:, None]).any(axis=1)
        picks[:, i] = np.where(taken, j, t)
    return picks


def labor_numbers(key, sources, kappa, step, c3):
    """r(u), as a 32-bit integer, of each source u."""
    x = (sources.astype(np.uint64) ^ np.uint64(key & 0xFFFFFFFF)) * np.uint64(0x9E3779B1) & LOW
    x = (x ^ (x >> np.uint64(15))) * np.uint64(0x85EBCA77) & LOW
    phases = (x * np.uint64(kappa)) >> np.uint64(32)
    steps = (np.uint64(step) + phases) // np.uint64(kappa)
    return philox(key, sources, 0, steps, c3)[0]


def pick_labor(key, indptr, indices, nodes, k, step, c3, kappa, poisson):
    """What pick returns, of layer-neighbour sampling."""
    counts, positions = [], []
    for v in nodes:
        lo, hi = int(indptr[v]), int(indptr[v + 1])
        n = hi - lo
        if k < 0 or k >= n:
            taken = np.arange(n)
        elif k == 0:
            taken = np.arange(0)
        else:
            r = labor_numbers(key, np.asarray(indices[lo:hi]), kappa, step, c3)
            if poisson:
                taken = np.flatnonzero(r * np.uint64(n) < np.uint64(k << 32))  # both below 2^50
            else:
                taken = np.sort(np.argsort(r, kind="stable")[:k])
        counts.append(len(taken))
        positions.append(lo + taken)
    return np.array(counts, dtype=np.int64), np.concatenate(positions) if positions else np.arange(0)


def pick(key, indptr, nodes, k, step, c3):
    """Counts [len(nodes)] and CSC positions, node after node, of one hop's edges."""
    start = np.asarray(indptr[nodes], dtype=np.int64)
    degrees = np.asarray(indptr[nodes + 1], dtype=np.int64) - start
    counts = degrees if k < 0 else np.minimum(degrees, k)
    ends = np.cumsum(counts)
    within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)
    positions = np.repeat(start, counts) + within  # all edges; right where all are taken
    some = np.flatnonzero(degrees > counts)
    if k > 0 and len(some):
        chosen = floyd(key, nodes[some], degrees[some], k, step, c3) + start[some, None]
        positions[(ends - counts)[some, None] + np.arange(k)] = chosen
    return counts, positions


def pick_relations(key, indptr, indices, types, nodes, fanout, step, c3, labor, kappa, poisson):
    """What pick returns, with fanouts by relation."""
    counts, positions = [], []
    for v in nodes:
        lo, hi = int(indptr[v]), int(indptr[v + 1])
        of, taken, used = np.asarray(types[lo:hi]), [], 0
        for r in np.unique(of):
            own, k = np.flatnonzero(of == r), fanout(int(r))
            n = len(own)
            if k < 0 or k >= n:
                taken.extend(own)
                continue
            if labor:
                if k == 0:
                    continue
                x = labor_numbers(key, np.asarray(indices[lo:hi])[own], kappa, step, c3)
                some = np.flatnonzero(x * np.uint64(n) < np.uint64(k << 32)) if poisson else np.argsort(x, kind="stable")[:k]
                taken.extend(own[some])
                continue
            u = draws(key, [v], used + k, step, c3)[0, used:]
            used += k
            chosen = []
            for i in range(k):
                j = n - k + i
                t = int(u[i]) * (j + 1) >> 32
                chosen.append(j if t in chosen else t)
            taken.extend(own[chosen])
        counts.append(len(taken))
        positions.extend(lo + np.sort(np.array(taken, dtype=np.int64)))
    return np.array(counts, dtype=np.int64), np.array(positions, dtype=np.int64)


def hgt_nodes(key, indptr, indices, types, node_types, seeds, numbers, step, epoch):
    """Which nodes are in a step, a bool for each: numbers are those of each type, by hop."""
    n = len(indptr) - 1
    starts = np.cumsum([0] + [t["count"] for t in node_types]) if node_types else np.array([0, n])
    inside, budget = np.zeros(n, dtype=bool), np.zeros(n)
    inside[seeds] = True
    new = np.sort(seeds)
    for hop in range(len(numbers[0])):
        for v in new:
            lo, hi = int(indptr[v]), int(indptr[v + 1])
            sources = np.asarray(indices[lo:hi], dtype=np.int64)
            of = np.asarray(types[lo:hi]) if types is not None else np.zeros(hi - lo, dtype=np.int64)
            share = 1 / np.bincount(of)[of] if hi > lo else np.zeros(0)
            outside = ~inside[sources]
            np.add.at(budget, sources[outside], share[outside])
        new = []
        for t in range(len(starts) - 1):
            ids = starts[t] + np.flatnonzero(budget[starts[t] : starts[t + 1]])
            k = numbers[t][hop]
            if 0 <= k < len(ids):
                words = draws(key, ids, 2 * hop + 2, step, word3(SAMPLE, 0, epoch))[:, 2 * hop :]
                u = ((words[:, 0] << np.uint64(20) | words[:, 1] >> np.uint64(12)).astype(float) + 0.5) / 2**52
                ids = ids[np.lexsort((ids, -np.log(u) / budget[ids] ** 2))[:k]]
            new.append(ids)
        new = np.sort(np.concatenate(new))
        inside[new] = True
        budget[new] = 0
    return inside


def pick_inside(indptr, indices, nodes, inside):
    """What pick returns, of all edges from the nodes inside."""
    counts, positions = [], []
    for v in nodes:
        taken = int(indptr[v]) + np.flatnonzero(inside[np.asarray(indices[int(indptr[v]) : int(indptr[v + 1])])])
        counts.append(len(taken))
        positions.append(taken)
    return np.array(counts, dtype=np.int64), np.concatenate(positions) if positions else np.arange(0)


def floyd_of(u, m, k):
    """k of the places below m, by the draws u."""
    chosen = []
    for i in range(k):
        j = m - k + i
        t = int(u[i]) * (j + 1) >> 32
        chosen.append(j if t in chosen else t)
    return chosen


def by_age(known, life, k, draw):
    """k of the places of the ascending times known, in proportion to 2^(-age/life); draw() is the next draw."""
    ages = [int(known[-1]) - int(t) for t in known]
    left = [i for i, age in enumerate(ages) if age // life <= 30]
    if len(left) <= k:
        return list(range(len(known) - k, len(known)))
    picks = []
    while len(picks) < k:
        bands = [[i for i in left if ages[i] // life == h] for h in range(31)]
        total = sum(len(b) << (30 - h) for h, b in enumerate(bands))
        first = draw()
        r = ((first << 32) + draw()) * total >> 64
        for h, band in enumerate(bands):
            if r < len(band) << (30 - h):
                break
            r -= len(band) << (30 - h)
        i = band[draw() * len(band) >> 32]
        if draw() < int(2.0 ** (32 - (ages[i] % life * 1024 // life) / 1024)):
            picks.append(i)
            left.remove(i)
    return picks


def tree_of(key, seed, time, graph, fanouts, how, step, epoch):
    """The picks of one seed's tree, by hop: CSC positions for each node. With times, as how says (see the usage)."""
    words = philox(key, seed, time & 0xFFFFFFFF, time >> 32 & 0xFFFFFFFF, word3(TREES, 0, 0))
    own = int(words[0]) | int(words[1]) << 32
    reached, hops = [seed], []
    for hop in range(len(fanouts)):
        picks = {}
        for v in reached:
            of = np.arange(int(graph["indptr"][v]), int(graph["indptr"][v + 1]))
            if graph["known"] is not None:
                t = graph["known"][of]
                seen = t < time if how["strict"] else t <= time
                if how["window"]:
                    seen &= t >= time - how["window"]
                of = of[seen]
                of = of[np.argsort(graph["known"][of], kind="stable")]
            types = graph["types"][of] if how["named"] else np.zeros(len(of), dtype=np.int64)
            stream, used, taken = [], 0, []

            def draw():
                nonlocal stream, used
                if used == len(stream):
                    stream = [int(u) for u in draws(own, [v], 4 * used + 16, step, word3(SAMPLE, hop, epoch))[0]]
                used += 1
                return stream[used - 1]

            for r in np.unique(types):
                some, k = of[types == r], how["named"].get(int(r), fanouts)[hop]
                if k < 0 or k >= len(some):
                    taken.extend(some)
                elif how["take"] == "recent":
                    taken.extend(some[len(some) - k :])
                elif how["take"] == "age":
                    taken.extend(some[by_age(graph["known"][some], how["life"], k, draw)] if k else [])
                else:
                    taken.extend(some[floyd_of([draw() for _ in range(k)], len(some), k)] if k else [])
            picks[v] = sorted(int(e) for e in taken)
        hops.append(picks)
        reached = sorted(set(reached).union(*({int(graph["indices"][e]) for e in p} for p in picks.values())))
    return hops


def options_of_trees(words):
    how = {"window": 0, "strict": "strict" in words, "take": "uniform", "life": 0, "nodes": "nodes" in words, "named": {}}
    for text in words:
        name, _, value = text.partition(":")
        if name == "window":
            how["window"] = int(value)
        elif name in ("recent", "age"):
            how["take"], how["life"] = name, int(value or 0)
        elif value:
            how["named"][int(name)] = [int(k) for k in value.split(",")]
    return how


def digest_of_trees(directory, seed, epoch, batch, fanouts, steps, words):
    timed, how = "times" in words, options_of_trees(words)
    graph = {name: np.load(f"{directory}/{name}.npy") for name in ("indptr", "indices")}
    train = np.load(f"{directory}/split_train.npy")
    typed = os.path.exists(f"{directory}/edge_types.npy")
    graph["types"] = np.load(f"{directory}/edge_types.npy").astype(np.int64) if typed else None
    graph["known"] = np.load(f"{directory}/edge_times.npy") if timed else None
    if how["nodes"]:
        nodes = np.fromfile(f"{directory}/node_times.i64", dtype="<i8")
        ends = np.repeat(np.arange(len(nodes)), np.diff(graph["indptr"]))
        graph["known"] = np.maximum(graph["known"], np.maximum(nodes[ends], nodes[graph["indices"]]))
    when = np.fromfile(f"{directory}/seed_times.i64", dtype="<i8") if timed else np.zeros(len(graph["indptr"]), dtype=np.int64)
    order = epoch_order(seed, epoch, np.array(train, dtype=np.int64))
    every = -(-len(order) // batch)
    sha = hashlib.sha256()

    def add(node):
        sha.update(np.array([node], dtype="<i4").tobytes())
        if timed:
            sha.update(np.array([when[node]], dtype="<i8").tobytes())

    for step in range(min(steps, every) if steps else every):
        seeds = order[step * batch : (step + 1) * batch]
        trees = {}
        for s in seeds:
            add(s)
            trees[int(s)] = tree_of(seed, int(s), int(when[s]), graph, fanouts, how, step, epoch)
        for hop in range(len(fanouts)):
            for s in sorted(trees):
                for v, picks in sorted(trees[s][hop].items()):
                    add(s)
                    of = sorted((int(graph["indices"][e]), int(graph["types"][e]) if typed else 0) for e in picks)
                    words = [x for pair in of for x in pair] if typed else [u for u, _ in of]
                    sha.update(np.array([v, len(picks)] + words, dtype="<i4").tobytes())
    return sha.hexdigest()


def typed_records(nodes, counts, sources, types):
    """id, count, and source and type ascending, for each node in order, as little-endian int32."""
    owner = np.repeat(np.arange(len(nodes)), counts)
    order = np.lexsort((types, sources, owner))
    out, at = [], 0
    for v, n in zip(nodes, counts):
        out += [v, n]
        for e in order[at : at + n]:
            out += [sources[e], types[e]]
        at += n
    return np.array(out, dtype="<i4").tobytes()


def records(nodes, counts, sources):
    """id, count, sources ascending, for each node in order, as little-endian int32."""
    owner = np.repeat(np.arange(len(nodes)), counts)
    sources = sources[np.lexsort((sources, owner))]
    ends = np.cumsum(counts + 2)
    out = np.empty(ends[-1] if len(ends) else 0, dtype="<i4")
    heads = ends - counts - 2
    out[heads] = nodes
    out[heads + 1] = counts
    body = np.ones(len(out), dtype=bool)
    body[heads] = body[heads + 1] = False
    out[body] = sources
    return out.tobytes()


def digest(directory, seed, epoch, batch, fanouts, steps, sampler):
    indptr, indices, train = (
        np.load(f"{directory}/{name}.npy", mmap_mode="r") for name in ("indptr", "indices", "split_train")
    )
    types = None
    if os.path.exists(f"{directory}/edge_types.npy"):
        types = np.load(f"{directory}/edge_types.npy", mmap_mode="r")
    named, kappa = {}, 1
    if sampler and sampler[0] == "relations":
        for text in sampler[1:]:
            r, _, of = text.partition(":")
            if r == "kappa":
                kappa = int(of)
            elif of:
                named[int(r)] = [int(k) for k in of.split(",")]
    node_types, numbers = None, []
    if sampler and sampler[0] == "hgt":
        with open(f"{directory}/metadata.json", encoding="utf-8") as f:
            node_types = json.load(f).get("node_types")
        own = dict(text.split(":") for text in sampler[1:])
        for t in node_types or [{"name": ""}]:
            numbers.append([int(k) for k in own[t["name"]].split(",")] if t["name"] in own else fanouts)
    order = epoch_order(seed, epoch, np.array(train, dtype=np.int64))
    every = -(-len(order) // batch)
    sha = hashlib.sha256()
    for step in range(min(steps, every) if steps else every):
        seeds = order[step * batch : (step + 1) * batch]
        sha.update(seeds.astype("<i4").tobytes())
        reached = np.unique(seeds)
        if numbers:
            inside = hgt_nodes(seed, indptr, indices, types, node_types, seeds, numbers, step, epoch)
        for hop, k in enumerate(fanouts):
            if numbers:
                counts, positions = pick_inside(indptr, indices, reached, inside)
            elif sampler and sampler[0] == "relations":
                c3 = word3(SAMPLE, 0 if "layers" in sampler else hop, epoch)
                of = lambda r: named.get(r, fanouts)[hop]
                how = ("labor" in sampler, kappa, "poisson" in sampler)
                counts, positions = pick_relations(seed, indptr, indices, types, reached, of, step, c3, *how)
            elif sampler:
                c3 = word3(SAMPLE, 0 if "layers" in sampler else hop, epoch)
                kappa = max(1, int(sampler[1]))
                counts, positions = pick_labor(seed, indptr, indices, reached, k, step, c3, kappa, "poisson" in sampler)
            else:
                counts, positions = pick(seed, indptr, reached, k, step, word3(SAMPLE, hop, epoch))
            sources = np.asarray(indices[positions], dtype=np.int64)
            if types is not None:
                sha.update(typed_records(reached, counts, sources, np.asarray(types[positions], dtype=np.int64)))
            else:
                sha.update(records(reached, counts, sources))
            reached = np.unique(np.concatenate((reached, sources)))
    return sha.hexdigest()


def main(args):
    if len(args) not in (6, 7):
        sys.exit(__doc__)
    directory, seed, epoch, batch, fanouts, steps = args[:6]
    fanouts = [int(k) for k in fanouts.split(",")]
    sampler = args[6].split("/") if len(args) == 7 else []
    if sampler and sampler[0] == "trees":
        print(digest_of_trees(directory, int(seed), int(epoch), int(batch), fanouts, int(steps), sampler[1:]))
        return
    print(digest(directory, int(seed), int(epoch), int(batch), fanouts, int(steps), sampler))


if __name__ == "__main__":
    while "--" in sys.argv:
        at = sys.argv.index("--")
        main(sys.argv[1:at])
        del sys.argv[1 : at + 1]
    main(sys.argv[1:])

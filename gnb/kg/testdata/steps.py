"""Writes steps.json: the losses of the first ten training steps on UMLS of models in PyTorch.

usage: python3 steps.py UMLS > steps.json      UMLS: the dataset that "gnb data convert" makes of kg/umls

The models are written from the documentation of kg.Options with PyTorch's operations. They start from the same weights,
take the same batches, negatives and messages as kg.Train with seed 1: all are draws of Philox4x32-10 (package
internal/philox). There is no dropout.
"""
import json
import pathlib
import sys

import numpy as np
import torch

SEED, STEPS, DIM, BATCH, LR, NEGATIVES, SMOOTHING, BASES = 1, 10, 24, 256, 0.01, 4, 0.1, 4
SHUFFLE, INIT, LINKS, SITE_TAILS = 0, 3, 6, 65


def philox(ids, block, step, c3):
    """The four words of the counter of each id."""
    ids = np.asarray(ids, np.uint64)
    low = np.uint64(0xFFFFFFFF)
    c = [ids & low, (ids >> np.uint64(32)) << np.uint64(16) | np.uint64(block), np.full_like(ids, step), np.full_like(ids, c3)]
    k0, k1 = SEED & 0xFFFFFFFF, SEED >> 32
    for _ in range(10):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(b >> np.uint64(32)) ^ c[1] ^ np.uint64(k0), b & low, (a >> np.uint64(32)) ^ c[3] ^ np.uint64(k1), a & low]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c


def c3(purpose, site, epoch):
    return purpose << 28 | (site & 0xFF) << 20 | epoch & 0xFFFFF


def order(n, epoch):
    ids = list(range(n))
    draws = philox(range(n), 0, 0, c3(SHUFFLE, 0, epoch))[0]
    for i in range(n - 1, 0, -1):
        j = int(draws[i]) * (i + 1) >> 32
        ids[i], ids[j] = ids[j], ids[i]
    return np.array(ids)


class Weights:
    """Draws parameters in the order of the model's, and counts them."""

    def __init__(self):
        self.n, self.all = 0, []

    def __call__(self, *shape, bound):
        u = philox(range(int(np.prod(shape))), 0, 0, c3(INIT, 0, self.n))[0]
        self.n += 1
        w = np.float32(bound) * (2 * ((u >> np.uint64(8)).astype(np.float32) / np.float32(1 << 24)) - 1)
        self.all.append(torch.nn.Parameter(torch.from_numpy(w.astype(np.float32).reshape(shape))))
        return self.all[-1]

    def ones(self, n):
        p = self(n, bound=0)
        with torch.no_grad():
            p.fill_(1)
        return p


def glorot(rows, cols):
    return (6 / (rows + cols)) ** 0.5


class Model:
    def __init__(self, encoder, decoder, n, relations):
        w, self.w = (Weights(),) * 2
        self.encoder, self.decoder, self.n, self.relations = encoder, decoder, n, relations
        d = 2 * DIM if decoder == "complex" else DIM
        self.d = d
        self.e = w(n, d + (decoder == "conve" and not encoder), bound=0.1)
        self.z = w(2 * relations, d, bound=0.1)
        if decoder == "conve":
            self.height, self.channels = 4, 3
            places = (2 * self.height - 2) * (d // self.height - 2)
            self.conv = w(self.channels, 9, bound=1 / 3), w(self.channels, bound=1 / 3)
            bound = (places * self.channels) ** -0.5
            self.fc = w(d, places * self.channels, bound=bound), w(d, bound=bound)
            self.norms = [(w.ones(k), w(k, bound=0)) for k in (1, self.channels, d)]
        if encoder == "rgcn":
            self.layers = [(w(BASES, d, d, bound=glorot(d, d)), w(2 * relations, BASES, bound=glorot(2 * relations, BASES)), w(d, d, bound=glorot(d, d)), w(d, bound=0)) for _ in range(2)]
        if encoder == "compgcn":
            self.layers = [w(d, d, bound=glorot(d, d)) for _ in range(4)] + [w(1, d, bound=glorot(1, d)), w(d, bound=0)]
        self.bias = w(n, 1, bound=0.1) if encoder and decoder == "conve" else None

    def tables(self, src, rel, dst):
        h, z = self.e, self.z
        if not self.encoder:
            return h, z
        groups = dst * 2 + (rel >= self.relations) if self.encoder == "compgcn" else dst * 2 * self.relations + rel
        mean = (1 / torch.bincount(groups)[groups].float())[:, None]
        if self.encoder == "compgcn":
            w_in, w_out, w_loop, w_rel, loop, bias = self.layers
            m, back = h[src] * z[rel] * mean, (rel >= self.relations)[:, None]
            into = [torch.zeros_like(h).index_add(0, dst, m * keep) for keep in (~back, back)]
            h = (into[0] @ w_in.t() + into[1] @ w_out.t() + (h * loop) @ w_loop.t()) / 3 + bias
            z = z @ w_rel.t()
        else:
            for i, (bases, comp, root, bias) in enumerate(self.layers):
                weight = torch.einsum("rb,bio->rio", comp, bases)
                m = torch.einsum("ei,eio->eo", h[src] * mean, weight[rel])
                h = torch.zeros_like(h).index_add(0, dst, m) + h @ root + bias
                h = h.relu() if i == 0 else h
        if self.bias is not None:
            h = torch.cat([h, self.bias], 1)
        return h, z

    def query(self, h, r):
        if self.decoder == "distmult":
            return h * r
        if self.decoder == "complex":
            (a, b), (c, d) = h.chunk(2, 1), r.chunk(2, 1)
            return torch.cat([a * c - b * d, a * d + b * c], 1)
        norm, w = torch.nn.functional.batch_norm, self.d // self.height
        x = torch.cat([h[:, :-1].reshape(-1, 1, self.height, w), r.reshape(-1, 1, self.height, w)], 2)
        x = norm(x, None, None, *self.norms[0], training=True)
        x = torch.conv2d(x, self.conv[0].view(self.channels, 1, 3, 3), self.conv[1])
        x = norm(x, None, None, *self.norms[1], training=True).relu()
        x = x.permute(0, 2, 3, 1).flatten(1) @ self.fc[0].t() + self.fc[1]
        x = norm(x, None, None, *self.norms[2], training=True).relu()
        return torch.cat([x, torch.ones(len(x), 1)], 1)


def reciprocal(t, relations):
    return np.concatenate([t, np.stack([t[:, 2], t[:, 1] + relations, t[:, 0]], 1)])


def losses(train, n, relations, encoder, decoder, loss):
    model = Model(encoder, decoder, n, relations)
    adam = torch.optim.Adam(model.w.all, lr=LR)
    both = reciprocal(train, relations)
    answers = {}
    for h, r, t in both.tolist():
        answers.setdefault((h, r), []).append(t)
    queries = sorted(answers)
    items, out, epoch = len(both) if loss == "bce" else len(queries), [], 0
    while len(out) < STEPS:
        chosen = order(items, epoch)
        for step, lo in enumerate(range(0, items, BATCH)):
            ids = chosen[lo:lo + BATCH]
            graph = both
            if loss == "bce":
                graph = reciprocal(train[np.unique(ids[:(len(ids) + 1) // 2] % len(train))], relations)
            h, z = model.tables(*torch.from_numpy(graph).t())
            if loss == "bce":
                heads, rels, tails = both[ids].T
                draws = [word for b in range((NEGATIVES + 3) // 4) for word in philox(ids, b, step, c3(LINKS, SITE_TAILS, epoch))]
                negatives = np.empty((len(ids), NEGATIVES), np.int64)
                for i, (a, r) in enumerate(zip(heads.tolist(), rels.tolist())):
                    others = [v for v in range(n) if v not in answers[a, r]]
                    negatives[i] = [others[int(draws[j][i]) * len(others) >> 32] for j in range(NEGATIVES)]
                ends = torch.from_numpy(np.concatenate([tails[:, None], negatives], 1))
                scores = torch.einsum("nd,nkd->nk", model.query(h[heads], z[rels]), h[ends])
                target = torch.zeros_like(scores)
                target[:, 0] = 1
                value = torch.nn.functional.binary_cross_entropy_with_logits(scores, target)
            else:
                heads, rels = torch.tensor([queries[i] for i in ids]).t()
                scores = model.query(h[heads], z[rels]) @ h.t()
                target = torch.zeros_like(scores)
                for i, q in enumerate(ids):
                    target[i, sorted(set(answers[queries[q]]))] = 1
                if loss == "kvsall":
                    value = torch.nn.functional.binary_cross_entropy_with_logits(scores, target * (1 - SMOOTHING) + SMOOTHING / n)
                else:
                    value = -(scores.log_softmax(1) * target).sum() / target.sum()
            adam.zero_grad()
            value.backward()
            adam.step()
            out.append(float(f"{value.item():.9g}"))
            if len(out) == STEPS:
                break
        epoch += 1
    return out


def main():
    folder = pathlib.Path(sys.argv[1])
    load = lambda name: np.load(folder / f"{name}.npy").astype(np.int64)
    indptr, edges = load("indptr"), load("edge_split_train")
    dst = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    train = np.stack([load("indices")[edges], load("edge_types")[edges], dst[edges]], 1)
    n, relations = len(indptr) - 1, len(json.loads((folder / "metadata.json").read_text())["relations"])
    out = {"torch": torch.__version__, "cases": []}
    for encoder, decoder, loss in (("rgcn", "distmult", "bce"), ("rgcn", "complex", "1vsall"), ("compgcn", "complex", "kvsall"), ("compgcn", "distmult", "bce"), ("compgcn", "conve", "kvsall"), ("", "conve", "kvsall"), ("", "distmult", "bce")):
        out["cases"].append({"encoder": encoder, "decoder": decoder, "loss": loss, "losses": losses(train, n, relations, encoder, decoder, loss)})
    print(json.dumps(out, indent=1))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()

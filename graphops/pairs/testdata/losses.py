"""Writes losses.json: PyTorch's losses of edges and negatives with a weight of edges and smoothed labels, step by step, for lossoptions_test.go."""
import json

import torch
import torch.nn.functional as F

EDGES, NEGATIVES, STEPS = 7, 3, 12


def values(n, k):
    """values are the numbers that pyValues in the test returns."""
    return torch.tensor([((i * 37 + k * 11) % 29 - 14) / 8 for i in range(n)], dtype=torch.float64)


def bce(weight, smoothing):
    target = torch.zeros(EDGES, 1 + NEGATIVES, dtype=torch.float64)
    target[:, 0] = 1
    target = target * (1 - smoothing) + smoothing / 2
    return lambda x: F.binary_cross_entropy_with_logits(x, target, pos_weight=torch.tensor(weight, dtype=torch.float64))


def softmax(smoothing):
    return lambda x: F.cross_entropy(x, torch.zeros(EDGES, dtype=torch.long), label_smoothing=smoothing)


cases = []
for kind, weight, smoothing in [("bce", 1, 0.0), ("bce", 3, 0.0), ("bce", 0.25, 0.1), ("bce", 1, 0.4), ("softmax", 0, 0.0), ("softmax", 0, 0.1), ("softmax", 0, 0.5)]:
    loss = bce(weight, smoothing) if kind == "bce" else softmax(smoothing)
    x = values(EDGES * (1 + NEGATIVES), 3).reshape(EDGES, 1 + NEGATIVES).requires_grad_()
    opt = torch.optim.Adam([x], lr=0.05)
    losses = []
    for _ in range(STEPS):
        opt.zero_grad()
        l = loss(x)
        l.backward()
        losses.append(l.item())
        opt.step()
    cases.append({"kind": kind, "weight": weight, "smoothing": smoothing, "losses": losses, "scores": x.detach().flatten().tolist()})
print(json.dumps({"negatives": NEGATIVES, "cases": cases}))

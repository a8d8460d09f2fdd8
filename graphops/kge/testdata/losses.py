"""Writes losses.json: PyTorch's cross-entropy of triples among all entities with smoothed labels, step by step, for smooth_test.go."""
import json

import torch
import torch.nn.functional as F

ENTITIES, STEPS = 6, 12
# The answers of each query.
ANSWERS = [[0, 3], [5], [1, 2, 4], [2]]


def values(n, k):
    """values are the numbers that pyValues in the test returns."""
    return torch.tensor([((i * 37 + k * 11) % 29 - 14) / 8 for i in range(n)], dtype=torch.float64)


rows = torch.tensor([i for i, a in enumerate(ANSWERS) for _ in a])
tails = torch.tensor([t for a in ANSWERS for t in a])
cases = []
for smoothing in (0.0, 0.1, 0.5):
    x = values(len(ANSWERS) * ENTITIES, 7).reshape(len(ANSWERS), ENTITIES).requires_grad_()
    opt = torch.optim.Adam([x], lr=0.05)
    losses = []
    for _ in range(STEPS):
        opt.zero_grad()
        loss = F.cross_entropy(x[rows], tails, label_smoothing=smoothing)
        loss.backward()
        losses.append(loss.item())
        opt.step()
    cases.append({"smoothing": smoothing, "losses": losses, "scores": x.detach().flatten().tolist()})
print(json.dumps({"answers": ANSWERS, "cases": cases}))

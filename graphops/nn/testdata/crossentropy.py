"""Writes crossentropy.json: PyTorch's cross entropy with class weights and label smoothing, for weightedloss_test.go."""
import json

import torch
import torch.nn.functional as F


def values(n, k):
    """values are the numbers that pyValues in the tests returns."""
    return torch.tensor([((i * 37 + k * 11) % 29 - 14) / 8 for i in range(n)], dtype=torch.float64)


labels = torch.tensor([2, 0, -1, 3, 1, 2, 2])
weights = [0.5, 2.0, 0.25, 1.5]
cases = []
for weight in (None, weights, [0.0, 1.0, 2.0, 0.0]):
    for smoothing in (0.0, 0.1, 0.6):
        x = values(28, 5).reshape(7, 4).requires_grad_()
        w = None if weight is None else torch.tensor(weight, dtype=torch.float64)
        loss = F.cross_entropy(x, labels, weight=w, ignore_index=-1, label_smoothing=smoothing)
        loss.backward()
        cases.append({"weights": weight, "smoothing": smoothing, "loss": loss.item(), "grad": x.grad.flatten().tolist()})
print(json.dumps({"labels": labels.tolist(), "cases": cases}))

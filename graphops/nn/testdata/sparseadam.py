"""Writes sparseadam.json: tables trained by torch.optim.SparseAdam on gradients of some rows.

values(n, k) is pyValues of pytorch_test.go; step t touches the rows (t + i·i) % ROWS for i < 1 + t % 4, without repeats.
"""

import json

import torch

ROWS, COLS, STEPS = 9, 5, 25


def values(n, k):
    return torch.tensor([((i * 37 + k * 11) % 29 - 14) / 8 for i in range(n)])


def touched(t):
    return list(dict.fromkeys((t + i * i) % ROWS for i in range(1 + t % 4)))


out = {"torch": torch.__version__, "rows": ROWS, "cols": COLS, "steps": STEPS, "cases": {}}
for name, options in {"defaults": {}, "options": {"lr": 0.05, "betas": (0.8, 0.95), "eps": 1e-3}}.items():
    w = torch.nn.Parameter(values(ROWS * COLS, 1).reshape(ROWS, COLS))
    opt = torch.optim.SparseAdam([w], **options)
    for t in range(STEPS):
        ids = touched(t)
        g = values(len(ids) * COLS, t).reshape(len(ids), COLS)
        w.grad = torch.sparse_coo_tensor(torch.tensor([ids]), g, (ROWS, COLS))
        opt.step()
    state = opt.state[w]
    out["cases"][name] = {
        "w": w.detach().flatten().tolist(),
        "exp_avg": state["exp_avg"].flatten().tolist(),
        "exp_avg_sq": state["exp_avg_sq"].flatten().tolist(),
    }
print(json.dumps(out))

"""Writes averages.json: averages of weights and parameter groups by PyTorch, step by step, for average_test.go."""
import json

import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

STEPS = 24
SIZES = {"convs.0.lin.weight": 6, "convs.0.bias": 3, "convs.1.lin.weight": 4, "convs.1.bias": 2}


def values(n, k):
    return torch.tensor([((i * 37 + k * 11) % 29 - 14) / 8 for i in range(n)])


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.all = torch.nn.ParameterList([torch.nn.Parameter(values(n, k)) for k, n in enumerate(SIZES.values())])


def flat(ps):
    return [float(x) for p in ps for x in p.detach().reshape(-1)]


def train(model, opt, after=lambda step: None):
    for step in range(STEPS):
        for k, p in enumerate(model.all):
            p.grad = values(p.numel(), step + k)
        opt.step()
        after(step)


def averaged(make, due):
    model = Model()
    avg, out = make(model), []

    def after(step):
        if due(step):
            avg.update_parameters(model)
        out.append(flat(avg.module.all if avg.n_averaged > 0 else model.all))
    train(model, torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=0.01), after)
    return out


def grouped(make):
    model, rates = Model(), []
    p = list(model.all)
    opt = make([
        {"params": [p[1], p[3]], "weight_decay": 0.0},
        {"params": [p[0]], "lr": 0.05, "weight_decay": 0.2},
        {"params": [p[2]]},
    ])
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt, STEPS)

    def after(step):
        rates.append(opt.param_groups[2]["lr"])
        schedule.step()
    train(model, opt, after)
    return {"rates": rates, "w": flat(p)}


print(json.dumps({
    "torch": torch.__version__,
    "steps": STEPS,
    "sizes": SIZES,
    "averages": {
        "ema:0.9": averaged(lambda m: AveragedModel(m, multi_avg_fn=get_ema_multi_avg_fn(0.9)), lambda s: True),
        "ema:0.999": averaged(lambda m: AveragedModel(m, multi_avg_fn=get_ema_multi_avg_fn(0.999)), lambda s: True),
        "swa:0": averaged(AveragedModel, lambda s: True),
        "swa:6:4": averaged(AveragedModel, lambda s: s + 1 > 6 and (s + 1 - 6) % 4 == 0),
    },
    "groups": {
        "adam": grouped(lambda g: torch.optim.Adam(g, lr=0.02, weight_decay=0.1)),
        "adamw": grouped(lambda g: torch.optim.AdamW(g, lr=0.02, weight_decay=0.1)),
        "sgd": grouped(lambda g: torch.optim.SGD(g, lr=0.02, weight_decay=0.1)),
        "momentum": grouped(lambda g: torch.optim.SGD(g, lr=0.02, weight_decay=0.1, momentum=0.9)),
    },
}))

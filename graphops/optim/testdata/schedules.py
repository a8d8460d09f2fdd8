"""Writes schedules.json: the learning rates of PyTorch's schedulers, step by step, for schedule_test.go."""
import json
import math
import warnings

import torch
from torch.optim import lr_scheduler as lrs

warnings.filterwarnings("ignore")
STEPS = 60


def rates(base, make, measurements=None):
    opt = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=base)
    schedule = make(opt)
    out = []
    for step in range(STEPS):
        out.append(opt.param_groups[0]["lr"])
        opt.step()
        if measurements is None:
            if step + 1 < STEPS:
                schedule.step()
        else:
            schedule.step(measurements[step])
    return out


def after(warmup, make):
    def both(opt):
        first = lrs.LinearLR(opt, start_factor=0.01, total_iters=warmup)
        return lrs.SequentialLR(opt, [first, make(opt)], milestones=[warmup])
    return both


accuracy = [0.5 + 0.3 * (1 - math.exp(-s / 8)) + 0.02 * math.sin(s * s) for s in range(STEPS)]
loss = [1.5 * math.exp(-s / 10) + 0.05 * math.cos(3 * s) for s in range(STEPS)]
out = {
    "steps": STEPS,
    "accuracy": accuracy,
    "loss": loss,
    "rates": {
        "step:7:0.5": rates(0.1, lambda o: lrs.StepLR(o, 7, 0.5)),
        "cosine": rates(0.1, lambda o: lrs.CosineAnnealingLR(o, STEPS)),
        "cosine:0.001": rates(0.1, lambda o: lrs.CosineAnnealingLR(o, STEPS, 0.001)),
        "onecycle": rates(0.1, lambda o: lrs.OneCycleLR(o, 0.1, STEPS, cycle_momentum=False)),
        "warmup:12": rates(0.1, lambda o: lrs.LinearLR(o, start_factor=0.01, total_iters=12)),
        "cosine:0.002,warmup:10": rates(0.1, after(10, lambda o: lrs.CosineAnnealingLR(o, STEPS - 10, 0.002))),
        "step:9:0.3,warmup:10": rates(0.1, after(10, lambda o: lrs.StepLR(o, 9, 0.3))),
    },
    "accuracy_plateau:3:0.5": rates(0.1, lambda o: lrs.ReduceLROnPlateau(o, "max", 0.5, 3), accuracy),
    "loss_plateau:2:0.1:0.004": rates(0.1, lambda o: lrs.ReduceLROnPlateau(o, "min", 0.1, 2, min_lr=0.004), loss),
}
print(json.dumps(out))

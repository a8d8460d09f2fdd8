"""Writes regression.json: metrics of predicted numbers by scikit-learn, of 20 random cases, some with missing targets.

usage: python3 regression.py > regression.json    (with numpy and scikit-learn 1.9)
"""

import json

import numpy as np
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

rng = np.random.default_rng(7)
cases = []
for i in range(20):
    targets, rows = 1 + i % 3, int(rng.integers(2, 40))
    scale = 10.0 ** rng.integers(-6, 7)
    shift = scale * 10.0 ** rng.integers(-3, 4)
    y = (shift + scale * rng.standard_normal((rows, targets))).astype(np.float32)
    p = (y + 0.3 * scale * rng.standard_normal(y.shape)).astype(np.float32)
    missing = rng.random(y.shape) < (0.3 if i % 2 else 0)
    missing[:2] = False
    a, b = y[~missing].astype(np.float64), p[~missing].astype(np.float64)
    cases.append({
        "targets": targets,
        "y": [None if m else float(v) for v, m in zip(y.ravel(), missing.ravel())],
        "p": [float(v) for v in p.ravel()],
        "want": {
            "mae": mean_absolute_error(a, b), "rmse": root_mean_squared_error(a, b), "r2": r2_score(a, b),
            "nmae": mean_absolute_error(a, b) / a.std(),
        },
    })
print(json.dumps(cases))

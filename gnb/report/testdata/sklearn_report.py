"""Writes sklearn.json: predictions with scikit-learn's measures of them, for the tests of package report."""
import json, sys
import numpy as np
from sklearn import metrics

rng = np.random.default_rng(7)
n, c = 150, 4
labels = rng.integers(0, 3, n)  # class 3 never occurs as a label
logits = np.round(rng.normal(size=(n, c)) + 1.5 * np.eye(c)[labels], 3)
p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
said = p.argmax(1)
precision, recall, f1, _ = metrics.precision_recall_fscore_support(labels, said, labels=range(c), zero_division=0)
bins = np.clip(np.ceil(p.max(1) * 15).astype(int) - 1, 0, 14)
ece = sum(np.mean(bins == b) * abs(p.max(1)[bins == b].mean() - (said == labels)[bins == b].mean()) for b in range(15) if (bins == b).any())
one = dict(logits=logits.ravel().tolist(), labels=labels.tolist(), confusion=metrics.confusion_matrix(labels, said, labels=range(c)).tolist(),
           precision=precision.tolist(), recall=recall.tolist(), f1=f1.tolist(), macro_f1=metrics.f1_score(labels, said, average="macro"),
           accuracy=metrics.accuracy_score(labels, said), loss=metrics.log_loss(labels, p, labels=range(c)), ece=float(ece))

targets = (rng.random((n, c)) < 0.4).astype(int)
scores = np.round(rng.normal(size=(n, c)) + 1.5 * targets - 1, 3)
q = 1 / (1 + np.exp(-scores))
yes = scores > 0
precision, recall, f1, _ = metrics.precision_recall_fscore_support(targets, yes, zero_division=0)
several = dict(logits=scores.ravel().tolist(), labels=targets.ravel().tolist(), precision=precision.tolist(), recall=recall.tolist(), f1=f1.tolist(),
               macro_f1=metrics.f1_score(targets, yes, average="macro"), accuracy=float((yes == targets).mean()),
               loss=float(np.mean([metrics.log_loss(targets[:, k], q[:, k]) for k in range(c)])),
               auc=metrics.roc_auc_score(targets, scores, average=None).tolist())
json.dump(dict(nodes=n, classes=c, one=one, several=several), open(sys.argv[1], "w"))

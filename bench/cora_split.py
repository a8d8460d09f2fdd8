"""Draws the split of Cora that "Classic GNNs are strong baselines" measures, with PyTorch's random numbers.

usage: python3 bench/cora_split.py LABELS.npy OUT.npz      labels.npy of the dataset that gnb data convert wrote

The paper's program seeds torch with 123 and draws 20 training nodes of each class, in the order of the classes, then 500
validation and 1,000 test nodes of the others. bench/cora_split.npz was drawn with torch 2.15.0.
"""

import sys

import numpy as np
import torch

labels = torch.from_numpy(np.load(sys.argv[1]).astype(np.int64))
torch.manual_seed(123)
train, others = [], []
for c in labels.unique():
    members = torch.nonzero(labels == c).flatten()
    order = members[torch.randperm(len(members))]
    train.append(order[:20])
    others.append(order[20:])
others = torch.cat(others)
others = others[torch.randperm(len(others))]
parts = {"train": torch.cat(train), "valid": others[:500], "test": others[500:1500]}
np.savez_compressed(sys.argv[2], **{name: ids.numpy().astype(np.int32) for name, ids in parts.items()})

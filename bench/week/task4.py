"""Task 4: a warm-up and a cosine, AdamW, class weights and smoothed labels."""
import torch
import torch.nn.functional as F
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR
from torch_geometric.nn import GAT

torch.manual_seed(1)
data = torch.load("churn.pt", weights_only=False)
model = GAT(data.num_features, 32, 2, 2, heads=4, v2=True, edge_dim=1, dropout=0.5, act="elu")
optimizer = torch.optim.AdamW(model.parameters(), lr=0.02, weight_decay=0.01)
schedule = SequentialLR(optimizer, [LinearLR(optimizer, 0.01, 1, 20), CosineAnnealingLR(optimizer, 80, 1e-5)], [20])
weight = len(data.train) / (2 * torch.bincount(data.y[data.train]))
best = 0
for epoch in range(100):
    model.train()
    optimizer.zero_grad()
    out = model(data.x, data.edge_index, edge_attr=data.edge_attr)
    F.cross_entropy(out[data.train], data.y[data.train], weight=weight, label_smoothing=0.1).backward()
    optimizer.step()
    schedule.step()
    model.eval()
    with torch.no_grad():
        right = model(data.x, data.edge_index, edge_attr=data.edge_attr).argmax(1) == data.y
    if right[data.val].float().mean() > best:
        best, test = right[data.val].float().mean(), right[data.test].float().mean()
        torch.save(model.state_dict(), "best.pt")
print(f"test accuracy {test:.3f}")

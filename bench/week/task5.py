"""Task 5: two models, each with five seeds; mean and deviation."""
import torch
import torch.nn.functional as F
from torch_geometric.nn import GAT, GraphSAGE

data = torch.load("churn.pt", weights_only=False)
models = {
    "sage": lambda: GraphSAGE(data.num_features, 32, 2, 2, dropout=0.5),
    "gatv2": lambda: GAT(data.num_features, 32, 2, 2, v2=True, edge_dim=1, dropout=0.5, act="elu"),
}


def train(make, seed, more):
    torch.manual_seed(seed)
    model = make()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    best, test = 0, 0
    for epoch in range(30):
        model.train()
        optimizer.zero_grad()
        F.cross_entropy(model(data.x, data.edge_index, **more)[data.train], data.y[data.train]).backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            right = (model(data.x, data.edge_index, **more).argmax(1) == data.y).float()
        if right[data.val].mean() > best:
            best, test = right[data.val].mean(), right[data.test].mean()
    return test


for name, make in models.items():
    more = {"edge_attr": data.edge_attr} if name == "gatv2" else {}
    accuracies = torch.stack([train(make, seed, more) for seed in range(5)])
    print(f"{name} test_accuracy {accuracies.mean():.4f} ± {accuracies.std():.4f}")

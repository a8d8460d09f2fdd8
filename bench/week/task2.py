"""Task 2: the hidden layer of the trained network, drawn."""
import matplotlib.pyplot as plt
import torch
from sklearn.decomposition import PCA
from torch_geometric.nn import GAT

data = torch.load("churn.pt", weights_only=False)
model = GAT(data.num_features, 32, 2, 2, heads=4, v2=True, edge_dim=1, dropout=0.5, act="elu")
model.load_state_dict(torch.load("gat.pt"))
model.eval()
with torch.no_grad():
    h = model.act(model.convs[0](data.x, data.edge_index, edge_attr=data.edge_attr))
at = PCA(2).fit_transform(h)
for y, name in enumerate(["no", "yes"]):
    plt.scatter(*at[data.y == y].T, s=4, label=name)
plt.title("the first layer's output")
plt.legend()
plt.savefig("hidden.png")

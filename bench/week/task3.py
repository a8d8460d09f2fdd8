"""Task 3: probabilities with ids as Parquet, and the calibration error."""
import numpy as np
import pandas as pd
import torch
from torch_geometric.nn import GAT

data = torch.load("churn.pt", weights_only=False)
model = GAT(data.num_features, 32, 2, 2, heads=4, v2=True, edge_dim=1, dropout=0.5, act="elu")
model.load_state_dict(torch.load("gat.pt"))
model.eval()
with torch.no_grad():
    p = model(data.x, data.edge_index, edge_attr=data.edge_attr).softmax(1)
table = pd.DataFrame({"node": np.arange(len(p)), "id": pd.read_csv("customers.csv").id, "label": np.array(["no", "yes"])[data.y],
                      "predicted": np.array(["no", "yes"])[p.argmax(1)], "p:no": p[:, 0], "p:yes": p[:, 1]})
table.to_parquet("predictions.parquet")
sure, right = p.max(1).values[data.test], (p.argmax(1) == data.y)[data.test].float()
bins = torch.bucketize(sure, torch.linspace(0, 1, 16)) - 1
error = sum(abs(sure[bins == b].mean() - right[bins == b].mean()) * (bins == b).sum() for b in bins.unique()) / len(sure)
print(f"calibration error {error:.3f}")

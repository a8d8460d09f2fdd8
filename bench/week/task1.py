"""Task 1: two CSV files with text to a graph attention network, a report, and predictions for new customers."""
import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from sklearn.calibration import calibration_curve
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.metrics import classification_report, confusion_matrix
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from torch_geometric.data import Data
from torch_geometric.nn import GAT
from torch_geometric.utils import degree

torch.manual_seed(1)
old, new = pd.read_csv("customers.csv"), pd.read_csv("new-customers.csv")
for table in (old, new):
    table["joined"] = (pd.Timestamp("2026-01-01") - pd.to_datetime(table.joined)).dt.days
    table["note"] = table.note.fillna("")
train, rest = train_test_split(np.arange(len(old)), train_size=0.6, stratify=old.churned, random_state=1)
val, test = train_test_split(rest, train_size=0.5, stratify=old.churned[rest], random_state=1)
features = ColumnTransformer([
    ("plan", OneHotEncoder(handle_unknown="ignore"), ["plan"]),
    ("numbers", make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), ["spent", "joined"]),
    ("note", TfidfVectorizer(max_features=256), "note"),
], sparse_threshold=0).fit(old.iloc[train])


def graph(customers, calls, mean=None, deviation=None):
    row = pd.Series(np.arange(len(customers)), index=customers.id)
    src, dst = row[calls.caller].to_numpy(), row[calls.callee].to_numpy()
    minutes = torch.tensor(calls.minutes.to_numpy(), dtype=torch.float)
    mean, deviation = (minutes.mean(), minutes.std()) if mean is None else (mean, deviation)
    edges = torch.tensor(np.stack([np.concatenate([src, dst]), np.concatenate([dst, src])]))
    weight = ((minutes - mean) / deviation).repeat(2).view(-1, 1)
    x = torch.tensor(features.transform(customers), dtype=torch.float)
    return Data(x=x, edge_index=edges, edge_attr=weight), mean, deviation


calls = pd.read_csv("calls.csv")
data, mean, deviation = graph(old, calls)
data.y = torch.tensor((old.churned == "yes").to_numpy(), dtype=torch.long)
data.train, data.val, data.test = (torch.tensor(i) for i in (train, val, test))
torch.save(data, "churn.pt")
model = GAT(data.num_features, 32, 2, 2, heads=4, v2=True, edge_dim=1, dropout=0.5, act="elu")
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
best, kept = 0, None
for epoch in range(100):
    model.train()
    optimizer.zero_grad()
    out = model(data.x, data.edge_index, edge_attr=data.edge_attr)
    F.cross_entropy(out[data.train], data.y[data.train]).backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        out = model(data.x, data.edge_index, edge_attr=data.edge_attr)
    accuracy = (out.argmax(1) == data.y)[data.val].float().mean().item()
    if accuracy > best:
        best, kept = accuracy, {k: v.clone() for k, v in model.state_dict().items()}
model.load_state_dict(kept)
torch.save(kept, "gat.pt")
with torch.no_grad():
    p = model(data.x, data.edge_index, edge_attr=data.edge_attr).softmax(1)
said = p.argmax(1)
print(classification_report(data.y[test], said[test], target_names=["no", "yes"]))
print(confusion_matrix(data.y[test], said[test]))
print(calibration_curve(data.y[test], p[test, 1], n_bins=15))
right, degrees = (said == data.y)[test], degree(data.edge_index[1], data.num_nodes)[test]
same = pd.Series((data.y[data.edge_index[0]] == data.y[data.edge_index[1]]).float()).groupby(data.edge_index[1].numpy()).mean().reindex(test)
print(pd.Series(right).groupby(pd.cut(degrees.numpy(), 4)).mean(), pd.Series(right.numpy()).groupby(pd.cut(same.to_numpy(), 4)).mean())
wrong = pd.DataFrame({"id": old.id[test].to_numpy(), "p": p[test].max(1).values, "right": right})
print(wrong[~wrong.right].sort_values("p", ascending=False).head())
every, _, _ = graph(pd.concat([old, new]), pd.concat([calls, pd.read_csv("new-calls.csv")]), mean, deviation)
with torch.no_grad():
    out = model(every.x, every.edge_index, edge_attr=every.edge_attr).argmax(1)[len(old):]
for name, y in zip(new.id, out):
    print(name, "leaves:", ["no", "yes"][y])

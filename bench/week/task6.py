"""Task 6: the best epoch by the recall of a class, as a curve in TensorBoard, with early stopping."""
import copy

import torch
import torch.nn.functional as F
from torch.utils.tensorboard import SummaryWriter
from torch_geometric.nn import GraphSAGE

torch.manual_seed(1)
data = torch.load("churn.pt", weights_only=False)
model = GraphSAGE(data.num_features, 32, 2, 2, dropout=0.5)
optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
writer = SummaryWriter()
best, kept, patience = -1, None, 0
for epoch in range(100):
    model.train()
    optimizer.zero_grad()
    loss = F.cross_entropy(model(data.x, data.edge_index)[data.train], data.y[data.train])
    loss.backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        said = model(data.x, data.edge_index).argmax(1)[data.val]
    recall = said[data.y[data.val] == 1].float().mean().item()
    writer.add_scalar("loss", loss.item(), epoch)
    writer.add_scalar("val_recall", recall, epoch)
    if recall > best:
        best, kept, patience = recall, (epoch, copy.deepcopy(model.state_dict())), 0
    elif (patience := patience + 1) == 20:
        break
model.load_state_dict(kept[1])
print(f"val recall {best:.3f} in epoch {kept[0]}")

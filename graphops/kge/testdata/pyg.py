"""Writes pyg.json: the scores and gradients of PyTorch Geometric's knowledge graph embeddings, and of ConvE.

scripts/fixtures.sh runs it in a virtual environment of its own:
python pyg.py > pyg.json
ConvE is not in PyTorch Geometric; it is written here from its paper with PyTorch's convolution and batch norms.
"""
import json

import torch
import torch_geometric
from torch_geometric.nn.kge import ComplEx, DistMult, RotatE, TransE

ENTITIES, RELATIONS, DIM = 6, 3, 8
HEAD, REL, TAIL = [0, 1, 4, 2, 0], [1, 0, 2, 1, 1], [3, 1, 0, 2, 5]


def values(n, k):
    return torch.tensor([((i * 37 + k * 11) % 29 - 13.5) / 16 for i in range(n)])


def fill(module):
    with torch.no_grad():
        for k, p in enumerate(module.parameters()):
            p.copy_(values(p.numel(), k + 1).view(p.shape))


def flat(t):
    return [float(f"{float(v):.9g}") for v in t.detach().reshape(-1)]


def rows(*tables):
    return [flat(v) for v in torch.cat(tables, 1)]


out = {"torch": torch.__version__, "torch_geometric": torch_geometric.__version__, "head": HEAD, "rel": REL, "tail": TAIL, "cases": {}}


def case(name, model, entity, relation):
    """entity and relation are the model's tables, whose columns lie side by side in GraphNB."""
    fill(model)
    score = model(torch.tensor(HEAD), torch.tensor(REL), torch.tensor(TAIL))
    (score * values(len(HEAD), 5)).sum().backward()
    tables = lambda of, get: rows(*(get(getattr(model, n).weight) for n in of))
    out["cases"][name] = {
        "entities": tables(entity, lambda w: w), "relations": tables(relation, lambda w: w), "score": flat(score),
        "dEntities": tables(entity, lambda w: w.grad), "dRelations": tables(relation, lambda w: w.grad),
    }


case("distmult", DistMult(ENTITIES, RELATIONS, DIM), ["node_emb"], ["rel_emb"])
case("complex", ComplEx(ENTITIES, RELATIONS, DIM), ["node_emb", "node_emb_im"], ["rel_emb", "rel_emb_im"])
case("transe", TransE(ENTITIES, RELATIONS, DIM), ["node_emb"], ["rel_emb"])
case("transe 2", TransE(ENTITIES, RELATIONS, DIM, p_norm=2.0), ["node_emb"], ["rel_emb"])
case("rotate", RotatE(ENTITIES, RELATIONS, DIM, margin=6.0), ["node_emb", "node_emb_im"], ["rel_emb"])


class ConvE(torch.nn.Module):
    HEIGHT, CHANNELS = 2, 3

    def __init__(self):
        super().__init__()
        self.node_emb, self.rel_emb = torch.nn.Embedding(ENTITIES, DIM), torch.nn.Embedding(RELATIONS, DIM)
        self.bias = torch.nn.Embedding(ENTITIES, 1)
        self.bn0, self.bn1, self.bn2 = torch.nn.BatchNorm2d(1), torch.nn.BatchNorm2d(self.CHANNELS), torch.nn.BatchNorm1d(DIM)
        self.conv = torch.nn.Conv2d(1, self.CHANNELS, 3)
        self.fc = torch.nn.Linear(self.CHANNELS * (2 * self.HEIGHT - 2) * (DIM // self.HEIGHT - 2), DIM)

    def forward(self, h, r, t):
        x = torch.cat([self.node_emb(h).view(-1, 1, self.HEIGHT, DIM // self.HEIGHT), self.rel_emb(r).view(-1, 1, self.HEIGHT, DIM // self.HEIGHT)], 2)
        x = torch.relu(self.bn1(self.conv(self.bn0(x))))
        x = torch.relu(self.bn2(self.fc(x.flatten(1))))
        return (x * self.node_emb(t)).sum(1) + self.bias(t).squeeze(1)


model = ConvE()
case("conve", model, ["node_emb", "bias"], ["rel_emb"])
places = model.fc.weight.shape[1] // model.CHANNELS
by_place = model.fc.weight.detach().view(DIM, model.CHANNELS, places).transpose(1, 2)  # GraphNB has a place's channels side by side
out["cases"]["conve"]["params"] = {
    "conv.weight": flat(model.conv.weight), "conv.bias": flat(model.conv.bias), "fc.weight": flat(by_place), "fc.bias": flat(model.fc.bias),
    **{f"{n}.{p}": flat(getattr(getattr(model, n), p)) for n in ("bn0", "bn1", "bn2") for p in ("weight", "bias")},
}
print(json.dumps(out, separators=(",", ":")))

"""GraphNB beside PyTorch Geometric, DGL, GraphBolt, PyTorch and OpenBLAS on one CPU."""

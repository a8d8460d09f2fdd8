"""Writes values.pN.pickle, the same values by each protocol of Python's pickler from 2 on.

Run with NumPy in this directory. SciPy is not needed: what a pickle holds of a
csr_matrix is its class's name and its attributes.
"""

import collections
import pickle
import sys
import types

import numpy as np

module = types.ModuleType("scipy.sparse._csr")
for name in ("scipy", "scipy.sparse"):
    sys.modules[name] = types.ModuleType(name)
sys.modules[module.__name__] = module


class csr_matrix:
    pass


csr_matrix.__module__ = module.__name__
csr_matrix.__qualname__ = "csr_matrix"
module.csr_matrix = csr_matrix

m = csr_matrix()
m.__dict__.update(
    _shape=(2, 4),
    maxprint=50,
    indices=np.array([0, 3, 1], np.int32),
    indptr=np.array([0, 2, 3], np.int32),
    data=np.array([1, 2, 0.5], np.float32),
    _has_sorted_indices=True,
)
graph = collections.defaultdict(list)
graph[0] = [1, 2]
graph[1] = [0]
graph[2].append(0)
shared = [7]
values = {
    "whole": [0, -1, 255, 65536, -(2**31), 2**40, -(2**62), 2**63 - 1],
    "other": [None, True, False, 1.5, "é€", b"\x00\xff\n", "a\\b\nc"],
    "tuples": ((), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)),
    "shared": [shared, shared],
    "graph": graph,
    "csr": m,
    "int64": np.arange(6, dtype=np.int64).reshape(2, 3),
    "fortran": np.asfortranarray(np.arange(6, dtype=np.int32).reshape(2, 3)),
    "big": np.array([1.5, -2], ">f8"),
    "bool": np.array([True, False]),
    "text": np.array(["x", "yz"]),
    "objects": np.array(["a", None, [1]], dtype=object),
    "empty": np.zeros((0, 3), np.float32),
    "scalars": [np.float64(2.5), np.int32(-7), np.bool_(True)],
}
for protocol in range(2, 6):
    with open(f"values.p{protocol}.pickle", "wb") as f:
        pickle.dump(values, f, protocol)

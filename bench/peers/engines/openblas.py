"""OpenBLAS as NumPy's wheel brings it. OPENBLAS_CORETYPE and OPENBLAS_NUM_THREADS are set by the driver,
before the process starts."""

import os

import numpy as np

from peers.engines import timing


class OpenBLAS:
    def __init__(self, data: str | None, threads: int) -> None:
        self.threads = threads

    def info(self) -> dict:
        blas = np.__config__.show(mode="dicts")["Build Dependencies"]["blas"]
        return {"numpy": np.__version__, "openblas": blas.get("version"), "coretype": os.environ.get("OPENBLAS_CORETYPE", "its own choice"),
                "pid": os.getpid(), "threads": self.threads}

    def gemm(self, count: int, warm: int, m: int, n: int, k: int, trans: str) -> dict:
        rng = np.random.default_rng(0)

        def matrix(rows: int, cols: int, transposed: bool) -> np.ndarray:
            if transposed:
                return rng.standard_normal((cols, rows), np.float32).T
            return rng.standard_normal((rows, cols), np.float32)

        a, b = matrix(m, k, trans[0] == "t"), matrix(k, n, trans[1] == "t")
        out = np.empty((m, n), np.float32)
        return timing.repeat(lambda: np.dot(a, b, out=out), count, warm)

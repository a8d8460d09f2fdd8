"""The graphs, made once in build/bench and the same for all engines. Each function gives (directory, why not)."""

import os
import shutil
import subprocess
from pathlib import Path

from peers.process import GNB, ROOT

FOLDER = ROOT / "build" / "bench"


def _make(name: str, cmd: list[str]) -> str:
    path = FOLDER / name
    if not (path / "metadata.json").exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(path, ignore_errors=True)
        subprocess.run([*cmd, str(path)], check=True, stdout=subprocess.DEVNULL)
    return str(path)


def arxiv(shared: str) -> tuple[str, str]:
    """ogbn-arxiv, undirected, its real split and 128 normal random features: the real ones are not in the folder."""
    src = Path(shared) / "ogbn_arxiv" / "graphsaint"
    if not src.exists():
        return "", f"{src} is not there; GNB_DATA names the folder of real graphs"
    return _make("arxiv", [str(GNB), "data", "convert", "--undirected", "--features", "random:128", str(src)]), ""


def cora(shared: str) -> tuple[str, str]:
    src = Path(shared) / "planetoid"
    if not src.exists():
        return "", f"{src} is not there; GNB_DATA names the folder of real graphs"
    return _make("cora", [str(GNB), "data", "convert", "--name", "cora", str(src)]), ""


def products(small: bool = False) -> str:
    """The R-MAT graph of ogbn-products' size (bench/productslike), or one a 15th of that. PEERS_PRODUCTS names a
    directory that already has it."""
    generator = str(ROOT / "build" / "productslike")
    if small:
        return _make("products-small", [generator, "--scale", "18", "--nodes", "180000", "--seeds", "40000"])
    if given := os.environ.get("PEERS_PRODUCTS"):
        return given
    return _make("products-like", [generator])

"""Puts pyg-lib into this environment: its wheel where an index has one, else the sampler built from source.

    PYG_LIB_SRC=CHECKOUT python -m peers.pyglib

PyG's NeighborLoader needs it. Only the parts that run on the CPU without METIS are built, with the flags of its
own build, against the PyTorch of this environment: g++ 12 or another with C++20, two to four minutes on two cores.
Without a wheel and without PYG_LIB_SRC nothing is done, and PyG's sampled rows are left out.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

PARTS = ("csrc/library.cpp", "sampler/neighbor", "sampler/cpu/neighbor", "sampler/subgraph", "sampler/cpu/subgraph",
         "/random/", "csrc/utils/", "index_sort")


def wheel() -> bool:
    import torch

    series = ".".join(torch.__version__.split(".")[:2])
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check", "--retries", "0", "--timeout", "10"]
    index = ["--find-links", os.environ.get("PYG_LIB_INDEX", f"https://data.pyg.org/whl/torch-{series}.0+cpu.html")]
    return subprocess.run([*pip, *index, "pyg_lib"], stderr=subprocess.DEVNULL, check=False).returncode == 0


def build(src: Path, work: Path) -> Path:
    """Compiles the CPU part of the checkout src in work and returns the library."""
    import torch
    from torch.utils.cpp_extension import include_paths

    tree = work / "src"  # a copy: the build writes a header into it
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(src, tree, ignore=shutil.ignore_patterns(".git", "cccl", "cutlass", "cuCollections", "METIS"))
    (tree / "pyg_lib/csrc/config.h").write_text("#pragma once\n#define WITH_MKL_BLAS() 0\n#define NO_METIS() 1\n")
    files = [f for f in sorted(tree.glob("pyg_lib/csrc/**/*.cpp")) if "/cuda/" not in str(f) and any(p in str(f) for p in PARTS)]
    lib = Path(torch.__file__).parent / "lib"
    python = sysconfig.get_paths()["include"]
    flags = ["-std=c++20", "-O3", "-DNDEBUG", "-fPIC", "-fopenmp", "-w", f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
             f"-I{tree}", f"-I{tree}/third_party/parallel-hashmap", *(f"-isystem {p}" for p in [*include_paths(), python])]
    rules = [f"rule cxx\n command = g++ {' '.join(flags)} -c $in -o $out",
             f"rule link\n command = g++ -shared -fopenmp -o $out $in -L{lib} -ltorch -ltorch_cpu -lc10"]
    objects = [f"{i}-{f.stem}.o" for i, f in enumerate(files)]
    rules += [f"build {o}: cxx {f}" for o, f in zip(objects, files)]
    rules.append(f"build libpyg.so: link {' '.join(objects)}\n")
    (work / "build.ninja").write_text("\n".join(rules))
    ninja = Path(sys.executable).parent / "ninja"
    subprocess.run([str(ninja), "-C", str(work), "-j2", "--quiet"], check=True)
    return work / "libpyg.so"


def main() -> None:
    if wheel():
        return
    src = os.environ.get("PYG_LIB_SRC")
    if not src:
        print("pyg-lib: no wheel for this PyTorch was found, and PYG_LIB_SRC names no checkout: PyG's sampled rows are left out")
        return
    work = Path(sys.prefix) / "build-pyg-lib"
    work.mkdir(exist_ok=True)
    print(f"building pyg-lib's sampler from {src} (two to four minutes)")
    lib = build(Path(src), work)
    dst = Path(sysconfig.get_paths()["purelib"]) / "pyg_lib"
    shutil.rmtree(dst, ignore_errors=True)
    shutil.copytree(work / "src/pyg_lib", dst, ignore=shutil.ignore_patterns("csrc"))
    shutil.copy(lib, dst / "libpyg.so")
    shutil.rmtree(work)


if __name__ == "__main__":
    main()

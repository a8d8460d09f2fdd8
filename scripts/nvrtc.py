"""Compiles CUDA kernels through NVRTC, without a driver, a GPU or CUDA's headers; kernels.sh runs it.

usage: nvrtc.py FOLDER [--check | --limits]

Each FOLDER/*.cu becomes PTX for compute_70, which every driver since 520 compiles for its GPU. It is
also compiled for a few GPUs, for what ptxas says of registers, spills and shared memory, which
FOLDER/limits.json bounds. FOLDER/*.cuh are the only headers. The first line of the PTX is the
sha256 of the sources: the headers that the .cu includes in order of name, then the .cu.

FOLDER/built.sha256 is the sha256 of everything that was read and written by the last run that succeeded
and was not --check. While it holds, another run would find the same, so the tests do not compile again.
"""

import concurrent.futures
import ctypes
import hashlib
import json
import pathlib
import re
import sys
import sysconfig

ARCHS = ["sm_70", "sm_80", "sm_90"]
OPTIONS = ["--std=c++14"]
USAGE = re.compile(
    r"entry function '(\w+)'.*?(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
    r".*?Used (\d+) registers([^\n]*)",
    re.S,
)


def library() -> ctypes.CDLL:
    site = pathlib.Path(sysconfig.get_path("purelib"))
    return ctypes.CDLL(str(site / "nvidia/cuda_nvrtc/lib/libnvrtc.so.11.2"))


def compile_one(lib: ctypes.CDLL, source: pathlib.Path, headers: list[pathlib.Path], options: list[str]):
    """The program's PTX, empty for a real GPU, and the compiler's log."""

    def strings(values: list[bytes]):
        return (ctypes.c_char_p * len(values))(*values)

    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    status = lib.nvrtcCreateProgram(
        ctypes.byref(program),
        source.read_bytes(),
        source.name.encode(),
        len(headers),
        strings([h.read_bytes() for h in headers]),
        strings([h.name.encode() for h in headers]),
    )
    if status:
        sys.exit(f"{source}: NVRTC takes no program: status {status}")
    args = [o.encode() for o in OPTIONS + options]
    status = lib.nvrtcCompileProgram(program, len(args), strings(args))

    def text(what: str) -> str:
        getattr(lib, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
        out = ctypes.create_string_buffer(size.value)
        getattr(lib, f"nvrtcGet{what}")(program, out)
        return out.value.decode()

    log = text("ProgramLog")
    if status or "warning" in log:
        sys.exit(f"{source} for {options[0]}:\n{log}")
    ptx = text("PTX")
    lib.nvrtcDestroyProgram(ctypes.byref(program))
    return ptx, log


def included(source: pathlib.Path) -> set[pathlib.Path]:
    """The headers that a file includes, and those that they do."""
    found = {source.with_name(name) for name in re.findall(r'^#include "(.*)"', source.read_text(), re.M)}
    return found.union(*(included(header) for header in found))


def build(source: pathlib.Path):
    """The PTX of a file, and what its kernels use: {kernel: {arch: {what: number}}}."""
    lib, headers = library(), sorted(included(source))
    ptx, _ = compile_one(lib, source, headers, ["--gpu-architecture=compute_70"])
    sources = hashlib.sha256(b"".join(p.read_bytes() for p in [*headers, source])).hexdigest()
    used: dict[str, dict[str, dict[str, int]]] = {}
    for arch in ARCHS:
        _, log = compile_one(lib, source, headers, [f"--gpu-architecture={arch}", "--ptxas-options=-v"])
        for m in USAGE.finditer(log):
            shared = re.search(r"(\d+) bytes smem", m[6])
            used.setdefault(m[1], {})[arch] = {
                "registers": int(m[5]),
                "spills": int(m[2]) + int(m[3]) + int(m[4]),
                "shared": int(shared[1]) if shared else 0,
            }
    return f"// sha256 {sources}\n{ptx}", used


def over(used: dict, limits: dict) -> list[str]:
    wrong = [f"{k} has limits but is not there; run scripts/kernels.sh --limits" for k in limits if k not in used]
    for kernel, archs in sorted(used.items()):
        for arch, uses in archs.items():
            limit = limits.get(kernel, {}).get(arch)
            if limit is None:
                wrong.append(f"{kernel} has no limits for {arch}; run scripts/kernels.sh --limits")
                continue
            wrong += [
                f"{kernel} for {arch} uses {n} {'registers' if what == 'registers' else 'bytes of ' + what}, its limit is {limit[what]}"
                for what, n in uses.items()
                if n > limit[what]
            ]
    return wrong


def everything(folder: pathlib.Path) -> str:
    """The sha256 of the sources, the results, the limits, this program and the compiler's version."""
    here = pathlib.Path(__file__).parent
    files = sorted(p for p in folder.iterdir() if p.suffix in (".cu", ".cuh", ".ptx", ".json"))
    sums = [hashlib.sha256(p.read_bytes()).hexdigest() for p in [*files, here / "nvrtc.py", here / "requirements-cuda.txt"]]
    return hashlib.sha256("".join(f"{s}\n" for s in sums).encode()).hexdigest()


def main() -> None:
    folder, mode = pathlib.Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ""
    if mode not in ("", "--check", "--limits"):
        sys.exit(__doc__)
    sources = sorted(folder.glob("*.cu"))
    with concurrent.futures.ProcessPoolExecutor() as pool:
        built = dict(zip(sources, pool.map(build, sources)))
    wrong, used = [], {}
    for source, (ptx, uses) in built.items():
        used.update(uses)
        beside = source.with_suffix(".ptx")
        if mode != "--check":
            beside.write_text(ptx)
        elif not beside.exists() or beside.read_text() != ptx:
            wrong.append(f"{beside} is not what {source.name} compiles to; run make kernels")
    limits = folder / "limits.json"
    if mode == "--limits":
        limits.write_text(json.dumps(used, indent=1, sort_keys=True) + "\n")
    wrong += over(used, json.loads(limits.read_text()))
    print(f"{len(sources)} files, {len(used)} kernels, " + ", ".join(ARCHS))
    if wrong:
        sys.exit("\n".join(wrong))
    if mode != "--check":
        (folder / "built.sha256").write_text(everything(folder) + "\n")


if __name__ == "__main__":
    main()

"""Rebuild the shipped kernels from their C sources.

`python benchmarks/build_kernels.py` needs clang with the wasm32 target and wasm-ld (Debian:
clang, lld), writes one `.wasm` beside each `.c`, and records in `built.json` the compiler, the
SHA-256 of every module, and the checksum of its result after two repetitions of its size s. The same compiler
version gives the same bytes; another version may not, so that is what the record is for.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from jostle.collect import KERNEL_FOLDER, Workload, make_engine, shipped_workloads

RECORD = KERNEL_FOLDER / "built.json"

# Freestanding and without imports, so that a module runs on any engine; no SIMD and no fused
# multiply-add, so that every engine gives the same bits. `sign-ext`, `bulk-memory` and
# `nontrapping-fptoint` are in WebAssembly 2.0.
FLAGS = (
    *("--target=wasm32", "-O2", "-std=c11", "-Wall", "-Wextra", "-Werror", "-ffreestanding"),
    *("-fno-ident", "-mbulk-memory", "-msign-ext", "-mnontrapping-fptoint", "-nostdlib"),
    *("-Wl,--no-entry", "-Wl,--strip-all", "-Wl,-z,stack-size=16384"),
)


def kernel_sources() -> list[Path]:
    """The C source of every kernel."""
    return sorted(KERNEL_FOLDER.glob("*.c"))


def compiler_version() -> str | None:
    """What `clang --version` and `wasm-ld --version` call themselves; None where one is missing."""
    if not (shutil.which("clang") and shutil.which("wasm-ld")):
        return None
    lines = [
        subprocess.run([tool, "--version"], check=True, capture_output=True, text=True)
        .stdout.splitlines()[0]
        .strip()
        for tool in ("clang", "wasm-ld")
    ]
    return "; ".join(lines)


def build(source: Path, target: Path) -> None:
    """Compile one C source to one module; a compiler error is raised with its text."""
    command = ["clang", *FLAGS, "-o", str(target.resolve()), source.name]
    done = subprocess.run(command, cwd=source.parent, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{source.name} does not compile:\n{done.stderr}")


def record() -> dict[str, Any]:
    """Read `built.json`: the compiler, and by name the SHA-256 of modules and the checksum of kernels."""
    return json.loads(RECORD.read_text(encoding="utf-8"))


def checksum(workload: Workload) -> int:
    """Compute the checksum of a kernel's result after set-up and two repetitions."""
    import wasmtime

    store = wasmtime.Store(make_engine("speed"))
    module = wasmtime.Module.from_file(store.engine, str(workload.module))
    exports: Any = wasmtime.Instance(store, module, []).exports(store)
    exports["setup"](store, workload.argument)
    exports["run"](store, 2)
    return exports["checksum"](store) % 2**64


def main() -> None:
    """Build every kernel in place and write the record."""
    compiler = compiler_version()
    if compiler is None:
        raise SystemExit("clang and wasm-ld are needed (Debian: apt-get install clang lld)")
    digests = {}
    for source in kernel_sources():
        target = source.with_suffix(".wasm")
        build(source, target)
        digests[target.name] = hashlib.sha256(target.read_bytes()).hexdigest()
        print(f"{target.name}: {target.stat().st_size} bytes")
    kernels = [workload for workload in shipped_workloads() if workload.size == "s"]
    checksums = {one.kernel: checksum(one) for one in kernels}
    document = {"compiler": compiler, "sha256": digests, "checksum": checksums}
    text = json.dumps(document, indent=1)
    RECORD.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# needs: cc pip:nvidia-cuda-nvcc>=13,<14
"""NVIDIA's assembler, ptxas, accepts the kernels of the GPU suite (tests/gpu/gpu.h) and memstow's own kernel
(preload/copies/vram_hash_text.h), for devices from Turing to Blackwell. On a GPU the driver assembles them; ptxas needs
no driver. The test asks every ptxas that it finds: PyPI's, and one in PATH or of the toolkit."""
import pathlib, re, shutil, sys

import support

KERNELS = {"gpu_ptx": ("sim_fill", "sim_add"), "VRAM_HASH_TEXT": ("memstow_hash",)}
DEVICES = ("75", "80", "86", "89", "90", "100", "120")


def assemblers():
    packages = pathlib.Path(sys.prefix) / "lib"
    found = [*packages.glob("python3*/site-packages/nvidia/*/bin/ptxas")]
    found += [pathlib.Path(path) for path in (shutil.which("ptxas"), shutil.which("ptxas", path="/usr/local/cuda/bin"))
              if path]
    return sorted({path.resolve() for path in found})


def text_of(name):
    program = support.compile(f"""
#include "tests/gpu/gpu.h"
#include "preload/copies/vram_hash_text.h"
int main(void) {{ return fputs({name}, stdout) < 0; }}
""", name=name, flags=("-D_GNU_SOURCE", f"-I{support.ROOT}", f"-I{support.ROOT / 'include'}", "-pthread", "-ldl"))
    return support.run(program).stdout


def check(ptxas, name, text):
    """Asserts that ptxas assembles the text for each device, and refuses a broken text. Returns the devices."""
    known = re.findall(r"sm_(\d+)\b", support.run(ptxas, "--help").stdout)
    devices = [device for device in DEVICES if device in known]
    assert {"75", "90"} <= set(devices), known
    (support.HERE / "kernels.ptx").write_text(text)
    for device in devices:
        said = support.run(ptxas, "-v", f"-arch=sm_{device}", "kernels.ptx", "-o", f"{device}.cubin").stderr
        for kernel in KERNELS[name]:
            assert f"Compiling entry function '{kernel}' for 'sm_{device}'" in said, said
        assert "0 bytes spill stores, 0 bytes spill loads" in said, said
    broken = text.replace("add.u64", "add.u65")
    assert broken != text
    (support.HERE / "broken.ptx").write_text(broken)
    support.run(ptxas, "-arch=sm_90", "broken.ptx", "-o", "broken.cubin", status=255)
    return devices


found = assemblers()
if not found:
    support.skip("there is no ptxas (nvidia-cuda-nvcc of PyPI has it)")
texts = {name: text_of(name) for name in KERNELS}
for ptxas in found:
    version = re.search(r"release ([\d.]+)", support.run(ptxas, "--version").stdout)[1]
    for name, text in texts.items():
        print(f"ptxas {version}: {name} for {', '.join(check(ptxas, name, text))}")

#!/usr/bin/env python3
# needs: cc
"""NVIDIA's assembler takes the kernels of the GPU suite (tests/gpu/gpu.h), for devices from Turing to Blackwell. On a
GPU the driver does the same when the suite begins. ptxas needs no driver; without it the test is skipped."""
import re, shutil

import support

KERNELS = ("sim_fill", "sim_add")
ptxas = shutil.which("ptxas") or shutil.which("ptxas", path="/usr/local/cuda/bin")
if not ptxas:
    support.skip("there is no ptxas (nvidia-cuda-nvcc of PyPI has it)")
program = support.compile("""
#include "tests/gpu/gpu.h"
int main(void) { return fputs(gpu_ptx, stdout) < 0; }
""", name="kernels", flags=("-D_GNU_SOURCE", f"-I{support.ROOT}", f"-I{support.ROOT / 'include'}", "-pthread", "-ldl"))
(support.HERE / "kernels.ptx").write_text(support.run(program).stdout)

version = re.search(r"release ([\d.]+)", support.run(ptxas, "--version").stdout)[1]
known = re.findall(r"sm_(\d+)\b", support.run(ptxas, "--help").stdout)
devices = [device for device in ("75", "80", "86", "89", "90", "100", "120") if device in known]
assert "90" in devices, known
for device in devices:
    said = support.run(ptxas, "-v", f"-arch=sm_{device}", "kernels.ptx", "-o", f"{device}.cubin").stderr
    for kernel in KERNELS:
        assert f"Compiling entry function '{kernel}' for 'sm_{device}'" in said, said
broken = (support.HERE / "kernels.ptx").read_text().replace("st.global.u32", "st.global.u33")
(support.HERE / "broken.ptx").write_text(broken)
support.run(ptxas, "-arch=sm_90", "broken.ptx", "-o", "broken.cubin", status=255)
print(f"ptxas {version}: {', '.join(devices)}")

# shows
"""Compares what memstow's hooks and NVIDIA's CUPTI have seen. At the end of each kind of program, both must list the
same memory."""
import json, os

import _gpu, support


def work():
    """PyTorch, if it is installed, with both of its allocators."""
    torch = _gpu.torch_with_cuda()
    kept = [torch.empty(size << 20, dtype=torch.uint8, device="cuda") for size in (1, 3, 30)]
    pinned = torch.empty(1 << 20, dtype=torch.uint8).pin_memory()
    torch.cuda.synchronize()
    del kept[1]
    _gpu.keep(kept, pinned)


def verify(name, *command, **environment):
    """Asserts that hooks and CUPTI agree about this program. Returns whether the program can run here."""
    done = _gpu.kept(name, support.memstow, "run", "--quiet", "--verify-with-cupti", "-o", f"{name}.mst", "--",
                     *command, env={**os.environ, **environment})
    if done.returncode == 77:
        print(f"{name}: {done.stdout.strip()}")
        return False
    assert done.returncode == 0, done.stdout + done.stderr
    cupti = support.report(f"{name}.mst")["cuda"]["cupti"]
    assert cupti is not None, "nobody asked CUPTI"
    if cupti["state"] == "not found":
        support.skip("no libcupti.so beside the runtime")
    print(f"{name}: {cupti['state']}, CUPTI {cupti['version']}, same {cupti['same']['blocks']} blocks, "
          f"{cupti['same']['bytes']} bytes")
    assert cupti["state"] == "compared" and cupti["same"]["blocks"] > 0, cupti
    assert not cupti["differences"], json.dumps(cupti["differences"][:8], indent=1)
    return True


def outside():
    path = {"LD_LIBRARY_PATH": _gpu.search_path("libcupti.so.13", "libcupti.so.12")[0]}
    seen = [verify("driver", support.BUILD / "tests/simcuda/clients/driver_dlsym", **path)]
    if not _gpu.is_double():
        for backend in ("cudaMallocAsync", "native"):
            seen.append(verify(backend, support.PYTHON, __file__, "work", PYTORCH_ALLOC_CONF=f"backend:{backend}",
                               PYTORCH_CUDA_ALLOC_CONF=f"backend:{backend}"))
    assert any(seen), "nothing was compared"


if __name__ == "__main__":
    _gpu.main(__file__, outside, work=work)

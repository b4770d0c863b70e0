"""Shared by the Python parts of the GPU suite. A part starts itself again under memstow, with an argument that names
the work to do there."""
import functools, glob, hashlib, os, pathlib, subprocess, sys

import support

MIB = 1 << 20
# Commands have no limit of time. Only the runner ends a part that hangs, and first writes down where the part waits and
# what it printed. A limit here could end the command before the runner has written this down.
support.LIMIT = None


def kept(name, call, *words, **options):
    """Runs a command by `call`, which is support.run, support.memstow or support.track. Any exit status is allowed. The
    output goes to NAME.out and NAME.err as it comes, so that it is there when the part is killed."""
    with open(f"{name}.out", "w+", errors="replace") as out, open(f"{name}.err", "w+", errors="replace") as err:
        done = call(*words, status=None, stdout=out, stderr=err, **options)
        out.seek(0), err.seek(0)
        done.stdout, done.stderr = out.read(), err.read()
    return done


def under_memstow(part, *words, options=(), file="out.mst", status=0, **environment):
    """Runs the part under memstow and returns the completed process. If the part skips, so does this process."""
    done = kept("_".join(words), support.track, support.PYTHON, part, *words, options=options, file=file,
                env={**os.environ, **environment})
    if done.returncode == 77:
        support.skip(done.stdout.strip().split("\n")[-1])
    said = f"{' '.join(words)}: exit status {done.returncode}\n{done.stdout}{done.stderr}"
    assert status in (None, done.returncode), said
    return done


def main(part, outside, **inside):
    """Without arguments, calls outside(). With arguments, as under memstow, calls the function that the first argument
    names."""
    if len(sys.argv) > 1:
        inside[sys.argv[1]](*sys.argv[2:])
    else:
        outside()


def figure(name, number):
    """Prints a line that tests/gpu/run takes into its results."""
    print(f"figure {name} {number}", flush=True)


def keep(*things):
    """Keeps these objects alive until the process ends, so that the report has them."""
    import ctypes
    for thing in things:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def torch_with_cuda():
    """Returns PyTorch, or skips the part."""
    import torch
    if not torch.cuda.is_available():
        support.skip(f"PyTorch {torch.__version__} has no CUDA here")
    return torch


def is_double():
    """Whether the driver is the simulated one, a test double."""
    import ctypes
    cuda, name = ctypes.CDLL("libcuda.so.1"), ctypes.create_string_buffer(200)
    return not cuda.cuInit(0) and not cuda.cuDeviceGetName(name, 200, 0) and b"test double" in name.value


@functools.lru_cache(None)
def library_folders(name):
    """The folders that have this CUDA library: on the search path, in the packages of this Python, or in a usual
    place."""
    code = "import site, sysconfig; print(*site.getsitepackages(), sysconfig.get_paths()['purelib'], sep='\\n')"
    places = subprocess.run([support.PYTHON, "-c", code], capture_output=True, text=True).stdout.split()
    folders = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    folders += [str(pathlib.Path(p).parent) for place in dict.fromkeys(places)
                for p in glob.glob(f"{place}/nvidia/**/lib/{name}", recursive=True)]
    folders += glob.glob("/usr/local/cuda*/lib64") + ["/usr/lib/x86_64-linux-gnu"]
    return [folder for folder in folders if folder and (pathlib.Path(folder) / name).exists()]


def search_path(*names):
    """Returns two things: LD_LIBRARY_PATH with the folders of the libraries that were found, and the names of the
    libraries that were not found."""
    folders = {name: library_folders(name) for name in names}
    path = [p for p in os.environ.get("LD_LIBRARY_PATH", "").split(":")
            if p] + [found[0] for found in folders.values() if found]
    return ":".join(dict.fromkeys(path)), [name for name, found in folders.items() if not found]


def digest(*tensors):
    """A digest of the bytes of tensors, in order."""
    import torch
    total = hashlib.sha256()
    for tensor in tensors:
        total.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return total.hexdigest()

"""Which functions CUDA libraries ask for: by dlsym, and by the driver's resolver. Here the libraries run over the
simulated driver of tests/simcuda, a test double. It writes down the requests to the resolver, and a preloaded dlsym
writes down the requests to dlsym. All requests are compared with preload/cuda/cuda_table.h and NVIDIA's headers. The
requests to the resolver are made again under memstow."""
import os, pathlib, sys

import support, _entries

VERSION = 13050 # of the simulated driver: no library asks for a younger one
RECORDER = r"""
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
typedef void *look(void *, const char *);
void *dlsym(void *library, const char *name) {
    static look *real;
    if (!real) real = (look *)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    if (!real) real = (look *)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    Dl_info caller = {0};
    int file = strncmp(name, "cu", 2) ? -1 : open(getenv("DLSYM_ASKED"), O_WRONLY | O_CREAT | O_APPEND, 0666);
    if (file >= 0 && dladdr(__builtin_return_address(0), &caller)) dprintf(file, "%s %s\n", caller.dli_fname, name);
    if (file >= 0) close(file);
    return real(library, name);
}
"""
# This program asks cuGetProcAddress for each recorded request again. It prints for each answer whether it is a function
# of memstow.
AGAIN = """
import ctypes, sys
class Place(ctypes.Structure):
    _fields_ = [("file", ctypes.c_char_p), ("base", ctypes.c_void_p), ("name", ctypes.c_char_p),
                ("at", ctypes.c_void_p)]
driver, everybody = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL(None)
for line in open(sys.argv[1]):
    name, version, flags = line.rstrip("\\n").split(" ")
    at, status, place = ctypes.c_void_p(), ctypes.c_int(), Place()
    result = driver.cuGetProcAddress_v2(name.encode(), ctypes.byref(at), int(version), ctypes.c_uint64(int(flags)),
                                        ctypes.byref(status))
    known = at.value and everybody.dladdr(at, ctypes.byref(place))
    print(name, version, flags, int(bool(known and place.file.endswith(b"/libmemstow.so"))))
"""


def environment(**more):
    driver = support.BUILD / "tests/simcuda/lib"
    return {**os.environ, "LD_LIBRARY_PATH": str(driver), "SIMCUDA_VERSION": str(VERSION), **more}


class Requests:
    """What one run of a program asked for."""

    def __init__(self, label, resolver, symbols, output):
        self.label, self.resolver, self.symbols, self.output = label, resolver, symbols, output


def recorder():
    library = support.HERE / "recorder.so"
    if not library.exists():
        support.compile(RECORDER, name="recorder.so", flags=("-O1", "-D_GNU_SOURCE", "-shared", "-fPIC", "-ldl"))
    return library


def lines_of(file):
    return [tuple(line.split(" ")) for line in file.read_text().splitlines()] if file.exists() else []


def record(label, *command, files="", status=0, **more):
    """Runs a program over the simulated driver. Requests by dlsym count if they come from a file with `files` in its
    name."""
    resolver, symbols = support.HERE / f"{label}.resolver", support.HERE / f"{label}.symbols"
    done = support.run(*command, status=status, env=environment(
        SIMCUDA_ASKED=str(resolver), DLSYM_ASKED=str(symbols), LD_PRELOAD=str(recorder()), **more))
    asked = {(name, int(version), int(flags), int(found)) for name, version, flags, found in lines_of(resolver)}
    return Requests(label, asked, {name for file, name in lines_of(symbols) if files in pathlib.Path(file).name},
                    done.stdout)


def faults_of_request(entries, name, version, flags, found):
    own = bool(flags & 2)
    if flags not in (0, 1, 2):
        yield f"flags {flags}, which memstow does not know"
    if name not in _entries.bases:
        if _entries.is_about_memory(name) and not _entries.reasons_of(name):
            yield "neither in the table nor with a reason"
        return
    line, known = _entries.meant(name, version, own), entries.get(name, {})
    theirs = max(((v, o) for v, o in known if v <= version and (own or not o)), default=None)
    if line is None and theirs not in (None, (_entries.FIRST, False)):
        yield f"no line, but NVIDIA has one of {theirs}"
    if line is not None and theirs != line and (line[1] != theirs[1] or known.get(line) != known[theirs]):
        yield f"the line of {line} is not NVIDIA's entry of {theirs}"
    if line is not None and found:
        yield "the simulated driver has no such entry"


def faults_of_symbol(name):
    if name not in _entries.names and _entries.is_about_memory(name) and not _entries.reasons_of(name):
        yield "by dlsym: neither in the table nor with a reason"


def hooked(requests):
    """Makes the recorded requests again under memstow. Returns those that memstow answers with a hook."""
    file = support.HERE / f"{requests.label}.asked"
    file.write_text("".join(f"{name} {version} {flags}\n" for name, version, flags, _ in sorted(requests.resolver)))
    done = support.track(sys.executable, "-c", AGAIN, file, env=environment())
    answers = [line.split(" ") for line in done.stdout.splitlines()]
    assert len(answers) == len(requests.resolver), done.stdout
    return {(name, int(version), int(flags)) for name, version, flags, ours in answers if ours == "1"}


def check(requests):
    """Asserts that each request is known to memstow's table, or needs no line in it. memstow answers those that are in
    the table."""
    entries = _entries.versions(_entries.headers()["13.5"])
    faults = [f"{requests.label}: {name} of {version}, flags {flags}: {fault}"
              for name, version, flags, found in sorted(requests.resolver)
              for fault in faults_of_request(entries, name, version, flags, found)]
    faults += [f"{requests.label}: {name}: {fault}" for name in sorted(requests.symbols)
               for fault in faults_of_symbol(name)]
    assert not faults, "\n".join(faults)
    wanted = {(name, version, flags) for name, version, flags, found in requests.resolver
              if not found and _entries.meant(name, version, bool(flags & 2)) is not None}
    answered = hooked(requests)
    assert answered == wanted, f"{requests.label}: hooks for {answered - wanted}, none for {wanted - answered}"
    print(f"{requests.label}: {len(requests.resolver)} requests to the resolver, {len(answered)} of them hooked; "
          f"{len(requests.symbols)} by dlsym")
    return answered

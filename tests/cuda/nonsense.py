# needs: cc
"""A driver, a test double, claims more devices than there can be. memstow asks about no more devices than there can
be."""
import pathlib
from support import HERE, PYTHON, compile, memstow

pathlib.Path("stub.c").write_text(
    "int cuDeviceGetCount(int *n) { *n = 2147483647; return 0; }\n"
    "int asked;\n"
    "int cuDeviceGetAttribute(int *v, int a, int d) { *v = 0; asked++; return 0 * (a + d); }\n")
compile(HERE / "stub.c", "libcuda.so.1", flags=["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1"])
pathlib.Path("program.py").write_text("""
import ctypes, mmap
driver = ctypes.CDLL("./libcuda.so.1")
memstow = ctypes.CDLL(None)
owner = memstow.memstow_owner_open(1, b"model", b"", ctypes.c_uint64(1), ctypes.c_uint64(1))
block = mmap.mmap(-1, 4 << 20)
address = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(block)))
assert memstow.memstow_assign(owner, address, ctypes.c_uint64(4 << 20)) == 0
memstow.memstow_stow(owner)
asked = ctypes.c_int.in_dll(driver, "asked").value
assert 0 < asked <= 1000, asked
""")
memstow("run", "--quiet", "-o", "x.mst", "--", PYTHON, "program.py")

#!/usr/bin/env python3
"""libmemstow.so exports memstow_* and the functions that programs call in place of libc's, the loader's and CUDA's.
libmemstow_cupti.so exports the functions that a driver calls. Both libraries need no other library than libc."""
import re

import support

STANDS_IN_FOR = re.compile(
    r"memstow_\w+|(re|c|m|v|pv|)alloc|malloc|reallocarray|free|cfree|free_sized|free_aligned_sized|memalign|"
    r"posix_memalign|"
    r"aligned_alloc|malloc_usable_size|mmap(64)?|munmap|mremap|madvise|brk|sbrk|v?fork|_Fork|clone|mlock(2|all)?|"
    r"_?_exit|_Exit|quick_exit|"
    r"posix_spawnp?|f?execv\w*|execl\w*|pthread_(create|exit|setname_np)|thrd_exit|dl(m?open|close|v?sym)|"
    r"shmat|shmdt|posix_madvise|"
    r"(__)?open(at)?(64)?(_2)?|creat(64)?|f?open(64)?|tmpfile(64)?|popen|opendir|shm_open|"
    r"memfd_create|mko?stemps?(64)?|"
    r"socket(pair)?|accept4?|(__)?pipe|pipe2|(__)?dup2|dup3?|(__)?fcntl|fcntl64|eventfd|epoll_create1?|"
    r"timerfd_create|signalfd|"
    r"inotify_init1?|fanotify_init|thrd_create|pidfd_(open|getfd)|(posix_)?(openpt|getpt)|openpty|forkpty|"
    r"freopen(64)?|setmntent|"
    r"open_by_handle_at|mq_open|__mq_open_2|"
    r"cublas(SetWorkspace_v2|LtMatmul)|cudaGetError(Name|String)|"
    r"(pkey_)?mprotect|prctl|syscall|_Zn[aw]\w+|_Zd[al]\w+")
OLDEST = 35 # glibc 2.35
NEWER = {"pidfd_open", "pidfd_getfd"} # names of system calls: programs have no functions of their own with these names
TABLE = re.findall(r"^(?:ENTRY|RESOLVER)\(\w+, (\w+),", (support.ROOT / "preload/cuda/cuda_table.h").read_text(), re.M)


CUPTI = support.BUILD / "libmemstow_cupti.so"


def exported(library=support.LIBRARY):
    lines = support.run("nm", "-D", "--defined-only", library).stdout.strip().split("\n")
    return [line.split()[-1].split("@")[0] for line in lines]


def needed(library=support.LIBRARY):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", support.run("readelf", "-dW", library).stdout)


def segments_of(library):
    """Returns the program headers as text, and the size of the library's thread-local storage in bytes. glibc leaves
    little thread-local storage for libraries that are opened later, so this size must be small."""
    text = support.run("readelf", "-lW", library).stdout
    thread_local = re.search(r"^\s*TLS\s+\S+ \S+ \S+ \S+ (0x\w+)", text, re.M)
    return text, int(thread_local[1], 16) if thread_local else 0


def newer():
    """Names that we export and that the oldest supported glibc lacks. A library may have its own function of such a
    name, and would call ours by mistake."""
    libc = support.run("sh", "-c",
                       "nm -D --defined-only $(ldd /bin/sh | sed -n 's/.*libc.so.6 => \\([^ ]*\\).*/\\1/p')").stdout
    found = re.findall(r" (\w+)@@GLIBC_2\.(\d+)", libc)
    assert len(found) > 1000, "libc's symbols were not found"
    return {name for name, minor in found if int(minor) > OLDEST} & set(exported())


assert newer() <= NEWER, f"exported, and not in glibc 2.{OLDEST}: {newer() - NEWER}"
strange = [name for name in exported() if not STANDS_IN_FOR.fullmatch(name) and name not in TABLE]
assert not strange, f"exported, and should not be: {strange}"
for name in ("malloc", "free", "calloc", "realloc", "mmap", "munmap"):
    assert name in exported(), f"{name} is not exported"
missing = sorted(set(TABLE) - set(exported()))
assert len(TABLE) > 100 and not missing, f"entry points of CUDA that are not exported: {missing}"
assert exported(CUPTI) == ["InitializeInjection"], exported(CUPTI)
for library in (support.LIBRARY, CUPTI):
    assert set(needed(library)) <= {"libc.so.6", "ld-linux-x86-64.so.2"}, f"needs more than libc: {needed(library)}"
    segments, size = segments_of(library)
    assert not re.search(r"GNU_STACK.*RWE", segments), "wants an executable stack"
    print(f"{library.name}: {size} bytes a thread")
    assert size <= 1024, f"{size} bytes of static thread-local storage"

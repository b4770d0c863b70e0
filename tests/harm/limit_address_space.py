"""RLIMIT_AS: a program that fits into its limit also fits with memstow, which takes little address space. If the limit
is too tight for the program itself, memory is refused, and nothing else happens."""
import os, resource

import _bad_day, support

MIB = 1 << 20
LOADED = 16 # with less, the loader has no room for the memstow command
os.environ["MALLOC_ARENA_MAX"] = "1" # the number of arenas depends on which thread comes first; each takes 64 MiB
program = _bad_day.program()


def refused(limit, tracked, inside=False):
    argv = [program, f"as={limit}"] if inside else [program]
    options = {} if inside else {"preexec_fn": _bad_day.limit(resource.RLIMIT_AS, limit)}
    if tracked:
        done = support.track(*argv, status=7, **options)
    else:
        done = support.run(*argv, status=7, **options)
    return int(done.stdout.split()[1].rstrip(","))


def fits(limit, **how):
    """How many requests for memory were refused in each of three runs. There are three runs, because threads need a
    different amount of memory in each."""
    return [refused(limit, **how) for _ in range(3)]


enough = next(n for n in range(200, 4000, 50) if not any(fits(n * MIB, tracked=False)))
print(f"alone it needs {enough} MiB")
# A command with sanitizers has no room in a small address space. With sanitizers, only the program sets the limit.
for inside in (True, ) if support.features()["sanitize"] else (False, True):
    assert not any(fits((enough + 80) * MIB, tracked=True, inside=inside)), enough
    assert _bad_day.is_exact(support.report(), program)
    for share in (0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.95):
        support.HERE.joinpath("out.mst").unlink(missing_ok=True)
        lacking = refused(max(int(enough * share), LOADED) * MIB, tracked=True, inside=inside)
        if support.HERE.joinpath("out.mst").exists():
            support.report()
        print(f"at {share:.0%}, {'set inside' if inside else 'set outside'}: {lacking} refusals")

# needs: cc
"""memstow check tells models of one name apart by their files, also at one call site: growth of one model is
reported even if another model of that name shrinks by as much. A baseline that an earlier version of memstow wrote does
not name the files at call sites. In a comparison with such a baseline, models of one name count as one model at each
call site. The verdict says so, but the check does not fail because of it. --update-baseline adds the files."""
import json, pathlib
import support
from support import memstow

MIB = 1 << 20
SOURCE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
typedef int64_t opening(uint32_t, const char *, const char *, uint64_t, uint64_t);
typedef int scope(uint32_t);
static void *kept[2];
__attribute__((noinline)) void *load(size_t n) { return memset(malloc(n), 1, n); }
int main(int argc, char **argv) { /* PROGRAM A B: two models with so many MiB */
    static const char *const files[] = {"/models/a.st", "/models/b.st"};
    opening *open = (opening *)dlsym(RTLD_DEFAULT, "memstow_owner_open");
    scope *enter = (scope *)dlsym(RTLD_DEFAULT, "memstow_scope_enter");
    scope *leave = (scope *)dlsym(RTLD_DEFAULT, "memstow_scope_leave");
    for (int i = 0; i < 2 && i + 1 < argc; i++) {
        uint32_t model = (uint32_t)open(1, "MODEL WAN21", files[i], 0, 0);
        enter(model);
        kept[i] = load((size_t)atoi(argv[i + 1]) << 20);
        leave(model);
    }
    return kept[1] ? 0 : 1;
}
"""
program = support.compile(SOURCE, "prog")
A, B = "model:MODEL WAN21 (a.st)", "model:MODEL WAN21 (b.st)"
SITE = 'at "load@(program)" "main@(program)" of "model:MODEL WAN21"'
TWO = f'site {9 * MIB} 1 {SITE} from "a.st"\nsite {2 * MIB} 1 {SITE} from "b.st"\n'
NOTE = "\nCall sites of models of one name count as one: the baseline lacks the files (--update-baseline).\n"


def check(a, b, *options, baseline="base.txt", status=0):
    """The two models have a and b MiB."""
    return memstow("check", f"--baseline={baseline}", "--runs=1", "--warm-up=0", *options, "--", program, a, b,
                   status=status)


def sites(done):
    """{owner: growth in MiB} of the call sites that changed."""
    return {one["name"].partition(", ")[2]: one["growth_bytes"] / MIB for one in json.loads(done.stdout)["findings"]
            if one["kind"] == "site"}


check(9, 2, "--update-baseline")
text = pathlib.Path("base.txt").read_text()
assert text.startswith("memstow-baseline 3\n") and TWO in text, text
check(9, 2, "--update-baseline")
assert pathlib.Path("base.txt").read_text() == text
check(9, 2, "--fail-over=0,owner:0,site:0")

# One model grew by as much as the other shrank.
done = check(2, 9, "--fail-over=site:5M", "--json", status=1)
assert sites(done) == {A: -7, B: 7}, sites(done)
over = [one for one in json.loads(done.stdout)["findings"] if one["verdict"] == "over"]
assert [one["name_parts"][-2:] for one in over] == [["model:MODEL WAN21", "b.st"]], over
assert f"{B} grew by 7.0 MiB" in " ".join(done.stderr.split()), done.stderr
done = check(2, 9, "--fail-over=site:5M", status=1)
assert B in " ".join(done.stdout.split()) and NOTE not in done.stdout, done.stdout

# A suppression may give the model's name with or without its file. Suppressing the growth of one model does not reduce
# the growth of the other.
for owner, status in (("model:MODEL WAN21", 0), ("MODEL WAN21 (b.st)", 0), ("MODEL WAN21 (a.st)", 1)):
    pathlib.Path("known.txt").write_text(f'owner="{owner}"\n')
    check(2, 9, "--fail-over=owner:5M,site:5M", "--suppressions=known.txt", status=status)
pathlib.Path("known.txt").write_text('function=load owner="MODEL WAN21 (a.st)"\n')
done = check(16, 9, "--fail-over=owner:5M", "--suppressions=known.txt", "--json", status=1)
over = [one["name"] for one in json.loads(done.stdout)["findings"] if one["verdict"] == "over"]
assert over == ["model MODEL WAN21 (b.st)"], over

# An earlier version of memstow wrote one line for a call site of both models, with the sum of their bytes.
earlier = text.replace("baseline 3", "baseline 1").replace(TWO, f"site {11 * MIB} 2 {SITE}\n")
pathlib.Path("earlier.txt").write_text(earlier)
assert NOTE in check(9, 2, "--fail-over=0,owner:0,site:0", baseline="earlier.txt").stdout
done = check(11, 9, "--fail-over=site:8M", "--json", baseline="earlier.txt", status=1)
assert sites(done) == {"model:MODEL WAN21": 9} and json.loads(done.stdout)["origins_left_out"] is True, done.stdout
assert json.loads(check(9, 2, "--fail-over=site:1M", "--json").stdout)["origins_left_out"] is False
check(9, 2, "--update-baseline", baseline="earlier.txt")
assert pathlib.Path("earlier.txt").read_text() == text

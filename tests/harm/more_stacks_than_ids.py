# needs: cc stacks
# timeout: 300
"""A program has more call stacks than there are ids, and memory is not short. Stacks without live blocks give their ids
to new stacks in time."""
import support

STACKS, IDS = 2_600_000, 1 << 21 # IDS: SITE_LIMIT of preload/count/site.h
program = support.compile(rf'''
#include <stdlib.h>
__attribute__((noinline)) static void walk(int depth, unsigned long path) {{
    if (!depth) {{
        free(malloc(path % 7 + 1));
        return;
    }}
    switch (path & 3) {{ /* four places that call */
    case 0: walk(depth - 1, path >> 2); __asm__ volatile("# 0" ::: "memory"); break;
    case 1: walk(depth - 1, path >> 2); __asm__ volatile("# 1" ::: "memory"); break;
    case 2: walk(depth - 1, path >> 2); __asm__ volatile("# 2" ::: "memory"); break;
    case 3: walk(depth - 1, path >> 2); __asm__ volatile("# 3" ::: "memory"); break;
    }}
}}
int main(void) {{
    for (unsigned long path = 0; path < {STACKS}; path++) walk(11, path);
    return 3;
}}
''', "stacks", flags=("-w", "-O1", "-fno-builtin", "-fno-optimize-sibling-calls"))
assert f"SITE_LIMIT = 1 << {IDS.bit_length() - 1} " in (support.ROOT / "preload/count/site.h").read_text()
support.track(program, status=3, options=["--stack-memory=2G"], timeout=240)
report = support.report()
assert report["lost"]["sites"] == report["lost"]["stacks"] == 0 and report["lost"]["folded"] > 0, report["lost"]
assert report["totals"]["host"]["allocated_blocks"] >= STACKS > IDS, report["totals"]

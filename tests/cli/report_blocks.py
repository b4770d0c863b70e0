# needs: cc stacks
"""The table of the largest blocks has one row for all blocks of the same site and size. The row names the first
function outside of the allocator."""
import re
from support import HERE, compile, memstow, track

(HERE / "big.cc").write_text("""
#include <cstdlib>
#include <unistd.h>
#include <vector>
static std::vector<char *> all;
__attribute__((noinline)) void keep_each() {
    for (int i = 0; i < 100; i++) all.push_back(new char[1 << 20]);
}
__attribute__((noinline)) void keep_one() {
    all.push_back(new char[3 << 20]);
}
int main() {
    keep_each();
    keep_one();
    _exit(0);
}
""")
track(compile(HERE / "big.cc", "big"))
text = memstow("report", "out.mst").stdout
rows = text[text.index("\nLargest blocks of 64 KiB and more, and mappings ("):].split("\n")[2:]
assert re.fullmatch(r" +size +age  kind       from", rows[0]), rows
assert re.fullmatch(r" +3\.0 MiB +\S+ s  block      keep_one\S*  big\.cc:10", rows[1]), rows
assert re.fullmatch(r" +100 × 1\.0 MiB +\S+ s  block      keep_each\S*  big\.cc:7", rows[2]), rows

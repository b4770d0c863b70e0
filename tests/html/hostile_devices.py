# needs: cc deb:chromium deb:chromium-driver pip:selenium==4.51.0
# timeout: 200
"""The tables of CUDA memory in a file contradict one another, or a mapping has a kind that does not exist. The page
shows what it can. It has the blocks on devices only if the process used CUDA. Each of these blocks is shown with its
own site, even if its device has an impossible number. Nothing fails in the browser. In a build with AddressSanitizer,
the test also notices each read outside of a table."""
import support
from _page import Browser, Data, report

MAKE = """
#include "tests/unit/builder.h"
#include <stdio.h>
enum { SITES = 200 };
/* make FILE USED DEVICE KIND: blocks on a device, each of a site of its own; a mapping of the kind, if it is not 0.
 * USED 0: the section that says that CUDA was used is missing. */
int main(int count, char **words) {
    static struct snap_tag tags[SITES + 1];
    static struct snap_owner owners[SITES];
    static struct snap_cuda_site sites[SITES];
    static struct snap_cuda_block blocks[SITES];
    if (count < 5) return 2;
    struct builder b;
    struct snap_site host[] = {{0}, {0}, snap_site(0, 0, 2)};
    struct snap_cuda head = {.live = 1000, .peak = 5000};
    struct snap_mapping mapping = {
        .kind = (uint32_t)atol(words[4]), .address = 0x7000000, .length = 1 << 20, .birth_ns = 5, .site = 2};
    for (uint32_t i = 0; i < SITES; i++) {
        owners[i] = (struct snap_owner){.id = i + 1, .kind = SNAP_OWNER_MODEL, .state = SNAP_OWNER_LIVE};
        tags[i + 1].model = i + 1;
    }
    for (uint32_t i = 1; i < SITES; i++) {
        sites[i] = (struct snap_cuda_site){.kind = 1, .site = 2, .tag = i, .counter = {100000 + i, 1, 0, 0}};
        blocks[i] = (struct snap_cuda_block){.state = SNAP_CUDA_LIVE, .kind = 1, .device = (uint16_t)atol(words[3]),
                                             .address = 0x10000000ull * i, .size = 100000 + i, .birth_ns = i,
                                             .count = i};
    }
    builder_begin(&b, SNAP_LEDGER);
    builder_modules(&b);
    builder_section(&b, SNAP_SITE, sizeof *host, host, 3, 0);
    builder_section(&b, SNAP_OWNER, sizeof *owners, owners, SITES, 0);
    builder_section(&b, SNAP_TAG, sizeof *tags, tags, SITES + 1, 0);
    builder_counter(&b, 2, 2, (struct snap_counter){1 << 20, 1, 0, 0});
    if (atol(words[2])) builder_section(&b, SNAP_CUDA, sizeof head, &head, 1, 0);
    builder_section(&b, SNAP_CUDA_SITE, sizeof *sites, sites, SITES, 0);
    builder_section(&b, SNAP_CUDA_BLOCK, sizeof *blocks, blocks, SITES, 0);
    if (mapping.kind) builder_section(&b, SNAP_MAPPING, sizeof mapping, &mapping, 1, 0);
    FILE *to = fopen(words[1], "wb");
    return !to || fwrite(b.bytes, 1, b.size, to) != b.size || fclose(to);
}
"""
SITES = 199 # with a block each
(support.HERE / "make.c").write_text(MAKE)
support.run("cc", "-O1", "-w", f"-I{support.ROOT}", f"-I{support.ROOT / 'include'}", "make.c", "-o", "make")
browser = Browser()


def pages(file, used, device, kind):
    """The pages of a report of the file and of its comparison with itself."""
    support.run("./make", file, used, device, kind)
    yield report(file)
    support.memstow("diff", file, file, "--html", "-o", "diff.html")
    yield "diff.html"


def kinds(page):
    """The kinds of blocks in the view of blocks. Fails if the browser complains about the view."""
    browser.open(page, "#blocks?sort=size")
    heads = [head.text for head in browser.all(".rows th")]
    shown = {row[heads.index("Kind")] for row in browser.rows()}
    browser.is_clean()
    return shown


def own_rows(page):
    """Whether each block on a device leads to the right row of the sites. In a report, each of these blocks has a site
    of its own: a row with as many bytes as the block. In a comparison, their sites are one row, because their models
    have no names. This row has the bytes of all these blocks."""
    columns = Data(page).columns
    sizes = columns.get("blocks.size") or columns["blocks.after_size"]
    figures = columns.get("sites.live_bytes") or columns["sites.after_bytes"]
    pairs = [(size, figures[site - 1]) for size, site, device in zip(sizes, columns["blocks.site"],
                                                                     columns["blocks.device"]) if device]
    assert len(pairs) == SITES and all(site and site <= len(figures) for site in columns["blocks.site"])
    everything = sum(size for size, _ in pairs)
    return all(held == (size if "blocks.size" in columns else everything) for size, held in pairs)


for page in pages("fits.mst", 1, 0, 1):
    assert own_rows(page) and kinds(page) == {"anonymous", "device 0"}, page
for page in pages("far.mst", 1, 65535, 1):
    assert own_rows(page) and kinds(page) == {"anonymous", "device 65535"}, page
for page in pages("unused.mst", 0, 0, 1):
    assert "blocks.device" not in Data(page).columns and kinds(page) == {"anonymous"}, page
for kind in (8, 20, 137, 2**31):
    for used in (0, 1):
        for page in pages("kind.mst", used, 0, kind):
            assert kinds(page) <= {"mapping", "device 0"} and (used or kinds(page) == {"mapping"}), (kind, page)

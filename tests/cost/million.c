/* million FILE SITES BLOCKS_EACH [BUSY]: a process whose ledger has this many sites, with BLOCKS_EACH live blocks each.
 * It makes the ledger with the library's own parts, without the hooks. It prints "ready" and waits to be killed. With
 * BUSY, ten times a second, BUSY of the sites get one more block each. These sites are spread over all sites. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "preload/count/account.h"
#include "preload/blocks/blocks.h"
#include "preload/ledger/ledger.h"
#include "preload/count/site.h"

int main(int count, char **arguments) {
    if (count != 4 && count != 5) return 2;
    struct ledger_identity identity = {.path = arguments[1],
                                       .name = "million",
                                       .exe = arguments[0],
                                       .command = "million",
                                       .stacks = SNAP_STACKS_MODULE};
    if (!ledger_begin(&identity)) return 1;
    account_begin();
    site_begin(SNAP_STACKS_NONE, UINT64_MAX, arguments[0]);
    blocks_open_ledger();
    for (long i = 0, sites = atol(arguments[2]); i < sites; i++) {
        uint32_t site = site_new(0, (uint32_t)(i + 1), 0);
        for (long k = 0, blocks = atol(arguments[3]); k < blocks; k++)
            account_alloc(site, (uint64_t)(i * 7 + k) % 5000 + 1);
    }
    puts("ready");
    fflush(stdout);
    long busy = count == 5 ? atol(arguments[4]) : 0, sites = atol(arguments[2]), next = 0;
    while (busy > 0) {
        for (long i = 0; i < busy; i++, next = (next + sites / busy + 1) % sites)
            account_alloc(SNAP_SITE_FIRST + (uint32_t)next, 64);
        usleep(100000);
    }
    pause();
    return 0;
}

/* misuse_report.c — reports the faults that misuse.c found.
 * In: the facts about a pointer, and the call that it was passed to. Out: a record in the ledger for the first
 * SNAP_MISUSES faults of a process; for the first LINES_MOST of them also a line on standard error, where glibc's own
 * message goes. It must not allocate, nor wait long. */
#include "preload/life/misuse.h"

#include <link.h>
#include <string.h>

#include "preload/blocks/gone.h"
#include "preload/ledger/ledger.h"
#include "preload/shared/os.h"
#include "preload/count/misuse_records.h"
#include "preload/count/site.h"
#include "preload/base/notice.h"
#include "preload/base/symbol.h"
#include "preload/base/seal.h"
#include "preload/stacks/module.h"
#include "preload/count/thread.h"

enum { LINES_MOST = 8 };

/* --- the line on standard error --- */

static void put_hex(struct notice *self, uint64_t number) {
    char text[17];
    os_hexadecimal(text, number);
    notice_put(self, "0x");
    notice_put(self, text);
}

/* Writes `what`, then the name of the file that has the code at the address, then the code's place in that file, as
 * addr2line takes it. Writes nothing for address 0. */
static void put_address(struct notice *self, const char *what, uintptr_t address) {
    struct dl_find_object object;
    if (!address) return;
    notice_put(self, what);
    if (_dl_find_object((void *)address, &object) || !object.dlfo_link_map) {
        put_hex(self, address);
        return;
    }
    const char *path = module_path(object.dlfo_link_map), *slash = strrchr(path, '/');
    notice_put(self, slash ? slash + 1 : path);
    notice_put(self, "+");
    put_hex(self, address - object.dlfo_link_map->l_addr);
}

static void put_size(struct notice *self, uint64_t size) {
    if (size == MISUSE_UNKNOWN) return;
    notice_number(self, size);
    notice_put(self, size == 1 ? " byte " : " bytes ");
}

static const char *what_of(const struct snap_misuse *record) {
    if (record->kind == SNAP_MISUSE_DAMAGED) return "header of a block overwritten: ";
    return record->call == SNAP_MISUSE_REALLOC ? "realloc of a freed block: " : "block freed twice: ";
}

static void write_line(const struct snap_misuse *record, uintptr_t allocated, uintptr_t freed, uintptr_t now) {
    struct notice line;
    bool again = record->kind == SNAP_MISUSE_FREED && record->call == SNAP_MISUSE_FREE;
    notice_begin(&line);
    notice_put(&line, what_of(record));
    put_size(&line, record->size);
    notice_put(&line, "at ");
    put_hex(&line, record->address);
    put_address(&line, ", allocated by ", allocated);
    put_address(&line, ", first freed by ", freed);
    put_address(&line, again ? ", freed again by " : ", found when passed to free or realloc by ", now);
    if (record->call == SNAP_MISUSE_END) notice_put(&line, ", found at the end of the process");
    if (*ledger_path()) {
        notice_put(&line, "; stacks: memstow report ");
        notice_put(&line, ledger_path());
    }
    notice_write(&line);
}

static bool is_known(uint32_t site) { return site >= SNAP_SITE_FIRST && site != sample_here && site < site_count(); }

/* Returns the return address of the call that freed the block first, or 0 if the address is not known or its module is
 * not loaded any more. */
static uintptr_t first_free(const struct misuse *misuse) {
    if (misuse->freed > UINT32_MAX) return module_at(misuse->freed) ? misuse->freed : 0;
    return misuse->freed ? module_code((uint32_t)misuse->freed) : 0;
}

void misuse_report(uintptr_t p, const struct misuse *misuse, enum snap_misuse_call call, struct caller caller) {
    uint32_t number = misuse_records_next();
    if (!ledger_is_ours() || number >= SNAP_MISUSES) return;
    uint32_t site = is_known(misuse->site) ? misuse->site : SNAP_SITE_UNKNOWN;
    /* site_of_call records the modules of the stack, and first_free looks among the recorded modules. So site_of_call
     * comes first. */
    uint32_t now = caller.slot ? site_of_call(caller) : SNAP_SITE_UNKNOWN;
    uintptr_t freed = first_free(misuse);
    struct snap_misuse record = {.kind = misuse->kind,
                                 .call = (uint16_t)call,
                                 .address = p,
                                 .size = misuse->size,
                                 .time_ns = os_now(),
                                 .thread = thread_slot()};
    if (misuse->harmless) record.flags |= SNAP_MISUSE_HARMLESS;
    if (site && misuse->kind == SNAP_MISUSE_FREED && site_free_count()) record.flags |= SNAP_MISUSE_UNSURE;
    if (site) site_keep(site);
    record.sites[SNAP_MISUSE_ALLOCATED].site = site;
    record.sites[SNAP_MISUSE_FREED_FIRST].site = freed ? site_of_address(freed) : SNAP_SITE_UNKNOWN;
    record.sites[SNAP_MISUSE_NOW].site = now;
    misuse_records_write(number, &record);
    if (number < LINES_MOST && !seal_is_set())
        write_line(&record, site ? site_caller(site, symbol_is_in_libc) : 0, freed, caller.address);
}

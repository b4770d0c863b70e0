// Of a retired owner's heap little stays when a few of its blocks live on, as a log line does that was made while a model was
// loaded: the free page that mimalloc keeps of each size goes, whoever frees what was in it, at once or one by one.
// run:
// needs: mimalloc
#include "abi.h"
#include "expect.h"

#include <pthread.h>
#include <stdbool.h>

enum { OWNERS = 100, SIZES = 48, EACH = 8, SURVIVORS = 2, LIMIT_KB = OWNERS * 64 };
static void *blocks[SIZES][EACH];

static long resident_kb(void) {
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    MUST(file && fscanf(file, "%*d %ld", &pages) == 1);
    fclose(file);
    return pages * 4;
}

/* All but the last two of some small size. */
static void *drop(void *unused) {
    for (int size = 0; size < SIZES; size++)
        for (int i = 0; i < EACH; i++)
            if (size != 3 || i < EACH - SURVIVORS) free(blocks[size][i]);
    return unused;
}

static void live_and_go(uint64_t key, bool retired_first, bool by_another_thread) {
    uint32_t owner = (uint32_t)CALL(1, memstow_owner_open, MEMSTOW_MODEL, "model", "test", key, 0);
    CALL(0, memstow_scope_enter, owner);
    for (int i = 0; i < EACH; i++)
        for (int size = 0; size < SIZES; size++) {
            size_t length = ((size_t)size + 1) * 200;
            MUST(blocks[size][i] = malloc(length));
            memset(blocks[size][i], 1, length);
        }
    CALL(0, memstow_scope_leave, owner);
    if (retired_first) CALL(0, memstow_owner_retire, owner);
    pthread_t thread;
    if (by_another_thread) {
        MUST(!pthread_create(&thread, NULL, drop, NULL));
        MUST(!pthread_join(thread, NULL));
    } else
        drop(NULL);
    if (!retired_first) CALL(0, memstow_owner_retire, owner);
}

int main(void) {
    uint64_t key = 1;
    bool over = false;
    abi_find();
    for (int way = 0; way < 4; way++) {
        live_and_go(key++, way & 1, way & 2);
        long before = resident_kb();
        for (int i = 0; i < OWNERS; i++)
            live_and_go(key++, way & 1, way & 2);
        long grown = resident_kb() - before;
        if (grown <= LIMIT_KB) continue;
        say("way %d: %ld KiB stay of each owner", way, grown / OWNERS);
        over = true;
    }
    MUST(!over);
    say("ok");
    return 0;
}

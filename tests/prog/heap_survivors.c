// If a few blocks of a retired owner live on, such as a log line that was made while a model was loaded, only little of
// the owner's heap stays resident. mimalloc keeps a free page for each size of blocks, and memstow gives these pages
// back. The other blocks are freed by the same thread or by another one, before or after the owner is retired. The
// blocks that live on are unchanged.
// run:
// run: --stacks=none
// needs: mimalloc
#include "abi.h"
#include "expect.h"
#include "resident.h"

#include <pthread.h>
#include <stdbool.h>

enum { OWNERS = 100, WAYS = 4, SIZES = 48, EACH = 8, SURVIVING_SIZE = 3, SURVIVORS = 2, LIMIT_KB = 64 };
enum { TOGETHER = 20, TOGETHER_KB = 200 };
struct blocks {
    unsigned char *at[SIZES][EACH];
};
static struct blocks made[1 + WAYS * (OWNERS + 1) + TOGETHER];

static size_t length(int size) { return ((size_t)size + 1) * 200; }
static bool survives(int size, int i) { return size == SURVIVING_SIZE && i >= EACH - SURVIVORS; }

/* Opens an owner, allocates blocks for it, and fills them with the lowest byte of `number`. */
static uint32_t live(uint32_t number) {
    uint32_t owner = (uint32_t)CALL(1, memstow_owner_open, MEMSTOW_MODEL, "model", "test", number, 0);
    CALL(0, memstow_scope_enter, owner);
    for (int i = 0; i < EACH; i++)
        for (int size = 0; size < SIZES; size++) {
            unsigned char *p = made[number].at[size][i] = malloc(length(size));
            MUST(p);
            memset(p, (int)(number & 255), length(size));
        }
    CALL(0, memstow_scope_leave, owner);
    return owner;
}

static void *drop(void *blocks) {
    for (int size = 0; size < SIZES; size++)
        for (int i = 0; i < EACH; i++)
            if (!survives(size, i)) free(((struct blocks *)blocks)->at[size][i]);
    return NULL;
}

static void drop_in_another_thread(uint32_t number) {
    pthread_t thread;
    MUST(!pthread_create(&thread, NULL, drop, &made[number]) && !pthread_join(thread, NULL));
}

static void live_and_go(uint32_t number, bool retired_first, bool in_another_thread) {
    uint32_t owner = live(number);
    if (retired_first) CALL(0, memstow_owner_retire, owner);
    if (in_another_thread)
        drop_in_another_thread(number);
    else
        drop(&made[number]);
    if (!retired_first) CALL(0, memstow_owner_retire, owner);
}

/* Retires owners, lets another thread free their memory, and calls memstow_trigger. No heap is made between the frees
 * and the trigger. Returns how many kilobytes were given back. */
static long given_back_by_a_trigger(uint32_t first) {
    for (uint32_t i = first; i < first + TOGETHER; i++) {
        uint32_t owner = live(i);
        CALL(0, memstow_owner_retire, owner);
    }
    for (uint32_t i = first; i < first + TOGETHER; i++) drop_in_another_thread(i);
    long before = (long)(resident() / 1024);
    if (has_memstow) {
        __typeof__(memstow_trigger) *trigger = (__typeof__(trigger))dlsym(RTLD_DEFAULT, "memstow_trigger");
        MUST(trigger(MEMSTOW_REQUEST, "") >= 0);
    }
    return before - (long)(resident() / 1024);
}

int main(void) {
    uint32_t number = 1;
    abi_find();
    for (int way = 0; way < WAYS; way++) {
        live_and_go(number++, way & 1, way & 2);
        long before = (long)(resident() / 1024);
        for (int i = 0; i < OWNERS; i++) live_and_go(number++, way & 1, way & 2);
        long grown = (long)(resident() / 1024) - before;
        if (grown > OWNERS * LIMIT_KB) say("way %d: %ld KiB stay of each owner", way, grown / OWNERS);
        MUST(grown <= OWNERS * LIMIT_KB);
    }
    long given = given_back_by_a_trigger(number);
    if (has_memstow && given < TOGETHER * TOGETHER_KB) say("a trigger gives back %ld KiB of each", given / TOGETHER);
    MUST(!has_memstow || given >= TOGETHER * TOGETHER_KB);
    for (uint32_t n = 1; n < number + TOGETHER; n++)
        for (int i = EACH - SURVIVORS; i < EACH; i++)
            for (size_t k = 0; k < length(SURVIVING_SIZE); k++) MUST(made[n].at[SURVIVING_SIZE][i][k] == (n & 255));
    say("ok");
    return 0;
}

// Invalid arguments: each call refuses them, changes nothing, and keeps errno.
#include "abi.h"
#include "expect.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>

static void *const bad[] = {
    NULL, (void *)1, (void *)0x10, (void *)-1, (void *)0xdead00000000beef, (void *)0x7fff00000008};

static void refuse(int64_t result) {
    MUST(result < 0);
    MUST(*abi_memstow_error());
    MUST(errno == 1234);
}

static void owners(uint32_t model, uint32_t node) {
    for (uint32_t kind = 0; kind < 8; kind++)
        if (kind != MEMSTOW_MODEL && kind != MEMSTOW_NODE && kind != MEMSTOW_CUSTOM)
            refuse(abi_memstow_owner_open(kind, "x", "", 0, 0));
    for (size_t i = 1; i < sizeof bad / sizeof *bad; i++) {
        refuse(abi_memstow_owner_open(MEMSTOW_MODEL, bad[i], "", 0, 0));
        refuse(abi_memstow_owner_open(MEMSTOW_MODEL, "", bad[i], 0, 0));
        refuse(abi_memstow_run_begin(bad[i]));
        refuse(abi_memstow_owner_figures(model, bad[i]));
        refuse(abi_memstow_scope_swap(bad[i], NULL));
        refuse(abi_memstow_scope_swap(NULL, bad[i]));
        refuse(abi_memstow_scope_save(bad[i]));
        refuse(abi_memstow_assign(model, bad[i], 16));
        refuse(abi_memstow_release_range(bad[i], UINT64_MAX));
    }
    const uint32_t none[] = {0, 77, 1u << 20, UINT32_MAX};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        refuse(abi_memstow_owner_adopt(none[i], model));
        refuse(abi_memstow_owner_adopt(model, none[i]));
        refuse(abi_memstow_owner_retire(none[i]));
        refuse(abi_memstow_owner_policy(none[i], MEMSTOW_KEEP, 0));
        refuse(abi_memstow_owner_idle(none[i], 1));
        refuse(abi_memstow_owner_discard(none[i], 1));
        refuse(abi_memstow_scope_enter(none[i]));
        refuse(abi_memstow_load_begin(none[i]));
        refuse(abi_memstow_scope_leave(none[i]));
        refuse(abi_memstow_run_end(none[i], MEMSTOW_OK));
    }
    refuse(abi_memstow_owner_adopt(model, model));
    refuse(abi_memstow_owner_adopt(model, node));
    refuse(abi_memstow_owner_adopt(node, model));
    refuse(abi_memstow_owner_policy(model, 4, 0));
    refuse(abi_memstow_owner_policy(node, MEMSTOW_FREE, 0));
    refuse(abi_memstow_owner_idle(model, 2));
    refuse(abi_memstow_owner_discard(model, 2));
    refuse(abi_memstow_owner_discard(node, 1));
}

static void scopes(uint32_t model, uint32_t other, uint32_t node) {
    refuse(abi_memstow_load_begin(node));
    refuse(abi_memstow_load_end());
    refuse(abi_memstow_scope_leave(model));
    MUST(abi_memstow_scope_enter(model) == 0);
    MUST(abi_memstow_scope_enter(other) == 0);
    refuse(abi_memstow_scope_leave(model)); /* not the innermost */
    refuse(abi_memstow_scope_leave(node));
    for (int i = 2; i < MEMSTOW_SCOPES; i++) MUST(abi_memstow_scope_enter(node) == 0);
    refuse(abi_memstow_scope_enter(node));
    struct memstow_scopes full = {.size = sizeof full}, wrong = {.size = sizeof wrong, .count = MEMSTOW_SCOPES + 1};
    MUST(abi_memstow_scope_swap(NULL, &full) == 0);
    MUST(full.count == MEMSTOW_SCOPES && full.owners[0] == model && full.owners[1] == other);
    refuse(abi_memstow_scope_leave(node));
    refuse(abi_memstow_scope_swap(&wrong, NULL));
    wrong = (struct memstow_scopes){.size = 4};
    MUST(abi_memstow_scope_swap(&wrong, NULL) == -EINVAL && strstr(abi_memstow_error(), "size"));
    MUST(abi_memstow_scope_swap(NULL, &wrong) == -EINVAL && abi_memstow_scope_save(&wrong) == -EINVAL);
    MUST(abi_memstow_owner_figures(model, &(struct memstow_figures){.size = 3}) == -EINVAL);
    wrong = (struct memstow_scopes){.size = sizeof wrong, .count = 1, .owners = {4711}};
    refuse(abi_memstow_scope_swap(&wrong, NULL));
    MUST(abi_memstow_scope_swap(&full, &full) == 0 && full.count == 0);
    for (int i = 2; i < MEMSTOW_SCOPES; i++) MUST(abi_memstow_scope_leave(node) == 0);
    MUST(abi_memstow_scope_leave(other) == 0 && abi_memstow_scope_leave(model) == 0);
    refuse(abi_memstow_scope_leave(model));
}

/* A text whose end is the last byte of the memory is accepted. A text that has no end in the memory is refused. */
static void texts_at_the_border(void) {
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(pages != MAP_FAILED && munmap(pages + 4096, 4096) == 0);
    memset(pages, 'x', 4096);
    refuse(abi_memstow_owner_open(MEMSTOW_MODEL, pages + 4090, "", 0, 0));
    pages[4095] = 0;
    MUST(abi_memstow_owner_open(MEMSTOW_MODEL, pages + 4090, "", 0, 0) > 0);
    munmap(pages, 4096);
}

int main(void) {
    abi_find();
    if (has_memstow) {
        errno = 1234;
        uint32_t model = (uint32_t)abi_memstow_owner_open(MEMSTOW_MODEL, "model", NULL, 1, 1);
        uint32_t other = (uint32_t)abi_memstow_owner_open(MEMSTOW_MODEL, "other", "", 2, 1);
        uint32_t node = (uint32_t)abi_memstow_owner_open(MEMSTOW_NODE, "node", "", 1, 1);
        MUST(model && other && node && model != node);
        MUST(abi_memstow_owner_open(MEMSTOW_MODEL, "", "", 0, 0) !=
             abi_memstow_owner_open(MEMSTOW_MODEL, "", "", 0, 0));
        owners(model, node);
        scopes(model, other, node);
        texts_at_the_border();
        MUST(abi_memstow_owner_retire(model) == 0 && abi_memstow_owner_retire(model) == 0);
        MUST(abi_memstow_owner_open(MEMSTOW_MODEL, "again", NULL, 1, 1) != model);
        MUST(abi_memstow_run_begin(NULL) > 0);
        MUST(errno == 1234);
    }
    EXPECT("owners[name=model].live_bytes", 0);
    return 0;
}

/* Pinned memory that a block gives up is kept in a list as long as the device may write to it. If another thread holds
 * the list's lock for a long time, for example because a busy machine lets that thread wait, vram_backup_leave waits,
 * too, and then enters the memory. The driver is a test double of a few functions. */
#include <criterion/criterion.h>
#include <pthread.h>

#include "preload/vram/vram_backup.c"

enum { BYTES = 2 << 20, MANY = 200 };

static int get_current(cuda_handle *context) {
    *context = NULL;
    return 0;
}
static int set_current(cuda_handle context) { return context == NULL; }
static int exchange_mode(int *mode) { return *mode = 0; }
static int register_memory(void *at, size_t bytes, unsigned flags) { return !at || bytes % BYTES || !flags; }
static int unregister(void *at) { return at == NULL; }

static const struct vram_driver driver = {.cuCtxGetCurrent = get_current,
                                          .cuCtxSetCurrent = set_current,
                                          .cuThreadExchangeStreamCaptureMode = exchange_mode,
                                          .cuMemHostRegister_v2 = register_memory,
                                          .cuMemHostUnregister = unregister};

static const struct vram_limits limits = {.pinned = MANY * (uint64_t)BYTES};

static pthread_barrier_t list_is_taken;

/* Holds the list's lock until the other thread, which waits for it with lock_wait, has given up. */
static void *stand_still(void *unused) {
    cr_assert(lock_try(&busy));
    uint32_t before = lock_given_up();
    pthread_barrier_wait(&list_is_taken);
    while (lock_given_up() == before) os_call(SYS_sched_yield);
    lock_let_go(&busy);
    return unused;
}

/* Returns a block whose content is in pinned memory. */
static struct vram_block pinned_block(void) {
    struct vram_block block = {.size = BYTES, .context = &list_is_taken};
    cr_assert(vram_backup_make(&driver, &block, &limits, BYTES));
    cr_assert_eq(block.backup_kind, VRAM_PINNED);
    return block;
}

Test(vram_backup, memory_to_which_the_device_may_write_is_not_lost) {
    pthread_t thread;
    struct vram_block block = pinned_block();
    const char *at = block.backup;
    pthread_barrier_init(&list_is_taken, NULL, 2);
    cr_assert_eq(pthread_create(&thread, NULL, stand_still, NULL), 0);
    pthread_barrier_wait(&list_is_taken);
    vram_backup_leave(&block);
    pthread_join(thread, NULL);
    cr_assert_eq(vram_backup_bytes(VRAM_BACKUP_KINDS), BYTES, "the device may still write to it");
    cr_assert_neq(pinned_block().backup, at, "so nobody else gets it");
    vram_backup_collect();
    cr_assert_eq(vram_backup_bytes(VRAM_BACKUP_KINDS), BYTES);
    cr_assert_eq(pinned_block().backup, at);
}

Test(vram_backup, as_much_as_a_device_may_write_to_is_kept) {
    for (int i = 0; i < MANY; i++) {
        struct vram_block block = pinned_block();
        vram_backup_leave(&block);
        cr_assert_eq(vram_backup_bytes(VRAM_PINNED), (i + 1) * (uint64_t)BYTES);
    }
    vram_backup_collect();
    cr_assert_eq(vram_backup_bytes(VRAM_BACKUP_KINDS), 0);
}

/* A block has dropped its place on the host. Its next move may fail before the block has a new place. */
Test(vram_backup, a_block_without_a_place_has_none_to_give_up) {
    struct vram_block block = pinned_block();
    vram_backup_drop(&block);
    cr_assert_eq(block.backup_kind, VRAM_PINNED, "the kind of its last place");
    vram_backup_leave(&block);
    vram_backup_collect();
    cr_assert_eq(vram_backup_bytes(VRAM_BACKUP_KINDS), 0);
}

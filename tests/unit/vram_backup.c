/* Pinned memory that the driver does not unpin at once is kept until it does, however long another thread has the list
 * of such memory: a thread that stands still on a busy machine. The driver is a test double of a few functions. */
#include <criterion/criterion.h>
#include <pthread.h>

#include "preload/vram/vram_backup.c"

enum { BYTES = 2 << 20, REFUSED = 719 };

static int unregister_error;

static int get_current(cuda_handle *context) {
    *context = NULL;
    return 0;
}
static int set_current(cuda_handle context) { return context != NULL; }
static int exchange_mode(int *mode) { return *mode = 0; }
static int register_memory(void *at, size_t bytes, unsigned flags) {
    return !at || bytes != BYTES || flags != PORTABLE;
}
static int unregister(void *at) { return at ? unregister_error : REFUSED; }

static const struct vram_driver driver = {.cuCtxGetCurrent = get_current,
                                          .cuCtxSetCurrent = set_current,
                                          .cuThreadExchangeStreamCaptureMode = exchange_mode,
                                          .cuMemHostRegister_v2 = register_memory,
                                          .cuMemHostUnregister = unregister};

static pthread_barrier_t list_is_taken;

/* Has the list until the other thread has waited for it for as long as lock_wait does. */
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
    struct vram_block block = {.size = BYTES};
    cr_assert(vram_backup_make(&driver, &block, &(struct vram_limits){.pinned = BYTES}));
    cr_assert_eq(block.backup_kind, VRAM_PINNED);
    return block;
}

static void drop_beside_a_thread_that_stands_still(void (*drop)(struct vram_block *)) {
    pthread_t thread;
    struct vram_block block = pinned_block();
    pthread_barrier_init(&list_is_taken, NULL, 2);
    cr_assert_eq(pthread_create(&thread, NULL, stand_still, NULL), 0);
    pthread_barrier_wait(&list_is_taken);
    drop(&block);
    pthread_join(thread, NULL);
    cr_assert_eq(vram_backup_bytes(VRAM_BACKUP_KINDS), BYTES, "the driver still has it");
    unregister_error = 0;
    vram_backup_collect(&driver);
    cr_assert_eq(vram_backup_bytes(VRAM_BACKUP_KINDS), 0, "nothing knows of this memory any more");
}

static void drop_in_vain(struct vram_block *block) {
    unregister_error = REFUSED;
    vram_backup_drop(&driver, block);
}

Test(vram_backup, memory_that_the_driver_did_not_unpin_is_not_lost) {
    drop_beside_a_thread_that_stands_still(drop_in_vain);
}

Test(vram_backup, memory_to_which_the_device_may_write_is_not_lost) {
    drop_beside_a_thread_that_stands_still(vram_backup_leave);
}

/* The driver goes on to refuse this one. */
static void *stuck;
static int unregister_others(void *at) { return at == stuck ? REFUSED : 0; }

Test(vram_backup, as_much_as_the_driver_does_not_unpin_is_kept) {
    enum { MANY = 200 };
    struct vram_driver other = driver;
    struct vram_block block;
    for (int i = 0; i < MANY; i++) {
        block = (struct vram_block){.size = BYTES};
        cr_assert(vram_backup_make(&driver, &block, &(struct vram_limits){.pinned = MANY * (uint64_t)BYTES}));
        if (i == MANY - 1) stuck = block.backup;
        vram_backup_leave(&block);
    }
    other.cuMemHostUnregister = unregister_others;
    vram_backup_collect(&other);
    cr_assert_eq(vram_backup_bytes(VRAM_BACKUP_KINDS), BYTES, "only one is refused");
    vram_backup_collect(&driver);
    cr_assert_eq(vram_backup_bytes(VRAM_BACKUP_KINDS), 0);
}

static int unregister_what_is_registered(void *at) { return at ? 0 : NOT_REGISTERED; }

/* The next move of a block may fail before it has made a new place. */
Test(vram_backup, a_block_without_a_place_has_none_to_give_up) {
    struct vram_driver other = driver;
    struct vram_block block = pinned_block();
    other.cuMemHostUnregister = unregister_what_is_registered;
    vram_backup_drop(&other, &block);
    cr_assert_eq(block.backup_kind, VRAM_PINNED, "the kind of its last place");
    vram_backup_leave(&block);
    vram_backup_collect(&other);
    cr_assert_eq(vram_backup_bytes(VRAM_BACKUP_KINDS), 0);
}

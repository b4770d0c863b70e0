// A child was forked while another thread held the loader's lock and walked the list of loaded objects. In the child
// nobody releases that lock. The child stows memory and brings it back nevertheless.
#include "abi.h"
#include "expect.h"

#include <link.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 4 << 20 };

static int go_on[2], holds[2];

static int hold(struct dl_phdr_info *object, size_t size, void *context) {
    (void)object, (void)size, (void)context;
    char word = 1;
    MUST(write(holds[1], &word, 1) == 1 && read(go_on[0], &word, 1) == 1);
    return 1;
}

static void *hold_the_lock(void *context) {
    dl_iterate_phdr(hold, context);
    return NULL;
}

static void in_child(uint32_t model, const char *block) {
    alarm(20); /* otherwise it would wait for ever */
    MUST(abi_memstow_stow(model) >= 0 && abi_memstow_restore(model) >= 0);
    for (int i = 0; i < SIZE; i += 4096) MUST(block[i] == 7);
    _exit(0);
}

int main(void) {
    abi_find();
    uint32_t model = (uint32_t)CALL(1, memstow_owner_open, MEMSTOW_MODEL, "model", "", 1, 0);
    MUST(CALL(0, memstow_scope_enter, model) == 0);
    char *block = malloc(SIZE), word;
    MUST(CALL(0, memstow_scope_leave, model) == 0);
    memset(block, 7, SIZE);
    pthread_t thread;
    MUST(pipe(go_on) == 0 && pipe(holds) == 0);
    MUST(pthread_create(&thread, NULL, hold_the_lock, NULL) == 0);
    MUST(read(holds[0], &word, 1) == 1);
    pid_t child = fork();
    MUST(child >= 0);
    if (!child && has_memstow) in_child(model, block);
    if (!child) _exit(0);
    int status;
    MUST(waitpid(child, &status, 0) == child && status == 0);
    MUST(write(go_on[1], "", 1) == 1 && pthread_join(thread, NULL) == 0);
    free(block);
    EXPECT("owners[name=model].live_bytes", 0);
    return 0;
}

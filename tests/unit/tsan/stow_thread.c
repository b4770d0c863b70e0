/* stow_thread.c — a stand-in for preload/stow/stow_thread.c, for the preset tsan only. It makes threads by
 * pthread_create. The original makes them by clone, so ThreadSanitizer does not know them, and takes such a thread for
 * the thread that made it. The stand-in makes no descriptor tables, and no processes. */
#include "preload/stow/stow_thread.h"

#include <pthread.h>
#include <stdlib.h>

struct stow_thread {
    void (*work)(void *context);
    void *context;
    pthread_t thread;
};

static void *run(void *thread) {
    const struct stow_thread *self = thread;
    self->work(self->context);
    return NULL;
}

struct stow_thread *stow_thread_start_apart(void (*work)(void *context), void *context) {
    struct stow_thread *self = malloc(sizeof *self);
    if (!self) return NULL;
    *self = (struct stow_thread){.work = work, .context = context};
    if (!pthread_create(&self->thread, NULL, run, self)) return self;
    free(self);
    return NULL;
}

struct stow_thread *stow_thread_start(void (*work)(void *context), void *context, bool *own_files) {
    if (own_files) *own_files = false;
    return stow_thread_start_apart(work, context);
}

uint32_t stow_thread_id(const struct stow_thread *self) { return (uint32_t)(uintptr_t)self; }

void stow_thread_join(struct stow_thread *self) {
    pthread_join(self->thread, NULL);
    free(self);
}

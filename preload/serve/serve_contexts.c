/* serve_contexts.c — see serve_contexts.h. */
#include "preload/serve/serve_contexts.h"

#include "preload/serve/serve_settings.h"
#include "preload/shared/os.h"
#include "preload/vram/vram_contexts.h"
#include "preload/vram/vram_memory.h"
#include "preload/vram/vram_reach.h"

static uint32_t contexts_ended;

int serve_contexts_note(const struct cuda_target *target) {
    if (!target->context) return 0;
    vram_contexts_note(target->context);
    return vram_reach_works_on(target->device) ? vram_memory_reach() : 0;
}

/* memstow does not see every context when the context is made, so each allocation calls this function, whether or not
 * the allocation is for a model. A new context may have the address of a context that has ended, so after the end of
 * any context, each thread notes its context again. */
void serve_contexts_note_present(const struct cuda_target *target) {
    static __thread cuda_handle last;
    static __thread uint32_t last_ended;
    uint32_t ended = __atomic_load_n(&contexts_ended, __ATOMIC_ACQUIRE);
    if (likely(target->context == last && ended == last_ended) || !target->context) return;
    serve_contexts_note(target);
    last = target->context;
    last_ended = ended;
}

void serve_contexts_made(cuda_handle context, uint32_t device) {
    serve_contexts_note(&(struct cuda_target){context, device});
}

/* First removes the context from the list, and then tells all threads to note their contexts again. In the other order,
 * a thread whose new context has the same address could find the old context in the list, and would not note the new
 * one. */
void serve_contexts_ended(cuda_handle context, bool goes_on, uint64_t end) {
    uint32_t device;
    cuda_handle heir = goes_on || !serve_wanted ? context : NULL;
    if (!heir && vram_contexts_device(context, &device)) cuda_device_ask_primary(device, &heir);
    vram_contexts_ended(context, heir, end);
    __atomic_fetch_add(&contexts_ended, 1, __ATOMIC_RELEASE);
}

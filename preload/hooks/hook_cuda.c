/* hook_cuda.c — the entry points of CUDA, each made from its line in cuda_table.h.
 * In: calls of the program and of libraries. Out: the same calls to the real functions; cuda_events.c is told of their
 * effects. Results are the driver's, with four exceptions: memstow serves the request (serve.h); a resolver returns the
 * address of an entry; the program registers stowed memory that cannot come back; the process lacks the function. CUDA
 * calls entries from within other entries: only a thread's outermost call counts. */
#include <errno.h>

#include "preload/cuda/cuda_abi.h"
#include "preload/cuda/cuda_counts.h"
#include "preload/cuda/cuda_device.h"
#include "preload/events/cuda_capture.h"
#include "preload/events/cuda_events.h"
#include "preload/events/cuda_fault.h"
#include "preload/events/cuda_teardown.h"
#include "preload/cuda/cuda_route.h"
#include "preload/cuda/cuda_scope.h"
#include "preload/ledger/ledger.h"
#include "preload/life/process.h"
#include "preload/serve/serve.h"
#include "preload/serve/serve_contexts.h"
#include "preload/serve/serve_settings.h"

#define HOOK __attribute__((visibility("default")))

/* The caller of the thread's outermost hook of CUDA, while that hook runs. Slot 0: no such hook runs. */
static __thread struct caller outermost __attribute__((tls_model("initial-exec")));

/* A hook that was left by longjmp, or by the end of its thread, does not count as outermost. */
static bool is_within(uintptr_t slot) { return unlikely(outermost.slot) && !stack_has_left_call(&outermost, slot); }

/* Returns the function to call; NULL: the process has no such function. */
static void *hook_cuda_begin(struct cuda_call *call, enum cuda_entry_id entry, uint32_t slot, struct caller caller) {
    int error = errno;
    void *real = cuda_route_real(entry, slot, caller.address);
    call->caller = caller;
    call->outermost = !is_within(caller.slot);
    if (unlikely(serve_wanted && real))
        real = serve_instead(entry, real, call->outermost ? caller.address : outermost.address);
    call->outer = real && call->outermost && process_tracked();
    call->per_thread = cuda_entries[entry].per_thread;
    call->removes = call->found = call->in_use = call->impossible = false;
    call->asked = call->locked = call->captures = 0;
    call->captured = CUDA_NO_CAPTURE;
    call->ending = CUDA_NOTHING_ENDS;
    call->ends_much = false;
    if (call->outermost) outermost = caller;
    errno = error;
    return real;
}

static int hook_cuda_end(struct cuda_call *call, enum cuda_entry_id entry, int result) {
    if (call->outer) {
        if (result) cuda_events_stays(call);
        if (unlikely(result == CUDA_ILLEGAL_ADDRESS)) cuda_fault_seen(call, cuda_entries[entry].name);
        if (result == CUDA_OUT_OF_MEMORY && call->asked) cuda_events_refused(call);
        if (call->captured) cuda_capture_went(call, result);
        if (call->ends_much) cuda_teardown_over(call);
    }
    if (call->outermost) outermost.slot = 0;
    return result;
}

/* --- what resolvers answer --- */

typedef int resolver(const char *, void **, int, uint64_t, int *);

/* Whether the hook for `symbol` fits the function that the driver gave. A version of CUDA that memstow does not know
 * may use the name for a function with other arguments. The hook fits if the driver gives the same function for the
 * newest version that memstow knows. */
static bool means_the_same(const char *symbol, const void *found, uint64_t flags) {
    resolver *ask = (resolver *)cuda_scope_any("cuGetProcAddress_v2", NULL);
    void *known = NULL;
    int status;
    return ask && !ask(symbol, &known, CUDA_VERSION_KNOWN, flags, &status) && known == found;
}

static void hook_cuda_answered(const struct cuda_call *call, const char *symbol, void **found, int version,
                               uint64_t flags) {
    if (!symbol || !found || !*found) return;
    if (cuda_route_is_exempt(call->caller.address)) {
        *found = cuda_route_without_hook(*found);
        return;
    }
    int entry = cuda_route_meant(symbol, version, flags);
    bool known = entry >= 0 && (version <= CUDA_VERSION_KNOWN || means_the_same(symbol, *found, flags));
    if (known)
        *found = cuda_route_hook((enum cuda_entry_id)entry, *found);
    else if ((entry >= 0 || cuda_route_is_unknown_memory(symbol)) && process_tracked())
        cuda_events_unknown(symbol);
}

static int runtime_version(void) {
    int version = 0;
    int (*ask)(int *) = (int (*)(int *))cuda_scope_any("cudaRuntimeGetVersion", NULL);
    return ask && !ask(&version) ? version : CUDA_VERSION_KNOWN;
}

/* --- the words that the table uses --- */

#define KIND_DEVICE SNAP_CUDA_DEVICE_MEMORY
#define KIND_POOL SNAP_CUDA_POOL_MEMORY
#define KIND_MANAGED SNAP_CUDA_MANAGED
#define KIND_ARRAY SNAP_CUDA_ARRAY
#define KIND_PHYSICAL SNAP_CUDA_PHYSICAL
#define KIND_PINNED SNAP_CUDA_PINNED
#define KIND_REGISTERED SNAP_CUDA_REGISTERED
#define KIND_IMPORTED SNAP_CUDA_IMPORTED
#define KIND_RESERVED SNAP_CUDA_RESERVED

#define NOTHING (void)0
#define ASKS(kind, size) (call.asked_kind = KIND_##kind, call.asked = (uint64_t)(size))
#define REGISTERS(at, size) cuda_events_register(&call, (uint64_t)(at), (uint64_t)(size))
#define MADE(kind, number, size) cuda_events_made(&call, KIND_##kind, (uint64_t)(number), (uint64_t)(size))
#define MADE_IN_POOL(number, size, stream, pool) cuda_events_made_in_pool(&call, (uint64_t)(number), size, stream, pool)
#define MADE_IN_GRAPH(node, graph) cuda_events_made_in_graph(&call, node, graph)
#define MADE_NODE(node, graph) cuda_teardown_node(&call, node, graph)
#define MADE_POOL(pool, properties) cuda_events_made_pool(&call, pool, properties)
#define MADE_PHYSICAL(memory, size, properties) cuda_events_made_physical(&call, memory, size, properties)
#define OPENED(number) cuda_events_opened(&call, (uint64_t)(number))
#define MADE_OF_ANOTHER(memory) cuda_events_made_of_another(&call, memory)
#define RETAINED(memory, at) cuda_events_retained(&call, memory, (cuda_address)(at))
#define RELEASED cuda_events_released(&call)
#define MAPPED(at, size, memory) cuda_events_mapped(&call, at, size, memory)
#define UNMAPPED(at, size) cuda_events_unmapped(at, size)
#define TAKEN(space, number) cuda_events_take(&call, CUDA_##space, (uint64_t)(number))
#define TAKEN_ONE(space, number) cuda_events_take_one(&call, CUDA_##space, (uint64_t)(number))
#define GONE cuda_events_gone(&call)
#define GONE_IN_STREAM(stream) cuda_events_gone_in(&call, stream)
#define MARKED(space, number, flag) cuda_events_mark(CUDA_##space, (uint64_t)(number), flag)
#define MARKED_MEMORY(memory, flag) cuda_events_mark_memory(memory, flag)
#define GRAPH_ENDS(graph) cuda_teardown_begins(&call, CUDA_GRAPH_ENDS, graph)
#define CONTEXT_ENDS(context) cuda_teardown_begins(&call, CUDA_CONTEXT_ENDS, context)
#define ENDED cuda_teardown_ended(&call)
#define CONTEXT_MADE(context, device) serve_contexts_made(context, (uint32_t)(device))
#define DEVICE_NOW cuda_device_of_thread(call.caller.address)
#define RESETS(device) cuda_teardown_reset(&call, (uint32_t)(device))
#define PRIMARY_IS(device, context)                                                                                    \
    (cuda_device_primary((uint32_t)(device), context), serve_contexts_made(context, (uint32_t)(device)))
#define RELEASES(device) cuda_teardown_release(&call, (uint32_t)(device))
#define PRIMARY_RELEASED cuda_teardown_primary_released(&call)
#define CAPTURE(stream) cuda_capture_changes(&call, CUDA_CAPTURE_BEGINS, stream)
#define CAPTURE_ENDS(stream) cuda_capture_changes(&call, CUDA_CAPTURE_ENDS, stream)
#define STREAM_ENDS(stream) cuda_capture_changes(&call, CUDA_STREAM_ENDS, stream)
#define CAPTURED(graph) cuda_capture_becomes(&call, graph)
#define ASKED_ABOUT(name, code) cuda_fault_asked(&call, #name, code)
#define FIGURES(available, total) cuda_device_figures(available, total)
#define ANSWERED(symbol, found, version, flags) hook_cuda_answered(&call, symbol, found, version, flags)
#define ANSWERED_BY_RUNTIME(symbol, found, flags) hook_cuda_answered(&call, symbol, found, runtime_version(), flags)

/* --- the hooks --- */

#define BODY(name, slot, parameters, arguments, before, after, always)                                                 \
    {                                                                                                                  \
        struct cuda_call call;                                                                                         \
        void *real = hook_cuda_begin(&call, CUDA_ENTRY_##name, slot, CALLER);                                          \
        if (unlikely(!real)) return hook_cuda_end(&call, CUDA_ENTRY_##name, CUDA_NO_SUCH_SYMBOL);                      \
        int error = errno;                                                                                             \
        if (likely(call.outer)) before;                                                                                \
        errno = error;                                                                                                 \
        int result = unlikely(call.impossible) ? CUDA_OUT_OF_MEMORY : ((int(*) parameters)real)arguments;              \
        error = errno;                                                                                                 \
        if (likely(!result) && (always || call.outer)) after;                                                          \
        hook_cuda_end(&call, CUDA_ENTRY_##name, result);                                                               \
        errno = error;                                                                                                 \
        return result;                                                                                                 \
    }
#define THREE(name, parameters, arguments, before, after, always)                                                      \
    HOOK int name parameters;                                                                                          \
    int name parameters BODY(name, 0, parameters, arguments, before, after, always) static int name##_1 parameters     \
    BODY(name, 1, parameters, arguments, before, after, always) static int name##_2 parameters                         \
    BODY(name, 2, parameters, arguments, before, after, always)

#define ENTRY(side, name, base, since, per_thread, parameters, arguments, before, after)                               \
    THREE(name, parameters, arguments, before, after, false)
#define RESOLVER(side, name, base, since, per_thread, parameters, arguments, after)                                    \
    THREE(name, parameters, arguments, NOTHING, after, true)
#include "preload/cuda/cuda_table.h"

#define ENTRY(side, name, ...) {(void *)name, (void *)name##_1, (void *)name##_2},
#define RESOLVER ENTRY
static const cuda_hooks hooks[CUDA_ENTRIES] = {
#include "preload/cuda/cuda_table.h"
};

__attribute__((constructor)) static void begin_routes(void) { cuda_route_begin(hooks); }

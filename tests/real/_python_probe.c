/* A library that Python loads with ctypes, for python_frames.py. It finds the Python frames of the calling thread with
 * preload/stacks/python.c, and the native frames with libunwind. It has a ledger in memory, and reads the records of
 * the frames from this ledger. */
#define UNW_LOCAL_ONLY
#include <errno.h>
#include <libunwind.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "preload/ledger/ledger.h"
#include "preload/ledger/series.h"
#include "preload/stacks/python.h"
#include "preload/stacks/python_record.h"
#include "preload/stacks/generation.h"
#include "preload/ledger/budget.h"

#define EXPORT __attribute__((visibility("default")))
enum { FRAMES = 4000, EVALS = 1000 };

uint32_t generation_of_code, generation_of_stacks; /* in place of generation.c and budget.c */
bool budget_is_full(enum budget of) { return of != BUDGET_FRAMES; }
void generation_end_stacks(void) { __atomic_fetch_add(&generation_of_stacks, 1, __ATOMIC_RELEASE); }

static struct series frames = {
    .type = SNAP_FRAME, .record_size = sizeof(struct snap_frame), .first_bits = 9, .limit = 1 << 24};

__attribute__((constructor)) static void begin(void) {
    static const struct ledger_identity identity = {.name = "probe", .exe = "", .command = ""};
    ledger_begin(&identity);
    python_record_begin(&frames);
}

EXPORT void probe_child_begins(void) {
    python_abandon();
    python_record_abandon();
    ledger_abandon();
    series_reset(&frames);
    begin();
}

/* Returns the record `id` of a type, as a reader of the file finds it. */
static const void *record(uint32_t type, uint64_t id) {
    const char *start = (const char *)ledger_head;
    for (uint64_t at = SNAP_HEADER_SIZE; at < ledger_head->size;) {
        const struct snap_section *section = (const void *)(start + at);
        if (section->type == type && id - section->first < section->count)
            return (const char *)(section + 1) + (id - section->first) * section->record_size;
        at += section->length;
    }
    return NULL;
}

static const char *text(uint32_t string) { return string ? record(SNAP_STRINGS, string) : ""; }

/* A stack: its evaluation loops, and all their frames in a row. */
struct stack {
    size_t evals, count;
    struct {
        uintptr_t anchor;
        size_t first, count;
    } eval[EVALS];
    struct python_frame frame[FRAMES + 1 + PYTHON_AHEAD];
};

static void take_stack(struct stack *out) {
    unw_context_t context;
    unw_cursor_t cursor;
    struct python_walk walk = {0};
    out->evals = out->count = 0;
    unw_getcontext(&context);
    unw_init_local(&cursor, &context);
    unw_word_t pc, sp, cfa = 0;
    unw_get_reg(&cursor, UNW_REG_SP, &sp);
    for (unw_get_reg(&cursor, UNW_REG_IP, &pc); unw_step(&cursor) > 0;
         unw_get_reg(&cursor, UNW_REG_IP, &pc), sp = cfa) {
        unw_get_reg(&cursor, UNW_REG_SP, &cfa);
        if (!python_is_eval(pc, sp - 8, cfa) || out->evals == EVALS) continue;
        uintptr_t *anchor = &out->eval[out->evals].anchor;
        size_t n = python_frames(&walk, sp - 8, cfa, anchor, out->frame + out->count, FRAMES - out->count);
        if (n > FRAMES - out->count) n = FRAMES - out->count;
        out->eval[out->evals].first = out->count;
        out->eval[out->evals++].count = n;
        out->count += n;
    }
}

/* Returns the anchor (python.h) of the next inner evaluation loop of the same interpreter, or 0 if there is none.
 * Anchors of one interpreter have the same three lowest bits. */
static uintptr_t inner_anchor(const struct stack *stack, size_t eval) {
    uintptr_t anchor = stack->eval[eval].anchor;
    while (eval-- > 0)
        if (!((stack->eval[eval].anchor ^ anchor) & 7)) return stack->eval[eval].anchor;
    return 0;
}

static bool same(const struct stack *stack, size_t eval) {
    uintptr_t inner = inner_anchor(stack, eval);
    return python_same(inner, stack->eval[eval].anchor, stack->frame + stack->eval[eval].first,
                       stack->eval[eval].count);
}

/* Whether python_same() finds the frames of each loop unchanged. If `damaged` is the index of a frame, that frame is
 * changed first. Then python_same() must find a difference in the loop of that frame, and in no other loop. */
static bool verify(struct stack *stack, size_t damaged) {
    bool right = true;
    if (damaged < stack->count) stack->frame[damaged].instruction += 2;
    for (size_t i = 0; i < stack->evals; i++) {
        size_t first = stack->eval[i].first, count = stack->eval[i].count;
        bool expected = damaged < first || damaged >= first + count;
        right &= same(stack, i) == expected;
    }
    if (damaged < stack->count) stack->frame[damaged].instruction -= 2;
    return right;
}

/* Whether python_same() notices that the last loop has one frame too few, and that it has one frame too many. */
static bool verify_last(struct stack *stack) {
    size_t i = stack->evals - 1;
    if (!stack->evals || !stack->eval[i].anchor) return true;
    bool right = true;
    for (int change = stack->eval[i].count ? -1 : 1; change <= 1; change += 2) {
        stack->eval[i].count += (size_t)change;
        right &= !same(stack, i);
        stack->eval[i].count -= (size_t)change;
    }
    return right;
}

static size_t print(const struct python_frame *frame, char *to, size_t room) {
    uint32_t id = python_frame_record(frame);
    const struct snap_frame *place = record(SNAP_FRAME, id);
    const struct snap_code *code = place ? record(SNAP_CODE, place->code - 1) : NULL;
    if (!code) return (size_t)snprintf(to, room, "no record\n");
    int n = snprintf(to, room, "%s\t%s\t%u\t%u\t%lu\n", text(code->name), text(code->file), code->first_line,
                     place->line, (unsigned long)place->address);
    return n < (int)room ? (size_t)n : room - 1;
}

/* Writes one line for each frame, the innermost first: name, file, first line, line, offset. Returns the number of
 * frames, or a negative number if python_same() was wrong. */
EXPORT long probe_chain(char *to, size_t room) {
    struct stack *stack = malloc(sizeof *stack);
    take_stack(stack);
    long result = (long)stack->count;
    size_t length = to[0] = 0, last = stack->count - 1;
    for (size_t i = 0; i < stack->count; i++) length += print(&stack->frame[i], to + length, room - length);
    if (!verify(stack, SIZE_MAX)) result = -1;
    if (stack->count && !(verify(stack, 0) && verify(stack, last) && verify(stack, last / 2))) result = -2;
    if (!verify_last(stack)) result = -3;
    free(stack);
    return result;
}

/* If this library is preloaded with PROBE_EVERY=N, it looks at the stack in every N-th malloc, wherever the program
 * calls it. */
extern void *__libc_malloc(size_t);
static unsigned long every, calls, looks, seen_frames, wrong;
static __thread bool looking;

static void look(void) {
    struct stack *stack = __libc_malloc(sizeof *stack);
    take_stack(stack);
    errno = 77; /* libunwind changed it */
    for (size_t i = 0; i < stack->count; i++) python_frame_record(&stack->frame[i]);
    bool right = verify(stack, SIZE_MAX) && verify(stack, stack->count / 2) && verify_last(stack) && errno == 77;
    __atomic_fetch_add(&wrong, !right, __ATOMIC_RELAXED);
    __atomic_fetch_add(&looks, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&seen_frames, stack->count, __ATOMIC_RELAXED);
    free(stack);
}

EXPORT void *malloc(size_t size) {
    if (every && !looking && __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED) % every == 0) {
        looking = true;
        look();
        looking = false;
    }
    return __libc_malloc(size);
}

__attribute__((constructor)) static void read_wish(void) {
    const char *wish = getenv("PROBE_EVERY");
    every = wish ? strtoul(wish, NULL, 10) : 0;
}

__attribute__((destructor)) static void tell(void) {
    if (every)
        fprintf(stderr, "probe: %lu looks, %lu frames, %lu wrong, %lu lost, %lu bytes\n", looks, seen_frames, wrong,
                ledger_head->lost[SNAP_LOST_PYTHON], ledger_head->size);
}

EXPORT unsigned long probe_lost(void) { return ledger_head->lost[SNAP_LOST_PYTHON]; }
EXPORT void probe_code_moved(void) { generation_of_code++; }
EXPORT unsigned probe_generation(void) { return generation_of_stacks; }
EXPORT unsigned long probe_ledger_size(void) { return ledger_head->size; }

/* Calls a Python callback from C on a new thread, so that no Python frames are further out than the callback. */
static void *(*callback)(void);
static void *call(void *unused) {
    (void)unused;
    return callback();
}
EXPORT void probe_thread(void *(*function)(void)) {
    pthread_t thread;
    callback = function;
    pthread_create(&thread, NULL, call, NULL);
    pthread_join(thread, NULL);
}

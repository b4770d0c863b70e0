/* register_decisions.c — the entry points of memstow.h for triggers (moments when memstow applies the owners' policies)
 * and for the trace (the lines that say what was decided).
 * In: the program's calls, with any argument. Out: the same calls to trigger.c and trace.c, with checked arguments.
 * Every call keeps errno, and notes for memstow_error why it failed. */
#include "include/memstow.h"

#include <errno.h>
#include <string.h>

#include "preload/abi/entry.h"
#include "preload/life/process.h"
#include "preload/ledger/trace.h"
#include "preload/triggers/trigger.h"
#include "preload/vram/vram_move.h"

enum { WORDS_SIZE = 256 };

/* Returns the reason that the program gives for a trigger. 0: there is no such reason, or only memstow may give it. */
static uint32_t reason_of(uint32_t given) { return given <= MEMSTOW_IDLE ? given : 0; }

static int64_t trigger_result(int64_t result) {
    if (result == -EBUSY) return entry_fails(result, "another trigger has not ended");
    if (result == -ENOENT) return entry_fails(result, "no trigger has begun");
    if (result == -EINVAL) return entry_fails(result, "there is no such reason");
    return entry_result(result);
}

/* Writes as many decisions as `out` can hold. `size` is the size of the caller's structure. False: `out` cannot be
 * written. */
static bool hand_out(struct memstow_decision *out, uint32_t capacity, uint32_t size,
                     const struct memstow_decision *decisions, int64_t count) {
    uint32_t part = size < sizeof *decisions ? size : sizeof *decisions;
    for (uint32_t i = 0; i < capacity && i < count; i++)
        if (!entry_out((char *)out + (uint64_t)i * size, &decisions[i], part)) return false;
    return true;
}

EXPORTED int64_t memstow_trigger_begin(uint32_t reason, const char *text, uint64_t needed, struct memstow_decision *out,
                                       uint32_t capacity, uint32_t size) {
    char words[WORDS_SIZE];
    const struct memstow_decision *decisions;
    if (!process_tracked()) return entry_not_tracked();
    if (!entry_text(words, sizeof words, text)) return entry_fails(-EFAULT, "the text cannot be read");
    if (capacity && !size) return entry_fails(-EINVAL, "the size of a decision must not be 0");
    int64_t count = trigger_begin(reason_of(reason), words, reason == MEMSTOW_PRESSURE ? needed : 0, true, &decisions);
    if (count < 0) return trigger_result(count);
    if (hand_out(out, capacity, size, decisions, count)) return count;
    trigger_cancel();
    return entry_fails(-EFAULT, "the decisions cannot be written there");
}

EXPORTED int64_t memstow_trigger_end(void) {
    if (!process_tracked()) return entry_not_tracked();
    vram_move_asked_at(__builtin_frame_address(0));
    return trigger_result(trigger_end());
}

EXPORTED int64_t memstow_trigger(uint32_t reason, const char *text) {
    char words[WORDS_SIZE];
    if (!process_tracked()) return entry_not_tracked();
    if (!entry_text(words, sizeof words, text)) return entry_fails(-EFAULT, "the text cannot be read");
    vram_move_asked_at(__builtin_frame_address(0));
    return trigger_result(trigger_run(reason_of(reason), words, 0));
}

EXPORTED int32_t memstow_trace(const char *json) {
    char text[TRACE_TEXT_MOST + 2];
    if (!process_tracked()) return (int32_t)entry_not_tracked();
    if (!entry_text(text, sizeof text, json)) return (int32_t)entry_fails(-EFAULT, "the line cannot be read");
    int result = trace_add_foreign(text, strlen(text));
    if (result == -EINVAL)
        return (int32_t)entry_fails(result, "a line is one JSON object of at most 4000 bytes, without members n and t");
    if (result == -ENOMEM) return (int32_t)entry_fails(result, "the ledger cannot grow, so it has no trace");
    return (int32_t)entry_result(result);
}

/* Copies whole lines of the trace into `to`, beginning with the line number `from`. *after: the `from` of the next
 * call. Returns the bytes copied, or -errno. */
static int64_t copy_lines(char *to, uint64_t capacity, uint64_t from, uint64_t *after) {
    char line[SNAP_LINE_MOST + 1];
    uint64_t position = 0, number, used = 0;
    *after = from;
    for (size_t length; (length = trace_read(&position, line, &number)); *after = number + 1) {
        if (number < from) continue;
        line[length++] = '\n';
        if (length > capacity - used) return used ? (int64_t)used : -ENOSPC;
        if (!entry_out(to + used, line, length)) return -EFAULT;
        used += length;
    }
    return (int64_t)used;
}

EXPORTED int64_t memstow_decisions(char *to, uint64_t capacity, uint64_t from, uint64_t *after) {
    uint64_t number;
    if (!process_tracked()) return entry_not_tracked();
    int64_t length = copy_lines(to, capacity > INT64_MAX ? INT64_MAX : capacity, from, &number);
    if (length == -ENOSPC) return entry_fails(length, "the next line is longer than the buffer");
    if (length == -EFAULT || (after && !entry_out(after, &number, sizeof number)))
        return entry_fails(-EFAULT, "the lines, or the number of the next one, cannot be written there");
    return entry_result(length);
}

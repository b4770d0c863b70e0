/* trace.c — see trace.h. One thread at a time writes. The ring's `end` moves only after a whole line is written, so a
 * kill in between leaves no partial line. */
#include "preload/ledger/trace.h"

#include <errno.h>
#include <string.h>

#include "preload/shared/jsontext.h"
#include "preload/ledger/ledger.h"
#include "preload/base/lock.h"
#include "preload/shared/os.h"
#include "preload/base/forked.h"

static struct {
    struct lock lock;
    struct snap_ring *ring; /* NULL: there was no line yet */
} trace;

static char *trace_bytes_of(struct snap_ring *ring) { return (char *)(ring + 1); }

static void trace_put(uint64_t position, const void *from, size_t length) {
    size_t offset = position % TRACE_SIZE, first = TRACE_SIZE - offset < length ? TRACE_SIZE - offset : length;
    memcpy(trace_bytes_of(trace.ring) + offset, from, first);
    memcpy(trace_bytes_of(trace.ring), (const char *)from + first, length - first);
}

static void trace_get(uint64_t position, void *to, size_t length) {
    size_t offset = position % TRACE_SIZE, first = TRACE_SIZE - offset < length ? TRACE_SIZE - offset : length;
    memcpy(to, trace_bytes_of(trace.ring) + offset, first);
    memcpy((char *)to + first, trace_bytes_of(trace.ring), length - first);
}

static uint64_t trace_size_of(uint32_t length) { return os_round_up(sizeof(struct snap_line) + length, 8); }

/* Reads the head of the line at a position below `end`. False: the head cannot be right, because the program has
 * overwritten the ring by accident. In that case nothing after this line is read. */
static bool head_at(uint64_t position, struct snap_line *head) {
    uint64_t left = os_load(&trace.ring->end) - position;
    if (left < sizeof *head || left > TRACE_SIZE) return false;
    trace_get(position, head, sizeof *head);
    return head->length && head->length <= SNAP_LINE_MOST && trace_size_of(head->length) <= left;
}

/* Drops the oldest lines until `need` bytes are free. */
static void trace_drop_oldest(uint64_t need) {
    uint64_t start = os_load(&trace.ring->start), end = os_load(&trace.ring->end);
    struct snap_line head;
    if (end - start > TRACE_SIZE) start = end;
    while (end - start + need > TRACE_SIZE) start = head_at(start, &head) ? start + trace_size_of(head.length) : end;
    os_store(&trace.ring->start, start);
    __atomic_thread_fence(__ATOMIC_RELEASE); /* `start` moves before the old lines are overwritten */
}

static bool make_ring(void) {
    struct snap_ring *ring = ledger_section(SNAP_TRACE, 1, sizeof *ring + TRACE_SIZE, 0);
    if (!ring) return false;
    ring->capacity = TRACE_SIZE;
    ring->next = 1;
    trace.ring = ring;
    return true;
}

static char *trace_put_text(char *to, const char *text, size_t length) {
    memcpy(to, text, length);
    return to + length;
}

/* Writes a JSON object, with its number and the time as the first members. Returns the length. White space between
 * members becomes blanks, because it may contain ends of lines. */
static size_t write_line(char to[SNAP_LINE_MOST], uint64_t number, const char *text, size_t length) {
    static const char first[] = "{\"n\":", second[] = ",\"t\":";
    size_t member = 1;
    while (memchr(" \t\r\n", text[member], 4)) member++;
    char *at = trace_put_text(to, first, sizeof first - 1);
    at = os_decimal(at, number);
    at = trace_put_text(at, second, sizeof second - 1);
    at = os_decimal(at, os_now());
    if (text[member] != '}') *at++ = ',';
    char *rest = at;
    at = trace_put_text(at, text + member, length - member);
    for (; rest < at; rest++)
        if (*rest == '\n' || *rest == '\r' || *rest == '\t') *rest = ' ';
    return (size_t)(at - to);
}

static void trace_append(const char *text, size_t length) {
    char line[SNAP_LINE_MOST];
    struct snap_ring *ring = trace.ring;
    struct snap_line head = {.number = ring->next};
    head.length = (uint32_t)write_line(line, head.number, text, length);
    head.check = snap_line_check(head.number, line, head.length);
    trace_drop_oldest(trace_size_of(head.length));
    uint64_t end = os_load(&ring->end);
    trace_put(end, &head, sizeof head);
    trace_put(end + sizeof head, line, head.length);
    os_store(&ring->next, head.number + 1);
    __atomic_store_n(&ring->end, end + trace_size_of(head.length), __ATOMIC_RELEASE);
}

/* Removes white space at both ends, so that the text begins with its opening brace. */
static void trace_trim(const char **text, size_t *length) {
    static const char blanks[] = " \t\r\n";
    for (; *length && memchr(blanks, **text, 4); (*text)++) --*length;
    while (*length && memchr(blanks, (*text)[*length - 1], 4)) --*length;
}

int trace_add(const char *text, size_t length) {
    int error = 0;
    if (!ledger_head->pid || !ledger_is_ours()) return -ENODEV;
    trace_trim(&text, &length);
    if (length < 2 || length > TRACE_TEXT_MOST) return -EINVAL;
    if (!lock_wait(&trace.lock)) {
        ledger_lost(SNAP_LOST_TRACE);
        return -EBUSY;
    }
    if (trace.ring || make_ring())
        trace_append(text, length);
    else
        error = -ENOMEM;
    lock_let_go(&trace.lock);
    if (error) ledger_lost(SNAP_LOST_TRACE);
    return error;
}

void trace_add_line(struct line *line) {
    line_end(line);
    trace_add(line->text, line->used);
}

int trace_add_foreign(const char *text, size_t length) {
    struct jsontext object = {text, length}, own;
    if (length > TRACE_TEXT_MOST || !jsontext_is_object(text, length)) return -EINVAL;
    trace_trim(&object.at, &object.length);
    if (jsontext_member(object, "n", &own) || jsontext_member(object, "t", &own)) return -EINVAL;
    return trace_add(object.at, object.length);
}

static size_t read_locked(uint64_t *position, char *to, uint64_t *number) {
    struct snap_line head;
    uint64_t start = os_load(&trace.ring->start), end = os_load(&trace.ring->end);
    if (*position < start) *position = start;
    if (*position >= end || !head_at(*position, &head)) return 0;
    trace_get(*position + sizeof head, to, head.length);
    if (head.check != snap_line_check(head.number, to, head.length)) return 0;
    *position += trace_size_of(head.length);
    *number = head.number;
    return head.length;
}

size_t trace_read(uint64_t *position, char *to, uint64_t *number) {
    size_t length = 0;
    if (!ledger_is_ours() || !lock_wait(&trace.lock)) return 0;
    if (trace.ring) length = read_locked(position, to, number);
    lock_let_go(&trace.lock);
    return length;
}

void trace_abandon(void) { memset(&trace, 0, sizeof trace); }
FORKED(trace_abandon);

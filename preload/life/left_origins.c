/* left_origins.c — see left_origins.h. */
#include "preload/life/left_origins.h"

#include <string.h>

#include "preload/count/origins.h"
#include "preload/ledger/ledger.h"
#include "preload/ledger/ledger_strings.h"
#include "preload/shared/os.h"
#include "preload/life/process.h"
#include "preload/stacks/python_record.h"
#include "preload/stacks/rule.h"
#include "preload/count/site.h"
#include "preload/stacks/tree.h"
#include "preload/stacks/module.h"

/* At most NAMED_MOST frames of a stack are named, and at most LOOKED_AT_MOST are searched. */
enum { NAMED_MOST = 4, LOOKED_AT_MOST = 256 };

/* --- writing a stack as text --- */

struct words {
    char *to;
    size_t capacity;
    int count;
};

static void left_origins_put(struct words *self, const char *text) {
    os_copy(self->to, self->capacity, text);
    size_t length = strlen(self->to);
    self->to += length;
    self->capacity -= length;
}

static void put_hex(struct words *self, uint64_t number) {
    char text[17];
    os_hexadecimal(text, number);
    left_origins_put(self, text);
}

/* The last `names` names of a path. For Python files these are two, the folder's and the file's, because many packages
 * have a file __init__.py. */
static const char *left_origins_tail(const char *path, int names) {
    const char *at = path + strlen(path);
    for (; at > path; at--)
        if (at[-1] == '/' && !--names) return at;
    return path;
}

static bool is_python(const struct snap_frame *frame) { return frame->code && frame->code != SNAP_FRAME_INTERRUPTED; }

/* Writes a Python frame, such as "create_server socket.py:902". Frames of frozen modules are left out, because these
 * modules only import others. */
static void put_python(struct words *self, const struct snap_frame *frame) {
    const struct snap_code *code = python_record_code(frame->code - 1);
    const char *file = code ? ledger_text(code->file) : "<frozen";
    char line[24];
    if (strncmp(file, "<frozen", 7) == 0) return;
    left_origins_put(self, self->count++ ? ", " : "");
    left_origins_put(self, ledger_text(code->name));
    left_origins_put(self, " ");
    left_origins_put(self, left_origins_tail(file, 2));
    left_origins_put(self, ":");
    os_decimal(line, frame->line);
    left_origins_put(self, line);
}

/* Writes a native frame, such as "libssl.so.3+0x1234": the address is the one in the file, which addr2line takes. */
static void put_native(struct words *self, const struct snap_frame *frame) {
    const struct snap_module *module = module_record(frame->module);
    left_origins_put(self, self->count++ ? ", " : "");
    left_origins_put(self, module ? left_origins_tail(ledger_text(module->path), 1) : "?");
    left_origins_put(self, "+0x");
    put_hex(self, frame->address - (module ? module->bias : 0));
}

static void put_frames(struct words *self, uint32_t place, bool python) {
    for (int i = 0; place != TREE_ROOT && i < LOOKED_AT_MOST && self->count < NAMED_MOST; i++) {
        const struct snap_frame *frame = rule_frame(tree_frame(place));
        if (frame && is_python(frame) && python) put_python(self, frame);
        if (frame && !is_python(frame) && !python) put_native(self, frame);
        place = tree_outer(place);
    }
}

/* Writes the frames of a stack, the innermost first. If there are Python functions, only these are named: they say what
 * the program did. */
static void left_origins_describe(uint32_t site, char *to, size_t capacity) {
    struct words words = {to, capacity, 0};
    uint32_t place = site ? snap_site_stack(site_record(site)) : TREE_ROOT;
    *to = 0;
    put_frames(&words, place, true);
    if (!words.count) put_frames(&words, place, false);
}

/* --- answers to preload/shutdown --- */

static void left_origins_tell(const struct snap_origin *origin, struct shutdown_origin *out) {
    uint64_t now = os_now();
    out->inherited = origin->kind == SNAP_ORIGIN_INHERITED;
    out->age_ns = now > origin->birth_ns ? now - origin->birth_ns : 0;
    left_origins_describe(origin->site, out->by, sizeof out->by);
}

/* Whether the record is of the descriptor `what`. The record may be of an earlier descriptor with the same number, if
 * memstow did not see that the earlier descriptor was closed. Device and inode decide. If the record lacks them, the
 * kind decides. tools/watch/origins.c has the same rule. */
static bool is_same(const struct snap_origin *origin, const struct shutdown_descriptor *what) {
    if (origin->inode || origin->device) return origin->inode == what->inode && origin->device == what->device;
    if (origin->kind == SNAP_ORIGIN_COPY || origin->kind == SNAP_ORIGIN_INHERITED) return true;
    return (what->kind == HANDLE_SOCKET) == (origin->kind == SNAP_ORIGIN_SOCKET);
}

static bool of_descriptor(const struct shutdown_descriptor *what, struct shutdown_origin *out) {
    struct snap_origin origin;
    if (!origins_of_descriptor(what->fd, &origin) || !is_same(&origin, what)) return false;
    left_origins_tell(&origin, out);
    return true;
}

static bool of_thread(uint32_t tid, struct shutdown_origin *out) {
    struct snap_origin origin;
    if (!origins_of_thread(tid, &origin)) return false;
    left_origins_tell(&origin, out);
    return true;
}

static uint64_t left_origins_live_bytes(void) {
    int64_t live = __atomic_load_n(&ledger_head->host_live, __ATOMIC_RELAXED) +
                   __atomic_load_n(&ledger_head->mapped_live, __ATOMIC_RELAXED);
    return live > 0 ? (uint64_t)live : 0;
}

static bool left_origins_has_ledger(void) { return tracked_page.stage == TRACKED_YES && ledger_is_ours(); }

static bool left_origins_has_origins(void) { return ledger_head->stacks != SNAP_STACKS_NONE; }

const struct shutdown_ledger left_origins = {left_origins_has_ledger, left_origins_has_origins, of_descriptor,
                                             of_thread, left_origins_live_bytes};

/* tally.c — see tally.h. */
#include "tools/symbols/tally.h"
#include "tools/views/at_peak.h"
#include "tools/base/complain.h"
#include "tools/base/progress.h"
#include "tools/reader/cuda_image.h"
#include "tools/views/groups.h"
#include "tools/symbols/innermost.h"
#include "tools/symbols/own.h"
#include "tools/views/roster.h"
#include "tools/views/stacks.h"
#include "tools/subject/subject.h"
#include "tools/symbols/symbols.h"
#include "tools/base/text.h"

#include <stdlib.h>
#include <string.h>

/* How many frames are in the name of a call site. Without Python: NATIVE frames. With Python: BELOW_PYTHON native
 * frames, which are inside of the innermost Python frame, and PYTHON Python frames. With fewer frames, different sites
 * would get one name. With more frames, more changes of the program's code would rename a site. */
enum { NATIVE = 6, BELOW_PYTHON = 2, PYTHON = 4 };

static const char PROGRAM[] = "(program)"; /* in place of the program's own module */

/* An image, or the view of its live device memory. */
struct side {
    const struct image *image;
    bool cuda;
};

static enum measure measure_of(const struct figures *figures, const struct side *side) {
    return figures->peak && !side->cuda ? MEASURE_PEAK : MEASURE_LIVE;
}

static struct figure *figure_of_side(struct figures *figures, const struct side *side, enum figure_kind kind,
                                     const char *name, uint64_t bytes, uint64_t blocks) {
    return side->cuda ? figures_add_cuda(figures, kind, name, bytes, blocks)
                      : figures_add(figures, kind, name, bytes, blocks);
}

/* --- adding the total and the owners --- */

static bool tally_counts(const struct total *total) { return !(total->flags & (TOTAL_INHERITED | TOTAL_REMAINDER)); }

static int add_total(struct figures *figures, const struct image *image) {
    uint64_t bytes = image->host.live_bytes + image->mapped.live_bytes;
    uint64_t blocks = image->host.live_blocks + image->mapped.live_blocks;
    if (figures->peak) {
        bytes = image_peak(image);
        blocks = 0;
        for (size_t i = 0; i < image->total_count; i++) blocks += image->totals[i].peak_blocks;
    }
    return figures_add(figures, FIGURE_TOTAL, "", bytes, blocks) ? 0 : -1;
}

static int tally_add_owner(struct figures *figures, const struct side *side, uint32_t id, const struct total *total) {
    char name[FIGURE_KEY_MOST];
    const struct image *image = side->image;
    const struct snap_owner *owner = image_owner(image, id);
    enum measure measure = measure_of(figures, side);
    uint64_t bytes = total_measure(total, measure);
    if (!owner || owner->kind == SNAP_OWNER_RUN || !bytes) return 0;
    if (!figure_name_owner(name, sizeof name, roster_kind(owner), image_string(image, owner->name),
                           image_string(image, owner->origin)))
        return 0;
    return figure_of_side(figures, side, FIGURE_OWNER, name, bytes, total_measure_blocks(total, measure)) ? 0 : -1;
}

static int add_owners(struct figures *figures, const struct side *side) {
    const struct image *image = side->image;
    int result = 0;
    for (size_t i = 0; i < image->total_count && result == 0; i++) {
        const struct total *total = &image->totals[i];
        const struct snap_tag *tag = image_tag(image, total->tag);
        if (!tally_counts(total)) continue;
        result = tally_add_owner(figures, side, tag->model, total);
        if (result == 0) result = tally_add_owner(figures, side, tag->node, total);
    }
    return result;
}

/* --- adding call sites --- */

struct stack {
    const struct image *image;
    struct symbols *symbols;
    const uint32_t *frames;
    size_t count;
};

static const char *base_of(const struct named_frame *frame, const struct symbol *symbol) {
    const char *file = frame->python ? symbol->file : frame->module;
    return file ? symbols_short_path(file) : "?";
}

/* Whether the module is libc. All of libc counts as one frame, because the names of its internal functions depend on
 * whether its debug symbols are installed. */
static bool is_libc(const char *module) {
    return strncmp(module, "libc.so", 7) == 0 || strncmp(module, "libc-2", 6) == 0 ||
           strncmp(module, "ld-linux", 8) == 0;
}

/* Whether the module is the program itself. It is called PROGRAM in names, because the file of a program may get a new
 * name, for example one with a hash of the source. */
static bool is_program(const struct image *image, const char *module) {
    return module && strcmp(module, image_fact(image, SNAP_FACT_EXE)) == 0;
}

/* Adds a frame to the name. Adds nothing if both this frame and the frame before it are in libc. If functions were
 * inlined into the frame, the outermost function gives the name, because compilers inline differently. Returns false if
 * the name ends here, because this frame is main or there is no space. */
static bool name_frame(char *name, size_t capacity, const struct image *image, const struct named_frame *frame,
                       bool *libc) {
    const struct symbol *symbol = &frame->symbols[frame->count - 1];
    const char *base = is_program(image, frame->module) ? PROGRAM : base_of(frame, symbol);
    const char *function = symbol->function ? symbol->function : "?";
    bool in_libc = !frame->python && is_libc(base), again = in_libc && *libc;
    *libc = in_libc;
    if (again) return true;
    if (!figure_name_frame(name, capacity, in_libc ? "(libc)" : function, in_libc ? "libc.so.6" : base)) return false;
    return frame->python || strcmp(function, "main") != 0;
}

/* Whether the frame is a hook of memstow between the program and libc. The module tells it, because a hook has a
 * function name only if the library was not stripped. */
static bool is_own(const struct named_frame *frame) {
    return !frame->python && frame->module && strcmp(text_base_name(frame->module), "libmemstow.so") == 0;
}

/* Adds at most `most` frames to the name, beginning with frame `from`. If `python` is set, adds only Python frames.
 * Otherwise adds native frames up to the first Python frame. Returns false if the name ends here (name_frame). */
static bool name_frames(char *name, size_t capacity, const struct stack *stack, size_t from, size_t most, bool python) {
    bool libc = false;
    for (size_t i = from, named = 0; i < stack->count && named < most; i++) {
        if (python != innermost_is_python(stack->image, stack->frames[i])) {
            if (!python) return true;
            continue;
        }
        const struct named_frame *frame = symbols_frame(stack->symbols, stack->frames[i]);
        if (is_own(frame)) continue;
        if (!name_frame(name, capacity, stack->image, frame, &libc)) return false;
        named++;
    }
    return true;
}

static void name_stack(char *name, size_t capacity, const struct image *image, struct symbols *symbols, uint32_t node) {
    struct stack stack = {image, symbols, NULL, 0};
    size_t python = 0;
    stack.frames = stack_all(image, node, &stack.count);
    while (python < stack.count && !innermost_is_python(image, stack.frames[python])) python++;
    if (name_frames(name, capacity, &stack, 0, python < stack.count ? BELOW_PYTHON : NATIVE, false))
        name_frames(name, capacity, &stack, python, PYTHON, true);
}

/* Adds an owner to the name of a site. `id`: the id of the name of the owner. Models and custom owners get their origin
 * (as in groups_owner_words), unless without_origins is set. */
static int name_owner(char *name, size_t capacity, const struct groups *groups, uint32_t id, bool without_origins) {
    struct groups_owner owner;
    if (!groups_owner_parts(groups, id, &owner)) return 0;
    const struct snap_owner of_kind = {.kind = owner.kind};
    bool told = !without_origins && (owner.kind == SNAP_OWNER_MODEL || owner.kind == SNAP_OWNER_CUSTOM);
    char *text = strndup(owner.name, (size_t)owner.name_length);
    char *origin = strndup(owner.origin, told ? (size_t)owner.origin_length : 0);
    if (text && origin) figure_name_of(name, capacity, roster_kind(&of_kind), text, origin);
    int result = text && origin ? 0 : -1;
    free(text);
    free(origin);
    return result;
}

/* Notes the source file and line of the site in its figure, for output forms that can show them. */
static void figure_locate(struct figure *figure, const struct image *image, struct symbols *symbols, uint32_t node) {
    struct innermost_line line;
    if (figure->file || !innermost_caller(&line, image, symbols, node) || !line.symbol->file) return;
    figure->file = strdup(line.symbol->file);
    figure->line = line.symbol->line;
}

/* The name of a site without a call stack. */
static const char *name_of_member(const struct image *image, const char *member) {
    if (is_program(image, member)) return PROGRAM;
    return *member ? text_base_name(member) : "?";
}

static int add_site(struct figures *figures, const struct groups *groups, const struct side *side,
                    struct symbols *symbols, const struct row *row) {
    const struct image *image = side->image;
    char name[FIGURE_KEY_MOST] = "at";
    if (!row->side[0].live_bytes && !row->side[0].live_blocks) return 0;
    if (row->stack && own_stack(image, row->stack_node)) return 0;
    if (row->stack) name_stack(name, sizeof name, image, symbols, row->stack_node);
    if (!name[2]) figure_name_frame(name, sizeof name, "?", name_of_member(image, groups_member(groups, row)));
    if (name_owner(name, sizeof name, groups, row->model, figures->without_origins) < 0 ||
        name_owner(name, sizeof name, groups, row->node, figures->without_origins) < 0)
        return -1;
    struct figure *figure =
        figure_of_side(figures, side, FIGURE_SITE, name, row->side[0].live_bytes, row->side[0].live_blocks);
    if (figure && row->stack) figure_locate(figure, image, symbols, row->stack_node);
    return figure ? 0 : -1;
}

static int add_sites(struct figures *figures, const struct side *side, struct symbols *symbols) {
    struct groups groups;
    groups_begin(&groups, BY_SITE, 2);
    groups.measure = measure_of(figures, side);
    int result = groups_add(&groups, side->image, 0);
    for (size_t i = 0; i < groups.count && result == 0; i++)
        result = add_site(figures, &groups, side, symbols, &groups.rows[i]);
    groups_end(&groups);
    return result;
}

/* --- adding memory of CUDA devices --- */

static int add_cuda_total(struct figures *figures, const struct image *image) {
    const struct sum *sum = &image->cuda.device;
    uint64_t bytes = figures->peak ? cuda_peak(image) : sum->live_bytes, blocks = figures->peak ? 0 : sum->live_blocks;
    return figures_add_cuda(figures, FIGURE_TOTAL, "", bytes, blocks) ? 0 : -1;
}

static int add_cuda(struct figures *figures, const struct image *image, struct symbols *symbols, int what) {
    figures->with_cuda = true;
    if (!image->cuda.used) return 0;
    if (figures->peak) return what & TALLY_OWNERS ? add_cuda_total(figures, image) : 0;
    struct image view = cuda_view(image);
    struct side side = {&view, true};
    int result = view.totals ? 0 : -1;
    if (result == 0 && what & TALLY_OWNERS) result = add_cuda_total(figures, image);
    if (result == 0 && what & TALLY_OWNERS) result = add_owners(figures, &side);
    if (result == 0 && what & TALLY_SITES) result = add_sites(figures, &side, symbols);
    cuda_view_end(&view);
    return result;
}

int tally_add(struct figures *figures, struct image *image, pid_t pid, int what) {
    struct side side = {image, false};
    if (figures->peak) at_peak_choose(image);
    if (what & TALLY_OWNERS && (add_total(figures, image) < 0 || add_owners(figures, &side) < 0)) return -1;
    struct symbols *symbols = what & TALLY_SITES ? symbols_begin(image, pid) : NULL;
    int result = what & TALLY_SITES && !symbols ? -1 : 0;
    if (result == 0 && symbols) result = add_sites(figures, &side, symbols);
    if (result == 0) result = add_cuda(figures, image, symbols, what);
    symbols_end(symbols);
    return result;
}

int tally_file(struct figures *figures, const char *path, int what) {
    static struct subject subject;
    progress_begin();
    int code = subject_open(&subject, path, false);
    if (code != EXIT_FINE) return code;
    bool gone = subject.image.header.state == SNAP_EXECED;
    int result = gone ? 0 : tally_add(figures, &subject.image, subject.pid, what);
    subject_close(&subject);
    progress_end(); /* the next run prints on the same terminal */
    if (result < 0) complain("not enough memory");
    return result < 0 ? EXIT_UNREADABLE : EXIT_FINE;
}

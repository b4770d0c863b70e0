/* figures.h — the memory of a program in several runs: in total, by owner and by call site. A run goes from the
 * program's start to its end. The figures have names that are valid on another machine, too.
 * In: the figures of run after run, or a baseline. Out: a table with the lowest and highest figure of all runs for each
 * entry. Names have the form of a baseline:
 *
 *     model "UNET" "wan.safetensors"                          an owner: kind, name, origin
 *     at "malloc_it@libx.so" "main@prog" of "model:UNET" from "wan.safetensors"
 *                                                             a call site: its innermost frames, its owners, and the
 *                                                             origins of those that are models or custom owners
 *
 * Host memory and memory of CUDA devices are separate figures under the same names. */
#ifndef MEMSTOW_FIGURES_H
#define MEMSTOW_FIGURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uthash.h>

enum figure_kind { FIGURE_TOTAL, FIGURE_OWNER, FIGURE_SITE };
enum { FIGURE_KEY_MOST = 8192 };

struct range {
    uint64_t low, high;
};

struct figure {
    UT_hash_handle hh;
    enum figure_kind kind;
    bool cuda; /* on devices */
    struct range bytes, blocks;
    uint64_t run_bytes, run_blocks; /* figures of the run that is being added */
    char *file;                     /* the source file of a call site; NULL: not known */
    uint32_t line;
    char key[]; /* a letter for the kind and for host or devices, followed by the name */
};

struct figures {
    struct figure *table;
    size_t count;
    uint32_t runs;
    uint64_t floor; /* call sites that stay below this many bytes in every run may be missing; 1: none are missing */
    bool peak;      /* figures of the peak, not of live memory */
    bool with_cuda; /* devices were looked at, so a missing figure of a device means 0 */
    /* Call sites are named without the origins of their owners, as earlier versions of memstow named them. So sites
     * that differ only in the origin of an owner are one site. */
    bool without_origins;
};

void figures_begin(struct figures *figures);
void figures_end(struct figures *figures);

/* Adds bytes and blocks to the figure with this name in the present run. A new name begins a new figure. Returns NULL
 * if there is no memory. */
struct figure *figures_add(struct figures *figures, enum figure_kind kind, const char *name, uint64_t bytes,
                           uint64_t blocks);
struct figure *figures_add_cuda(struct figures *figures, enum figure_kind kind, const char *name, uint64_t bytes,
                                uint64_t blocks);
/* Ends the present run. */
void figures_end_run(struct figures *figures);

/* Removes all runs, so that they can be added again. `peak` and `without_origins` stay as they were. */
void figures_again(struct figures *figures);

/* Returns the figure of host memory (figures_find) or of CUDA memory (figures_find_cuda) with this name, or NULL if
 * there is none. */
struct figure *figures_find(const struct figures *figures, enum figure_kind kind, const char *name);
struct figure *figures_find_cuda(const struct figures *figures, enum figure_kind kind, const char *name);
/* Finds the figure with the name and kind of `like`, a figure of another table. If `like` is a figure of
 * devices, so is the returned figure. Otherwise it is a figure of host memory. Returns NULL if there is none. */
struct figure *figures_find_like(const struct figures *figures, const struct figure *like);
const char *figure_name(const struct figure *figure);
/* Sorts the figures: the total first, then owners, then call sites. In each of these groups, figures of host memory
 * come first. Otherwise figures are sorted by name. The order is the same on every machine. */
void figures_sort(struct figures *figures);

/* Compares each figure with the figure of the same name in `before`, an earlier baseline. If its new range lies in the
 * earlier range, the earlier range is kept. So a new baseline differs only where memory use changed. */
void figures_settle(struct figures *figures, const struct figures *before);
/* Raises the floor until at most `most` call sites are left, and drops the others. A call site that is also in
 * `before` (may be NULL) stays if it has at least half the floor, so that it does not come and go from one baseline
 * to the next. */
void figures_cut(struct figures *figures, const struct figures *before, size_t most);

/* --- names of figures --- */

/* The functions below write names of figures. They cut the parts of a name to a limited length, and paths to their last
 * name. False: the name does not fit. */
bool figure_name_owner(char *to, size_t capacity, const char *kind, const char *name, const char *origin);
/* To make the name of a call site, begin with to = "at". Then call figure_name_frame for each frame, the innermost
 * first, and after that figure_name_of for each owner, if there are any. An origin of "" is left out. */
bool figure_name_frame(char *to, size_t capacity, const char *function, const char *module);
bool figure_name_of(char *to, size_t capacity, const char *kind, const char *name, const char *origin);

/* The name for people: "model UNET (wan.safetensors)", "malloc_it@libx.so < main@prog, model:UNET (wan.safetensors)".
 */
void figure_words(const struct figure *figure, char *to, size_t capacity);

/* What a quoted text of a call site's name is. The texts of other names are all PART_FRAME. */
enum figure_part { PART_FRAME, PART_OWNER, PART_ORIGIN /* of the owner before it */ };
/* Copies the next quoted text of a name to `to`. Returns false if there is no further text. Begin with *next = name and
 * *part = PART_FRAME. */
bool figure_part(const char **next, enum figure_part *part, char *to, size_t capacity);
/* Whether the figure is a call site in whose name an origin may stand: the name has an origin, or it has a model or
 * custom owner. (The name has no origin of such an owner if the origin is empty.) */
bool figure_has_origin(const struct figure *figure);

#endif

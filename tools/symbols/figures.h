/* figures.h — what runs of a program held: in all, of each owner, at each call site, by names that mean the same on
 * another machine. In: figures of one run after the other, or a baseline. Out: a table, and of each entry the lowest
 * and the highest that any run had. Names are kept as a baseline has them:
 *
 *     model "UNET" "wan.safetensors"                          an owner: kind, name, origin
 *     at "malloc_it@libx.so" "main@prog" of "model:UNET"      a call site: its innermost frames, and whose it is
 *
 * Host memory, and memory of CUDA devices, are figures of their own, under the same names. */
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
    bool cuda; /* of devices */
    struct range bytes, blocks;
    uint64_t run_bytes, run_blocks; /* of the run that is being added */
    char *file;                     /* where the source of a call site is, if it is known; NULL */
    uint32_t line;
    char key[]; /* a letter for the kind and the place, and the name */
};

struct figures {
    struct figure *table;
    size_t count;
    uint32_t runs;
    uint64_t floor; /* call sites that held less in every run may be missing; 1: none are */
    bool peak;      /* they are of the peak, not of what is live */
    bool with_cuda; /* what is not there of devices is nothing; else nobody has looked */
};

void figures_begin(struct figures *figures);
void figures_end(struct figures *figures);

/* Adds to what the present run had. NULL: no memory. */
struct figure *figures_add(struct figures *figures, enum figure_kind kind, const char *name, uint64_t bytes,
                           uint64_t blocks);
struct figure *figures_add_cuda(struct figures *figures, enum figure_kind kind, const char *name, uint64_t bytes,
                                uint64_t blocks);
/* The run is over. */
void figures_end_run(struct figures *figures);

/* Takes back all runs: they are to be added once more. */
void figures_again(struct figures *figures);

/* NULL: there is none. */
struct figure *figures_find(const struct figures *figures, enum figure_kind kind, const char *name);
struct figure *figures_find_cuda(const struct figures *figures, enum figure_kind kind, const char *name);
/* The same figure of other runs. */
struct figure *figures_find_like(const struct figures *figures, const struct figure *like);
const char *figure_name(const struct figure *figure);
/* The same order everywhere: total, owners, call sites, of each the host's first, by name. */
void figures_sort(struct figures *figures);

/* What was between `low` and `high` before, and still is, stays as it was written: a baseline that is made again
 * differs where something changed. */
void figures_settle(struct figures *figures, const struct figures *before);
/* Raises the floor until at most `most` call sites are left, and drops the others. Those that `before` lists (NULL: no
 * such) stay down to half the floor, so that none comes and goes. */
void figures_cut(struct figures *figures, const struct figures *before, size_t most);

/* --- names --- */

/* Their parts are cut to a bounded length, and paths to their last name. False when there is no room. */
bool figure_name_owner(char *to, size_t room, const char *kind, const char *name, const char *origin);
/* Begin with to = "at"; then the frames, innermost first; then, if somebody owns it, owners. */
bool figure_name_frame(char *to, size_t room, const char *function, const char *module);
bool figure_name_of(char *to, size_t room, const char *kind, const char *name);

/* The same in words: "model UNET (wan.safetensors)", "malloc_it@libx.so < main@prog, model:UNET". */
void figure_words(const struct figure *figure, char *to, size_t room);

/* Goes through the texts of a name: false at the end. `owner`: it is behind "of". Begin with *next = name. */
bool figure_part(const char **next, bool *owner, char *to, size_t room);

#endif

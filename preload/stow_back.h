/* stow_back.h — a range that a stow file backs, whole and back in memory that no file backs.
 * In: a range in one private file mapping of ours. Out: STOW_DONE, or why not, and the range is as it was. What was
 * written to it since it was stowed stays, and so does what is written meanwhile; without userfaultfd that takes a
 * caller who knows that nobody does. The caller sees to it that nobody unmaps the range, and that this thread runs no
 * handler. */
#ifndef MEMSTOW_STOW_BACK_H
#define MEMSTOW_STOW_BACK_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

enum { BACK_CHUNK = 16 << 20 };

struct stow_back {
    bool mine; /* nobody else uses what comes back */
    bool moves;
    int uffd, pagemap;
    int pipe[2], stop;
    uint64_t pipe_room;
    char *room;
    uint64_t room_length;
    char *text;
    struct stow_thread *listener;
};

uint32_t back_begin(struct stow_back *self, bool mine);
void back_end(struct stow_back *self);

/* At most BACK_CHUNK bytes. *done: how much is back, which may be a part where it is refused, too. */
uint32_t back_in(struct stow_back *self, uint64_t start, uint64_t length, uint64_t *done);

/* The range comes next: the kernel may begin to read it. */
void back_expect(const struct stow_back *self, uint64_t start, uint64_t length);

#pragma GCC visibility pop

#endif

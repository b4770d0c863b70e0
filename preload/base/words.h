/* words.h — a table from 64-bit words to 32-bit numbers that any thread reads without a lock.
 * In: words other than 0 and 1. Out: the number that was put there. One thread at a time may put (the caller sees to
 * that); any may take out, at any time. Memory is the arena's: tables only grow, and outgrown ones are left behind. */
#ifndef MEMSTOW_WORDS_H
#define MEMSTOW_WORDS_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

struct words_table;
struct words {
    struct words_table *table; /* NULL: empty */
};
enum { WORDS_NONE = UINT32_MAX };

/* WORDS_NONE when it is not there. Of a word that is taken out and put in again while one looks, it may be the number
 * of another that was there in between: who puts words in again looks at what the number stands for. */
uint32_t words_find(const struct words *self, uint64_t word);

/* The word must not be there. False: no memory. */
bool words_put(struct words *self, uint64_t word, uint32_t number);

/* True when it was there. A reader that looks for the word meanwhile may still see it: the caller knows that there is
 * none, or that it does not matter. */
bool words_take_out(struct words *self, uint64_t word);

/* Forgets all; nobody else may be at it. */
void words_clear(struct words *self);

#pragma GCC visibility pop

#endif

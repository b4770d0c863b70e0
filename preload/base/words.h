/* words.h — a table from 64-bit words to 32-bit numbers that any thread reads without a lock.
 * In: words other than 0 and 1. Out: the number of a word. Only one thread at a time may put words in; the caller
 * ensures that. Any thread may take a word out, at any time. The tables lie in memory of the arena (arena.h), so a
 * table that was replaced by a larger one is never freed. */
#ifndef MEMSTOW_WORDS_H
#define MEMSTOW_WORDS_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

struct words_table;
struct words {
    struct words_table *table; /* NULL: no word was put in yet */
};
enum { WORDS_NONE = UINT32_MAX };

/* The number of a word; WORDS_NONE: the word is not in the table. If thread A takes the word out and puts it in again
 * while thread B looks it up, B may get the number of another word that was in the slot in between. So a caller that
 * puts words in again must check that the number it gets belongs to the word. */
uint32_t words_find(const struct words *self, uint64_t word);

/* Puts in a word and its number. The word must not be there. False: there is no memory. */
bool words_put(struct words *self, uint64_t word, uint32_t number);

/* Takes a word out. True: the word was there. A thread that looks for the word meanwhile may still find it: the caller
 * makes sure that no thread looks for it, or that finding it does no harm. */
bool words_take_out(struct words *self, uint64_t word);

/* Forgets all words. No other thread may use the table meanwhile. */
void words_clear(struct words *self);

#pragma GCC visibility pop

#endif

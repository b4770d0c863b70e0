/* words.h — a table from 64-bit words to 32-bit numbers that any thread reads without a lock.
 * In: words other than 0 and 1. Out: the number of a word. One thread at a time may put; the caller ensures that. Any
 * thread may take out, at any time. Memory is the arena's: tables only grow, and outgrown ones are left behind. */
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

/* WORDS_NONE: the word is not there. If thread A takes a word out and puts it in again while thread B looks, B may get
 * the number of another word that was there in between. So a caller that puts words in again checks what the number
 * stands for. */
uint32_t words_find(const struct words *self, uint64_t word);

/* The word must not be there. False: no memory. */
bool words_put(struct words *self, uint64_t word, uint32_t number);

/* True: it was there. A reader that looks for the word meanwhile may still see it: the caller knows that there is no
 * such reader, or that it does not matter. */
bool words_take_out(struct words *self, uint64_t word);

/* Forgets all words. No other thread may use the table meanwhile. */
void words_clear(struct words *self);

#pragma GCC visibility pop

#endif

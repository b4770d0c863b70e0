/* ledger_strings.h — the texts of the ledger.
 * In: texts and facts, from any file. Out: positions in the pool of strings, by which records name them. A text that
 * does not fit has the position 0, which is "". */
#ifndef MEMSTOW_LEDGER_STRINGS_H
#define MEMSTOW_LEDGER_STRINGS_H

#include <stdint.h>

#include "preload/shared/snapshot.h"

#pragma GCC visibility push(hidden)

/* Appends the text to the pool of strings and returns its position. 0: the text is empty or too long, or there is no
 * memory for it. */
uint32_t ledger_string(const char *text);
/* The string at a position; "" if there is none, or if it lies behind the first 16 MiB. */
const char *ledger_text(uint32_t at);

/* Adds a fact about the process. If there is no memory, the fact is left out. */
void ledger_fact(enum snap_fact_key key, const char *text);

/* Forgets all texts and facts, for ledger_abandon. */
void ledger_strings_abandon(void);

#pragma GCC visibility pop

#endif

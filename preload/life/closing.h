/* closing.h — the last records of a ledger, written at an orderly end of the process: thread names, the picture of the
 * peak, overwritten headers (misuse.h), and which memory is resident.
 * In: the tables of this process. Out: records in the ledger. The thread that ends the process calls it, once. */
#ifndef MEMSTOW_CLOSING_H
#define MEMSTOW_CLOSING_H

#pragma GCC visibility push(hidden)

void closing_write(void);

#pragma GCC visibility pop

#endif

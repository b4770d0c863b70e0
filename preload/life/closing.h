/* closing.h — the records that a ledger gets at an orderly end: thread names, the picture of the peak, residency.
 * In: the tables of this process. Out: records in the ledger. Runs once, on the thread that ends the process. */
#ifndef MEMSTOW_CLOSING_H
#define MEMSTOW_CLOSING_H

#pragma GCC visibility push(hidden)

void closing_write(void);

#pragma GCC visibility pop

#endif

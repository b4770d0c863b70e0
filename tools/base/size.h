/* size.h — parses sizes ("64K", "1.5MiB", "4096") and counts.
 * In: a text. Out: bytes, or a number. The locale makes no difference. */
#ifndef MEMSTOW_SIZE_H
#define MEMSTOW_SIZE_H

#include <stdbool.h>

/* Parses a text that is one size. Returns false if the text is or contains anything else. */
bool size_parse(const char *string, double *bytes);
/* Parses the number at the beginning. Returns the end of the number, or NULL if there is none. */
const char *size_number(const char *string, double *value);
/* Parses a text that is one whole number from `least` to `most`, in digits alone. Returns false for any other text. */
bool size_parse_count(const char *string, unsigned long least, unsigned long most, unsigned long *count);
/* Sets *factor to the bytes in a unit: 1 for "" and "B", 1024 for "K", "KB" and "KiB"; likewise M, G and T. Case does
 * not matter. False: there is no such unit. */
bool size_unit(const char *unit, double *factor);

#endif

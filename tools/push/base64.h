/* base64.h — bytes as letters. In: bytes. Out: a text. */
#ifndef MEMSTOW_BASE64_H
#define MEMSTOW_BASE64_H

#include <stddef.h>

/* The letters a base64 text of this many bytes has. */
#define BASE64_LENGTH(bytes) (((bytes) + 2) / 3 * 4)
/* Writes BASE64_LENGTH(length) letters, and nothing behind them. */
void base64_write(char *to, const void *bytes, size_t length);

#endif

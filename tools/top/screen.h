/* screen.h — the terminal, by way of ncurses. Only screen.c knows of ncurses.
 * In: lines of text. Out: the picture on the terminal, and the keys that the user presses. It leaves the terminal as it
 * was before, also at a signal. Messages on standard error are held back until the end. */
#ifndef MEMSTOW_TOP_SCREEN_H
#define MEMSTOW_TOP_SCREEN_H

#include "tools/top/keys.h"

#include <stdbool.h>
#include <stddef.h>

enum screen_style { SCREEN_PLAIN, SCREEN_BOLD, SCREEN_BAR, SCREEN_CURVE, SCREEN_GREW, SCREEN_FAINT };

/* Takes over the terminal. Returns 0, or -1 with the reason: there is no terminal, or it cannot show the picture. */
int screen_begin(char *error, size_t size);
void screen_end(void);

int screen_lines(void);
int screen_columns(void);
void screen_clear(void);
/* Puts a text on a line. Text that does not fit is cut. */
void screen_put(int line, const char *text, enum screen_style style);
void screen_show(void);

/* Waits for a key: a character, or a member of enum key. KEY_NONE: no key came in time, or a signal came. */
int screen_key(int milliseconds);
/* Whether a signal told the command to end. */
bool screen_is_over(void);

const char *screen_version(void);

#endif

/* folded.h — a sink (profile.h) that writes folded stacks, "outermost;…;innermost BYTES", for flame graph programs.
 * In: frames, one by one. Out: lines on standard output. Separators inside of names are replaced. */
#ifndef MEMSTOW_FOLDED_H
#define MEMSTOW_FOLDED_H

#include "tools/export/profile.h"

struct folded_line; /* a line that is kept until folded_end() */
struct folded {
    struct profile_sink sink; /* used: bytes of the present stack's text */
    char *text;
    size_t capacity;
    struct folded_line *lines;
};

/* A native frame is the name of its function, a Python frame "py:FUNCTION (FILE:LINE)".
 * If `pairs` is true, the profile compares two reports: each line has the amount before and the amount after. In
 * this case, lines with the same text are added up, and folded_end() writes the sums. The reason is that flamegraph.pl
 * colours a text by its second amount, so it must find each text only once. */
void folded_begin(struct folded *folded, bool pairs);
void folded_end(struct folded *folded);

#endif

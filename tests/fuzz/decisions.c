/* decisions.c — fuzz target: any lines of a trace are read, checked and printed without harm. An input is lines of
 * text. Lines that are no JSON objects are left out, and leave a gap in the numbers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/decisions/decisions.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Appends a record to the trace, as the reader would. */
static void append(struct image *image, uint64_t number, const char *text, size_t length) {
    struct snap_line head = {.length = (uint32_t)length, .number = number};
    memcpy(image->trace + image->trace_size, &head, sizeof head);
    memcpy(image->trace + image->trace_size + sizeof head, text, length);
    image->trace_size += (sizeof head + length + 7) & ~(size_t)7;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct image image = {.trace_size = sizeof(struct snap_ring)};
    struct decisions decisions;
    const char *text = (const char *)data, *end = text + size;
    image.trace = calloc(1, sizeof(struct snap_ring) + 24 * (size + 1));
    FILE *nowhere = fopen("/dev/null", "w");
    for (uint64_t number = 1; image.trace && text < end; number++) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        size_t length = (size_t)((stop ? stop : end) - text);
        if (length <= SNAP_LINE_MOST && jsontext_is_object(text, length)) append(&image, number, text, length);
        text += length + 1;
    }
    if (image.trace && nowhere && decisions_load(&decisions, &image) == 0) {
        decisions_print(&decisions, &image, nowhere);
        decisions_clear(&decisions);
    }
    if (nowhere) fclose(nowhere);
    image_clear(&image);
    return 0;
}

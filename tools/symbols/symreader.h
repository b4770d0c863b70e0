/* symreader.h — a separate process, the reader, that reads symbol files.
 * In: a module and an address. Out: names, or what is wrong with the file. If a file makes the reader crash, the next
 * question starts a new reader. */
#ifndef MEMSTOW_SYMREADER_H
#define MEMSTOW_SYMREADER_H

#include "tools/image/image.h"
#include "tools/symbols/symfile.h"

#include <sys/types.h>

struct symreader {
    const struct image *image;
    pid_t target; /* the process that the image is of, or 0 */
    pid_t pid;    /* 0: not started */
    int socket;
};

enum { SYMREADER_ANSWER_MAX = 1 << 16 };

/* The head of an answer. `count` times {uint32_t line, function, NUL, file, NUL} follow, with "" for unknown texts. */
struct symreader_answer {
    uint32_t size;  /* including this head */
    uint16_t state; /* enum symfile_state */
    uint16_t count;
    int32_t error; /* the errno that explains SYMFILE_NO_MEANS */
};

/* Asks for the names of an address in the module's file. Returns false if the reader crashed or did not answer in time.
 * Returns true, and the state SYMFILE_NO_MEANS, if the reader cannot be started or lacks memory. */
bool symreader_ask(struct symreader *reader, uint32_t module, uint64_t address, struct symreader_answer *answer);
void symreader_end(struct symreader *reader);

#endif

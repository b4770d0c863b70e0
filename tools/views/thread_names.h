/* thread_names.h — names for the rows of a view by thread, and notes on rows that are not a thread.
 * In: an image. Out: names. The same threads of two runs get the same names, unless thread ids are asked for. */
#ifndef MEMSTOW_THREAD_NAMES_H
#define MEMSTOW_THREAD_NAMES_H

#include "tools/image/image.h"

#define THREADS_MAPPINGS "(mappings)"
#define THREADS_SHARED "(threads without a table)"
#define THREADS_EARLIER "(earlier threads)"
#define THREADS_INHERITED "(inherited)"

struct thread_name {
    char text[64];
};

/* with_tid: adds the thread id if another thread has the same name, or if there are too many threads to find that
 * out. */
struct thread_name thread_name(const struct image *image, size_t slot, bool with_tid);
/* A sentence about a row that is not a thread; NULL for a thread. */
const char *thread_name_note(const char *name);

#endif

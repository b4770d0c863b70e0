/* report_threads.c — footnotes of the report by thread; see report.h. */
#include "tools/report/report.h"
#include "tools/base/text.h"
#include "tools/views/thread_names.h"

#include <stdio.h>

void report_text_thread_notes(const struct groups *groups, size_t shown) {
    for (size_t i = 0; i < shown; i++) {
        const char *name = groups_member(groups, groups_row(groups, i));
        const char *note = thread_name_note(name);
        if (note) printf("  %s: %s\n", name, note);
    }
}

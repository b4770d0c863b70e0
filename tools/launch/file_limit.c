/* file_limit.c — see file_limit.h. */
#include "tools/launch/file_limit.h"

#include <signal.h>
#include <stddef.h>

static struct sigaction outer_action;

void file_limit_begin(void) {
    struct sigaction ignored = {.sa_handler = SIG_IGN};
    sigaction(SIGXFSZ, &ignored, &outer_action);
}

void file_limit_restore(void) { sigaction(SIGXFSZ, &outer_action, NULL); }

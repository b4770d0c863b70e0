/* complain.c — see complain.h. */
#include "tools/base/complain.h"
#include "tools/base/progress.h"
#include "tools/base/text.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void complain(const char *format, ...) {
    va_list arguments;
    progress_hide();
    va_start(arguments, format);
    fputs("memstow: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    progress_go_on();
}

int complain_usage(const char *command, const char *format, ...) {
    va_list arguments;
    progress_hide();
    va_start(arguments, format);
    fputs("memstow: ", stderr);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, " (see 'memstow %s --help')\n", command);
    va_end(arguments);
    progress_go_on();
    return EXIT_USAGE;
}

int complain_option(const char *command, int result, char **argv) {
    const char *given = argv[optind - 1];
    char letter[3] = {'-', (char)optopt, 0};
    if (strncmp(given, "--", 2) != 0 && optopt) given = letter;
    int length = (int)strcspn(given, "=");
    if (result == ':') return complain_usage(command, "%.*s needs a value", length, given);
    if (optopt && strncmp(given, "--", 2) == 0) return complain_usage(command, "%.*s takes no value", length, given);
    return complain_usage(command, "unknown option %s", TEXT_SAFE(given));
}

int complain_finish(int code) {
    progress_end();
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout)) return code;
    if (!errno) { /* an earlier write failed, and its errno is lost: another write fails in the same way, and sets it */
        clearerr(stdout);
        putchar('\n');
        fflush(stdout);
    }
    if (errno != EPIPE) complain("the output could not be written: %s", errno ? strerror(errno) : "write error");
    return EXIT_UNREADABLE;
}

/* expect.h — how a program test states the expectations of its report (tests/expectations.py has the protocol). Nothing
 * here allocates, so that a program knows its own live bytes exactly. */
#ifndef EXPECT_H
#define EXPECT_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((format(printf, 1, 2), unused)) static void say(const char *format, ...) {
    char line[512];
    va_list list;
    va_start(list, format);
    int n = vsnprintf(line, sizeof line - 1, format, list);
    va_end(list);
    line[n++] = '\n';
    if (write(STDOUT_FILENO, line, (size_t)n) != n) _exit(3);
}

#define EXPECT(path, value) say("expect " path " == %llu", (unsigned long long)(value))

/* Ends the program with a message if a condition is false. */
#define MUST(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            say("%s:%d: not so: %s", __FILE__, __LINE__, #condition);                                                  \
            _exit(2);                                                                                                  \
        }                                                                                                              \
    } while (0)

#endif

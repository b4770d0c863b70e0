/* complain.h — common to all subcommands: exit codes, error messages, and the end of the output.
 * In: a text. Out: "memstow: …" on standard error, and the exit code. */
#ifndef MEMSTOW_COMPLAIN_H
#define MEMSTOW_COMPLAIN_H

enum exit_code {
    EXIT_FINE = 0,
    EXIT_OVER = 1,       /* a limit was passed, a fault or leak was found, or a process did not do as asked */
    EXIT_USAGE = 2,      /* wrong usage */
    EXIT_UNREADABLE = 3, /* input unreadable or damaged; or output that could not be written */
    EXIT_PROGRAM = 4,    /* memstow check and lifecycle: the program that they ran has failed by itself */
    EXIT_CANNOT_TELL = 5 /* memstow leaks: no verdict, because of too few runs, uneven growth or too much garbage */
};

/* Prints "memstow: …" on standard error. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* As complain, and refers the user to the help of `command`. Returns EXIT_USAGE. */
int complain_usage(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Says which option of `command` is wrong, after getopt_long has returned `result`: '?' or ':'. Returns EXIT_USAGE. */
int complain_option(const char *command, int result, char **argv);
/* Flushes standard output at the end of a command, and returns `code`. If the output could not be written, returns
 * EXIT_UNREADABLE instead, after an error message (none if standard output is a pipe that its reader has closed). */
int complain_finish(int code);

#endif

/* complain.h — common to all subcommands: exit codes, complaints, and the end of the output.
 * In: a text. Out: "memstow: …" on standard error, and the exit code. */
#ifndef MEMSTOW_COMPLAIN_H
#define MEMSTOW_COMPLAIN_H

enum exit_code {
    EXIT_FINE = 0,
    EXIT_OVER = 1,       /* over a limit, or a fault was found, or the asked process failed the request */
    EXIT_USAGE = 2,      /* wrong usage */
    EXIT_UNREADABLE = 3, /* input unreadable or damaged; or output that could not be written */
    EXIT_PROGRAM = 4,    /* the program under check failed itself */
    EXIT_CANNOT_TELL = 5 /* leaks: too few runs, uneven growth, or too much garbage to say that there is no leak */
};

/* Prints "memstow: …" on standard error. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* As complain, and names the command whose help to read. Returns EXIT_USAGE. */
int complain_usage(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* After getopt_long returned '?' or ':': says which option was wrong. Returns EXIT_USAGE. */
int complain_option(const char *command, int result, char **argv);
/* Flushes standard output. Returns code, or EXIT_UNREADABLE with a complaint if it could not be written. A closed pipe
 * gets no complaint. */
int complain_finish(int code);

#endif

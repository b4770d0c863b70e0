/* complain.h — what every subcommand says in the same way: exit codes, complaints, and the end of the output.
 * In: a text. Out: "memstow: …" on stderr, and the code to leave with. */
#ifndef MEMSTOW_COMPLAIN_H
#define MEMSTOW_COMPLAIN_H

enum exit_code {
    EXIT_FINE = 0,
    EXIT_OVER = 1,       /* over a threshold, or a fault found; or a process did not do what it was asked for */
    EXIT_USAGE = 2,      /* wrong usage */
    EXIT_UNREADABLE = 3, /* input unreadable or damaged; or output that could not be written */
    EXIT_PROGRAM = 4,    /* the program under check failed by itself */
    EXIT_CANNOT_TELL = 5 /* leaks: there are too few runs, or too much garbage, to say that there is no leak */
};

/* "memstow: …" on stderr. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same, and where the help of the command is; EXIT_USAGE. */
int usage_error(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* After getopt_long returned '?' or ':' — says which option was wrong; EXIT_USAGE. */
int option_error(const char *command, int result, char **argv);
/* Flushes stdout: code, or EXIT_UNREADABLE when it could not be written. A closed pipe is not talked about. */
int finish_output(int code);

#endif

/* file_limit.h — a write beyond RLIMIT_FSIZE fails, and does not kill the command.
 * In: nothing. Out: such a write fails with EFBIG, so the command says so and removes its unfinished file. For this,
 * the command ignores SIGXFSZ. A program that the command starts must get back the disposition of SIGXFSZ that the
 * command itself was started with. */
#ifndef MEMSTOW_FILE_LIMIT_H
#define MEMSTOW_FILE_LIMIT_H

/* Ignores SIGXFSZ. Call it once, at the start of the command. */
void file_limit_begin(void);
/* Restores SIGXFSZ, shortly before exec. */
void file_limit_restore(void);

#endif

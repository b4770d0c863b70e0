/* symreader.c — see symreader.h. */
#include "tools/symbols/symreader.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    PATIENCE_MS = 60000, /* limit for one answer; the debug information of the largest libraries takes seconds */
    STRING_MAX = 8000,
    ENDING_MS = 1000,
};

struct question {
    uint64_t address;
    uint32_t module, pad;
};

/* ---- in the reader process */

/* Opens a module's file as the process sees it, because a process in a container has other files under the same names.
 * If that fails, opens the file that has the same path for this command. */
static struct symfile *open_module(const struct symreader *reader, const struct snap_module *module) {
    const char *path = image_string(reader->image, module->path);
    size_t length = module->build_id_length <= sizeof module->build_id ? module->build_id_length : 0;
    char inside[4200];
    if (reader->target) {
        snprintf(inside, sizeof inside, "/proc/%d/root%s", (int)reader->target, path);
        struct symfile *file = symfile_open(inside, module->build_id, length);
        if (!file || symfile_state(file) != SYMFILE_MISSING) return file;
        symfile_close(file);
    }
    return symfile_open(path, module->build_id, length);
}

static size_t put_string(char *to, const char *string) {
    size_t length = string ? strnlen(string, STRING_MAX) : 0;
    if (length) memcpy(to, string, length);
    to[length] = 0;
    return length + 1;
}

static size_t put_names(char *to, const struct symfile_name *names, size_t count, uint16_t *put) {
    size_t used = sizeof(struct symreader_answer), most = sizeof names->line + 2 * (STRING_MAX + 1);
    for (*put = 0; *put < count && used + most <= SYMREADER_ANSWER_MAX; ++*put) {
        const struct symfile_name *name = &names[*put];
        memcpy(to + used, &name->line, sizeof name->line);
        used += sizeof name->line;
        used += put_string(to + used, name->function);
        used += put_string(to + used, name->file);
    }
    return used;
}

static bool send_all(int socket, const void *bytes, size_t size) {
    for (size_t done = 0; done < size;) {
        ssize_t sent = send(socket, (const char *)bytes + done, size - done, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return false;
        done += (size_t)sent;
    }
    return true;
}

static bool receive_all(int socket, void *bytes, size_t size) {
    for (size_t done = 0; done < size;) {
        ssize_t got = recv(socket, (char *)bytes + done, size - done, MSG_WAITALL);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        done += (size_t)got;
    }
    return true;
}

static struct symreader_answer lack_of(int error) {
    return (struct symreader_answer){
        .size = sizeof(struct symreader_answer), .state = SYMFILE_NO_MEANS, .error = error};
}

static bool send_lack(int socket, int error) {
    struct symreader_answer answer = lack_of(error);
    return send_all(socket, &answer, sizeof answer);
}

static bool symreader_answer_one(const struct symreader *reader, struct symfile **files,
                                 const struct question *question) {
    static union {
        struct symreader_answer head;
        char bytes[SYMREADER_ANSWER_MAX];
    } out;
    struct symfile_name names[SYMFILE_NAMES_MAX];
    struct symfile **file = &files[question->module];
    if (!*file) *file = open_module(reader, &reader->image->modules[question->module]);
    if (!*file) return send_lack(reader->socket, ENOMEM);
    size_t count = symfile_lookup(*file, question->address, names);
    out.head.state = (uint16_t)symfile_state(*file);
    out.head.error = symfile_error(*file);
    out.head.size = (uint32_t)put_names(out.bytes, names, count, &out.head.count);
    return send_all(reader->socket, out.bytes, out.head.size);
}

/* Silences elfutils, which would print a line of its own beside ours. It is not enough to replace the stream stderr:
 * when there is no memory, glibc's assert writes to the descriptor. With sanitizers the descriptor stays, because they
 * need it for their reports. */
static void silence_elfutils(void) {
    static char nowhere[256];
    FILE *silent = fmemopen(nowhere, sizeof nowhere, "w");
    if (silent) stderr = silent;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null >= 0 && null != STDERR_FILENO) {
        dup2(null, STDERR_FILENO);
        close(null);
    }
#endif
}

/* Removes the signal handlers of the asking process, which the reader must not run. For example, ncurses' handler for
 * Ctrl-Z would give the terminal back, and stop the reader. The reader ignores Ctrl-Z, so that Ctrl-Z stops only the
 * asking process. `mask`: the signals that were blocked before the fork. */
static void leave_handlers(const sigset_t *mask) {
    static const int handled[] = {SIGBUS, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCONT, SIGWINCH};
    for (size_t i = 0; i < sizeof handled / sizeof *handled; i++) signal(handled[i], SIG_DFL);
    signal(SIGTSTP, SIG_IGN);
    sigprocmask(SIG_SETMASK, mask, NULL);
}

static void symreader_serve(const struct symreader *reader) {
    struct question question;
    struct symfile **files = calloc(reader->image->module_count + 1, sizeof *files);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    silence_elfutils();
    unsetenv("DEBUGINFOD_URLS"); /* elfutils would ask the servers that this variable names */
    while (files && receive_all(reader->socket, &question, sizeof question))
        if (question.module >= reader->image->module_count || !symreader_answer_one(reader, files, &question)) break;
    _exit(0);
}

/* ---- in the asking process */

/* Starts the reader process. Returns 0 or an errno. */
static int symreader_start(struct symreader *reader) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) return errno;
    fflush(stdout); /* ThreadSanitizer's _exit writes what stdout holds: the child would write it a second time */
    sigset_t all, mask;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &mask);
    reader->pid = fork();
    int error = errno;
    if (reader->pid == 0) {
        leave_handlers(&mask);
        close(pair[0]);
        reader->socket = pair[1];
        symreader_serve(reader);
    }
    sigprocmask(SIG_SETMASK, &mask, NULL);
    close(pair[1]);
    reader->socket = pair[0];
    if (reader->pid > 0) return 0;
    close(pair[0]);
    reader->pid = 0;
    return error;
}

/* Ends the reader process, and returns its wait status. If `ends` is set, the reader has closed its socket, so it is
 * about to end: it gets up to ENDING_MS for that. Otherwise it is killed at once. */
static int end_reader(struct symreader *reader, bool ends) {
    const struct timespec pause = {.tv_nsec = 1000000};
    int status = 0;
    close(reader->socket);
    for (int i = 0; ends && i < ENDING_MS; i++) {
        if (waitpid(reader->pid, &status, WNOHANG) == reader->pid) {
            reader->pid = 0;
            return status;
        }
        nanosleep(&pause, NULL);
    }
    kill(reader->pid, SIGKILL);
    while (waitpid(reader->pid, &status, 0) < 0 && errno == EINTR) continue;
    reader->pid = 0;
    return status;
}

void symreader_end(struct symreader *reader) {
    if (reader->pid) end_reader(reader, false);
}

static bool comes_back(int socket) {
    struct pollfd wait = {.fd = socket, .events = POLLIN};
    int ready;
    do ready = poll(&wait, 1, PATIENCE_MS);
    while (ready < 0 && errno == EINTR);
    return ready == 1;
}

bool symreader_ask(struct symreader *reader, uint32_t module, uint64_t address, struct symreader_answer *answer) {
    struct question question = {.address = address, .module = module};
    int error = reader->pid ? 0 : symreader_start(reader);
    if (error) {
        *answer = lack_of(error);
        return true;
    }
    bool comes = send_all(reader->socket, &question, sizeof question) && comes_back(reader->socket);
    if (comes && receive_all(reader->socket, answer, sizeof *answer) && answer->size >= sizeof *answer &&
        answer->size <= SYMREADER_ANSWER_MAX && receive_all(reader->socket, answer + 1, answer->size - sizeof *answer))
        return true;
    int status = end_reader(reader, comes);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != SYMFILE_ENDED_FOR_MEMORY) return false;
    *answer = lack_of(ENOMEM);
    return true;
}

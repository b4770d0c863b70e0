/* leftovers.c — see leftovers.h. */
#include "tools/watch/leftovers.h"
#include "tools/base/duration.h"
#include "tools/proc/holdings.h"
#include "tools/watch/origins.h"
#include "tools/proc/process.h"
#include "tools/proc/python_threads.h"
#include "tools/base/text.h"

#include <stdlib.h>

enum { INDENT = 4, SITES = 3, THREADS_SHOWN = 24, HANDLES_SHOWN = 12, MAPPED_SHOWN = 8, GROWTH_LEAST = 1000 };

static uint64_t age_of(uint64_t start_ticks) {
    struct process process = {.start_ticks = start_ticks};
    return process_age(&process);
}

static void leftovers_print_head(FILE *to, const struct family *family, const struct member *member) {
    double growth = family_member_growth(member, family->looked_ns);
    fprintf(to, "  %s, pid %d", text_fit(member->name, 31).s, (int)member->pid);
    if (member->pid == family->main)
        fputs(" (the program itself)", to);
    else if (member->orphan && member->parent)
        fprintf(to, " (orphan: process %d that started it has ended)", (int)member->parent);
    else if (member->orphan)
        fputs(" (orphan: the process that started it has ended)", to);
    else
        fprintf(to, " (child of %d)", (int)member->parent);
    fprintf(to, ": %s, %s old", text_size(member->rss).s, text_duration(age_of(member->start_ticks)).s);
    if (growth >= GROWTH_LEAST) fprintf(to, ", grows by %s/s", text_size((uint64_t)growth).s);
    uint64_t busy = member->processor_ns - member->since_processor_ns;
    uint64_t span = family->looked_ns - member->since_ns;
    if (span > SECOND_NS / 2 && busy * 100 / span >= 5)
        fprintf(to, ", %u%% of a processor", (unsigned)(busy * 100 / span));
    fputc('\n', to);
}

static void print_growth(FILE *to, struct member *member) {
    if (!member->growth) return;
    char *lines = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&lines, &size);
    if (!memory) return;
    double rate = growth_tell(member->growth, memory, INDENT + 2, SITES);
    fclose(memory);
    if (rate >= GROWTH_LEAST)
        fprintf(to, "%*sits live memory grows by %s/s%s\n", INDENT, "", text_size((uint64_t)rate).s, size ? ":" : "");
    else if (size)
        fprintf(to, "%*sits live memory does not grow on the whole, but:\n", INDENT, "");
    if (size) fputs(lines, to);
    free(lines);
}

/* Writes to `words` what Python knows about a thread, for example "; Python's daemon, 'worker', in get". Writes "" if
 * Python does not know the thread. */
static void python_words(const struct python_threads *threads, pid_t tid, char *words, size_t size) {
    static const char *const kinds[] = {"Python's main thread", "Python's daemon", "Python waits for it at exit",
                                        "runs Python"};
    const struct python_thread *thread = python_threads_find(threads, tid);
    words[0] = 0;
    if (!thread) return;
    size_t used = (size_t)snprintf(words, size, "; %s", kinds[thread->daemon]);
    if (thread->name[0]) used += (size_t)snprintf(words + used, size - used, ", '%s'", thread->name);
    if (thread->function[0]) snprintf(words + used, size - used, ", in %s", thread->function);
}

static void print_threads(FILE *to, const struct holdings *holdings, struct origins *origins) {
    struct python_threads python;
    char words[400];
    size_t shown = holdings->task_count < THREADS_SHOWN ? holdings->task_count : THREADS_SHOWN;
    python_threads_load(&python, holdings->pid);
    fprintf(to, "%*s%zu thread%s\n", INDENT, "", holdings->task_count, holdings->task_count == 1 ? "" : "s");
    for (size_t i = 0; i < shown; i++) {
        const struct task *task = &holdings->tasks[i];
        python_words(&python, task->tid, words, sizeof words);
        fprintf(to, "%*s%d %s%s, since %s: %s%s\n", INDENT + 2, "", (int)task->tid, text_fit(task->name, 16).s,
                task->tid == holdings->pid ? " (main thread)" : "", text_duration(age_of(task->start_ticks)).s,
                text_fit(task->waits, 120).s, text_fit(words, 200).s);
        origins_of_task(origins, task, to, INDENT + 4);
    }
    python_threads_clear(&python);
    if (shown < holdings->task_count) fprintf(to, "%*s… and %zu more\n", INDENT + 2, "", holdings->task_count - shown);
}

static void print_kind(FILE *to, const struct holdings *holdings, enum handle_kind kind, struct origins *origins) {
    size_t count = holdings->of_kind[kind], shown = 0;
    if (!count) return;
    origins_list(origins);
    fprintf(to, "%*s%zu %s\n", INDENT, "", count, handle_kind_word(kind, count > 1));
    for (size_t i = 0; i < holdings->handle_count && shown < HANDLES_SHOWN; i++) {
        const struct handle *handle = &holdings->handles[i];
        if (handle->kind != kind || handle->standard) continue;
        shown++;
        if (handle->fd >= 0)
            fprintf(to, "%*sdescriptor %d: %s%s\n", INDENT + 2, "", handle->fd, text_fit(handle->what, 100).s,
                    origins_without_stack(origins, handle));
        else
            fprintf(to, "%*smapped: %s\n", INDENT + 2, "", text_fit(handle->what, 100).s);
        origins_of_handle(origins, handle, to, INDENT + 4);
    }
    if (shown < count) fprintf(to, "%*s… and %zu more\n", INDENT + 2, "", count - shown);
}

size_t leftovers_python_threads(const struct family *family) {
    size_t count = 0;
    for (size_t i = 0; i < family->count; i++) {
        struct python_threads threads;
        if (!family->members[i].here) continue;
        python_threads_load(&threads, family->members[i].pid);
        for (size_t k = 0; k < threads.count; k++) count += threads.list[k].daemon == PYTHON_NOT_DAEMON;
        python_threads_clear(&threads);
    }
    return count;
}

/* Prints the mapped files. Programs and libraries are only counted, because there are many, and they keep no process
 * alive. */
static void print_mapped(FILE *to, const struct holdings *holdings) {
    size_t count = holdings->mapped_count - holdings->code_count, shown = count < MAPPED_SHOWN ? count : MAPPED_SHOWN;
    if (!holdings->mapped_files) return;
    fprintf(to, "%*s%zu mappings of files, %s of shared memory\n", INDENT, "", (size_t)holdings->mapped_files,
            text_size(holdings->shared_bytes).s);
    for (size_t i = 0; i < shown; i++)
        fprintf(to, "%*s%s, %s\n", INDENT + 2, "", text_fit_path(holdings->mapped[i].path, 100).s,
                text_size(holdings->mapped[i].bytes).s);
    if (shown < count) fprintf(to, "%*s… and %zu more\n", INDENT + 2, "", count - shown);
    if (holdings->code_count) fprintf(to, "%*sand %zu programs and libraries\n", INDENT + 2, "", holdings->code_count);
}

static void print_holdings(FILE *to, const struct holdings *holdings) {
    struct origins origins;
    origins_load(&origins, holdings->pid);
    print_threads(to, holdings, &origins);
    for (int kind = 0; kind < HANDLE_KINDS; kind++) print_kind(to, holdings, (enum handle_kind)kind, &origins);
    print_mapped(to, holdings);
    const char *missing = origins_missing(&origins);
    if (missing) fprintf(to, "%*swhere these were opened and started is not known: %s\n", INDENT, "", missing);
    origins_clear(&origins);
}

void leftovers_print(FILE *to, struct family *family) {
    for (size_t i = 0; i < family->count; i++) {
        struct member *member = &family->members[i];
        struct holdings holdings;
        if (!member->here) continue;
        leftovers_print_head(to, family, member);
        print_growth(to, member);
        if (holdings_load(&holdings, member->pid) == 0) print_holdings(to, &holdings);
        holdings_clear(&holdings);
    }
}

void leftovers_print_exempt(FILE *to, const struct family *family) {
    const char *before = "left alive, as asked: ";
    for (size_t i = 0; i < family->count; i++) {
        const struct member *member = &family->members[i];
        if (!member->stays) continue;
        fprintf(to, "%s%s (pid %d)", before, text_fit(member->name, 31).s, (int)member->pid);
        before = ", ";
    }
    if (family->stays) fputc('\n', to);
}

void leftovers_print_traces(FILE *to, const struct traces *traces) {
    for (size_t i = 0; i < traces->count; i++) {
        const struct trace *trace = &traces->list[i];
        if (!trace->left) continue;
        fprintf(to, "  %s %s", traces_word(trace->kind), text_fit_path(trace->path, 120).s);
        if (trace->kind != TRACE_SOCKET) fprintf(to, ", %s", text_size(trace->bytes).s);
        fprintf(to, ", of %s (pid %d)\n", text_fit(trace->name, 31).s, (int)trace->pid);
    }
    if (traces->missed)
        fprintf(to, "  and files that were not followed: there were more than %d at a time\n", TRACES_MOST);
}

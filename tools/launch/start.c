/* start.c — see start.h. */
#include "tools/launch/start.h"
#include "tools/base/complain.h"
#include "tools/launch/file_limit.h"
#include "tools/reader/last_word.h"
#include "tools/base/library.h"
#include "tools/subject/outfile.h"
#include "tools/launch/summary.h"
#include "tools/base/text.h"
#include "tools/base/size.h"

#include "preload/shared/pressure.h"
#include "preload/shared/snapshot.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STACK_MEMORY_LEAST = 64 << 10 };

const char start_help[] = "  -o FILE                 the ledger of CMD (default memstow.%n.%p.mst: name,\n"
                          "                          pid; %x is the number of execs); children write\n"
                          "                          FILE.PID. An earlier memstow file of yours is\n"
                          "                          replaced, anything else is refused\n"
                          "  --stacks=full|none|sample[:BYTES]\n"
                          "                          call stacks of all allocations (default), of none, or\n"
                          "                          of samples: on average one for each BYTES allocated\n"
                          "                          (default 512K). Samples cost little, and totals stay\n"
                          "                          exact\n"
                          "  --stack-memory=SIZE     memory that call stacks, sites and counters of each\n"
                          "                          process may take: 500M, 1G, ..., 64K at least\n"
                          "                          (default: 64 million bytes)\n"
                          "  --allocator=keep|mimalloc\n"
                          "                          the allocator that serves the program: its own, or\n"
                          "                          mimalloc\n"
                          "  --follow=all|none|NAME,...\n"
                          "                          which children to track (default: all); a NAME is the\n"
                          "                          last part of a program's path; of a script, that of\n"
                          "                          its interpreter\n"
                          "  --python-objects        count each Python object by itself: sets\n"
                          "                          PYTHONMALLOC=malloc, unless you have set it\n"
                          "  --pressure=LIMIT,...    put away owners with the policy stow or free when\n"
                          "                          memory is short: 90% (more is in use), 4G (less is\n"
                          "                          left), psi:20% (of the time, tasks wait for memory);\n"
                          "                          kept: stow owners with the policy keep, too\n"
                          "  --idle=SECONDS          put away such owners when they were not used for\n"
                          "                          SECONDS\n";

/* Parses a size such as "4MiB". Returns false if the text is not a size from `least` to `most` bytes. */
static bool valid_size(const char *value, uint64_t least, uint64_t most, uint64_t *bytes) {
    double size;
    if (!size_parse(value, &size) || size < (double)least || size > (double)most) return false;
    *bytes = (uint64_t)size;
    return true;
}

/* Takes the value of --stacks. Writes a sample size in plain digits into the value for the library, because the library
 * reads no other form. Returns false if the value is none of those that --help lists. */
static bool take_stacks(struct start *start, const char *value) {
    uint64_t bytes;
    start->stacks = value;
    if (strncmp(value, "sample:", 7) != 0)
        return strcmp(value, "full") == 0 || strcmp(value, "none") == 0 || strcmp(value, "sample") == 0;
    if (!valid_size(value + 7, 1, SNAP_SAMPLE_MOST, &bytes)) return false;
    snprintf(start->sample, sizeof start->sample, "sample:%llu", (unsigned long long)bytes);
    start->stacks = start->sample;
    return true;
}

static bool valid_allocator(const char *value) { return strcmp(value, "keep") == 0 || strcmp(value, "mimalloc") == 0; }

static bool valid_pressure(const char *value) { return pressure_parse(value, &(struct pressure_wishes){0}); }

static bool valid_idle(const char *value) { return pressure_parse_idle(value, &(struct pressure_wishes){0}); }

/* Whether the value of --follow is a list of names. A value that begins with a dash is no list, but the next option or
 * "--": the user has forgotten the list. */
static bool valid_follow(const char *value) {
    size_t length = strlen(value);
    return length && value[0] != '-' && value[0] != ',' && value[length - 1] != ',' && !strstr(value, ",,");
}

/* Puts the library first in LD_PRELOAD, in front of other libraries. */
static void set_preload(const char *library) {
    const char *others = getenv("LD_PRELOAD");
    if (!others || !*others) {
        setenv("LD_PRELOAD", library, 1);
        return;
    }
    size_t size = strlen(library) + strlen(others) + 2;
    char *both = malloc(size);
    if (!both) return;
    snprintf(both, size, "%s:%s", library, others);
    setenv("LD_PRELOAD", both, 1);
    free(both);
}

/* The entry `name` in a list whose entries have spaces or colons between them; NULL: it is not there. */
static const char *entry_in(const char *list, const char *name) {
    size_t length = strlen(name);
    for (const char *found = list; (found = strstr(found, name)); found++)
        if ((found == list || strchr(": ", found[-1])) && strchr(": ", found[length])) return found;
    return NULL;
}

/* Takes the library out of LD_PRELOAD: an outer memstow run may have put it there. */
static void leave_out_preload(const char *library) {
    const char *list = getenv("LD_PRELOAD"), *found = list ? entry_in(list, library) : NULL;
    size_t length = strlen(library);
    char *rest = found ? strdup(list) : NULL;
    if (!rest) return;
    strcpy(rest + (found - list), found + length + (found[length] != 0));
    setenv("LD_PRELOAD", rest, 1);
    free(rest);
}

static void set_or_unset(const char *name, const char *value) {
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

static void set_number(const char *name, uint64_t value) {
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRIu64, value);
    setenv(name, digits, 1);
}

/* Sets the program's environment, in the process that becomes the program. */
static void set_environment(void *context) {
    const struct start *start = context;
    char run_id[33];
    if (start->also) start->also(start->also_context);
    for (size_t i = 0; i < sizeof start->run_id; i++) snprintf(run_id + 2 * i, 3, "%02x", start->run_id[i]);
    if (start->from_cupti)
        leave_out_preload(start->library);
    else if (start->verdict != PROGRAM_MUSL)
        set_preload(start->library);
    setenv("MEMSTOW_OUT", start->template.text, 1);
    set_or_unset("MEMSTOW_OUT_NAMED", start->template.named ? "1" : NULL);
    set_number("MEMSTOW_MAIN", (uint64_t)getpid());
    setenv("MEMSTOW_RUN", run_id, 1);
    set_or_unset("MEMSTOW_COMMAND", start->command[0] ? start->command : NULL);
    set_or_unset("MEMSTOW_STACKS", start->stacks);
    if (start->stack_memory) set_number("MEMSTOW_STACK_MEMORY", start->stack_memory);
    set_or_unset("MEMSTOW_ALLOCATOR", start->allocator);
    set_or_unset("MEMSTOW_FOLLOW", start->follow);
    if (start->pressure) setenv("MEMSTOW_PRESSURE", start->pressure, 1);
    if (start->idle) setenv("MEMSTOW_IDLE", start->idle, 1);
    if (start->python_objects) setenv("PYTHONMALLOC", "malloc", 1);
    if (*start->cupti && !start->injection_given_up) setenv("CUDA_INJECTION64_PATH", start->cupti, 1);
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The ledger of a child is FILE.PID. After an exec of the child, the earlier ledger is FILE.PID.x0, .x1 and so on. */
enum { SUFFIX_MOST = sizeof ".4194304.x99999" - 1 };

/* Checks that a ledger can be written at the path of -o. The program's pid is not known yet. If the pid is part of the
 * name, the path with memstow's own pid is checked. Returns EXIT_FINE, or an exit code after an error message. */
static int check_output(const struct start *start) {
    char path[4096], error[4400];
    const char *name = base_name(start->argv[0]);
    if (!template_expand(&start->template, name, 0, path, sizeof path) &&
        !template_expand(&start->template, name, getpid(), path, sizeof path))
        return complain_usage(start->subcommand, "-o %s: the name is too long",
                              TEXT_SAFE(start->output ? start->output : ""));
    if (start->template.named && strlen(base_name(path)) > NAME_MAX - SUFFIX_MOST)
        return complain_usage(start->subcommand, "-o %s: the name is too long: it must leave %d bytes for children",
                              TEXT_SAFE(start->output), SUFFIX_MOST);
    if (outfile_check(path, error, sizeof error) < 0) {
        complain("%s", error);
        return EXIT_USAGE;
    }
    return EXIT_FINE;
}

/* Whether ASAN_OPTIONS allows other libraries in front of AddressSanitizer. If the option is given several times, the
 * last value counts, as in AddressSanitizer itself. */
static bool asan_may_come_later(void) {
    static const char word[] = "verify_asan_link_order=";
    const char *found = NULL, *options = getenv("ASAN_OPTIONS");
    for (const char *at = options ? strstr(options, word) : NULL; at; at = strstr(at + 1, word)) found = at;
    return found && found[sizeof word - 1] && strchr("0fn", found[sizeof word - 1]);
}

/* Warns about a program that has AddressSanitizer as a library, because AddressSanitizer ends the program if another
 * library is loaded before it. */
static void look_for_asan(const char *command, const char *path) {
    static const char *const names[] = {"libasan.so", "libclang_rt.asan"};
    const char *preloaded = getenv("LD_PRELOAD");
    bool found = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        found |= program_is_linked_with(path, names[i]) || (preloaded && strstr(preloaded, names[i]));
    if (found && !asan_may_come_later())
        complain("%s: AddressSanitizer refuses to start behind memstow: set ASAN_OPTIONS=verify_asan_link_order=0",
                 TEXT_SAFE(command));
}

static bool is_directory(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int look_at_program(struct start *start) {
    char path[4096], note[256];
    int error = program_find(start->argv[0], path, sizeof path);
    if (error && is_directory(start->argv[0])) {
        complain("%s: is a directory", TEXT_SAFE(start->argv[0]));
        return START_NOT_EXECUTABLE;
    }
    if (error == ENOENT) {
        complain("%s: not found", TEXT_SAFE(start->argv[0]));
        return START_NOT_FOUND;
    }
    if (error) {
        complain("%s: %s", TEXT_SAFE(start->argv[0]), error == EACCES ? "not executable" : strerror(error));
        return START_NOT_EXECUTABLE;
    }
    start->verdict = program_look(path, note, sizeof note);
    if (start->verdict == PROGRAM_NO_INTERPRETER) {
        complain("%s: its interpreter %s: not found", TEXT_SAFE(start->argv[0]), TEXT_SAFE(note));
        return START_NOT_FOUND;
    }
    bool loads = start->verdict == PROGRAM_FINE || (start->from_cupti && start->verdict == PROGRAM_PRIVILEGED);
    start->untrackable = !loads;
    if (start->untrackable) complain("%s %s", TEXT_SAFE(start->argv[0]), note);
    if (start->verdict == PROGRAM_FINE && !start->from_cupti) look_for_asan(start->argv[0], path);
    return EXIT_FINE;
}

/* Gives up --python-objects if the user has set PYTHONMALLOC to another allocator. Python treats an empty value as not
 * set. */
static void leave_python_malloc(struct start *start) {
    const char *value = getenv("PYTHONMALLOC");
    if (!start->python_objects || !value || !*value || strcmp(value, "malloc") == 0) return;
    start->python_objects = false;
    complain("PYTHONMALLOC=%s is set, and stays: --python-objects changes nothing", TEXT_SAFE(value));
}

/* Finds the library that reads CUPTI, if an option needs it. CUDA_INJECTION64_PATH may name that library already,
 * because an outer memstow run has set the variable. If the variable names another library, it is left as it is: that
 * library is the user's profiler, which needs CUPTI for itself. Returns 0, or -1 with error set. */
static int prepare_cupti(struct start *start, char *error, size_t size) {
    const char *injected = getenv("CUDA_INJECTION64_PATH");
    if (!start->verify && !start->from_cupti) return 0;
    if (library_find_cupti(start->library, start->cupti, sizeof start->cupti, error, size) < 0) return -1;
    start->injection_given_up = injected && *injected && strcmp(injected, start->cupti) != 0;
    if (start->from_cupti && start->injection_given_up)
        complain("CUDA_INJECTION64_PATH=%s is set, and stays: there will be no ledger", TEXT_SAFE(injected));
    return 0;
}

int start_prepare(struct start *start, char **argv) {
    char error[4400];
    start->argv = argv;
    if (template_make(&start->template, start->output, error, sizeof error) < 0)
        return complain_usage(start->subcommand, "%s", error);
    int code = check_output(start);
    if (code == EXIT_FINE) code = look_at_program(start);
    if (code != EXIT_FINE) return code;
    if (library_find(start->library, sizeof start->library, error, sizeof error) < 0 ||
        prepare_cupti(start, error, sizeof error) < 0) {
        complain("%s", error);
        return EXIT_USAGE;
    }
    leave_python_malloc(start);
    library_command(start->command, sizeof start->command);
    if (getrandom(start->run_id, sizeof start->run_id, 0) != sizeof start->run_id)
        memset(start->run_id, getpid() & 0xff, sizeof start->run_id);
    return EXIT_FINE;
}

void start_sum_up(const struct start *start, const struct launch *launch, bool quiet) {
    char directory[4096];
    if (!template_directory(&start->template, base_name(start->argv[0]), launch->pid, directory, sizeof directory))
        return;
    if (launch->ended) last_word_write(directory, start->run_id, launch->pid, launch->status);
    if (quiet) return;
    struct summary summary = {
        .command = start->argv[0], .directory = directory, .launch = launch, .expected_none = start->untrackable};
    if (start->template.named) {
        summary.given = start->output;
        summary.file = base_name(start->output);
    }
    summary.verify = start->verify;
    summary.from_cupti = start->from_cupti;
    summary.injection_given_up = start->injection_given_up;
    memcpy(summary.run_id, start->run_id, sizeof summary.run_id);
    summary_print(&summary);
}

int start_option(struct start *start, int option, char **argv) {
    const char *command = start->subcommand;
    switch (option) {
    case 'o':
        start->output = optarg;
        return 0;
    case START_STACKS:
        if (take_stacks(start, optarg)) return 0;
        return complain_usage(command, "--stacks=%s: not full, none or sample[:BYTES], 1 to 1T", TEXT_SAFE(optarg));
    case START_STACK_MEMORY:
        if (valid_size(optarg, STACK_MEMORY_LEAST, INT64_MAX, &start->stack_memory)) return 0;
        return complain_usage(command, "--stack-memory=%s: not a size like 64M or 1G, 64K at least", TEXT_SAFE(optarg));
    case START_ALLOCATOR:
        start->allocator = optarg;
        if (valid_allocator(optarg)) return 0;
        return complain_usage(command, "--allocator=%s: not keep or mimalloc", TEXT_SAFE(optarg));
    case START_FOLLOW:
        start->follow = optarg;
        if (valid_follow(optarg)) return 0;
        return complain_usage(command, "--follow=%s: not all, none or names, separated by commas", TEXT_SAFE(optarg));
    case START_PRESSURE:
        start->pressure = optarg;
        if (valid_pressure(optarg)) return 0;
        return complain_usage(command, "--pressure=%s: not 90%%, 4G, psi:20%% or some of them with commas, and 'kept'",
                              TEXT_SAFE(optarg));
    case START_IDLE:
        start->idle = optarg;
        if (valid_idle(optarg)) return 0;
        return complain_usage(command, "--idle=%s: not a number of seconds", TEXT_SAFE(optarg));
    case START_PYTHON_OBJECTS:
        start->python_objects = true;
        return 0;
    default:
        return complain_option(command, option, argv);
    }
}

static int cannot_start(const struct start *start, int error) {
    complain("%s: %s", TEXT_SAFE(start->argv[0]), strerror(error));
    return error == ENOENT ? START_NOT_FOUND : START_NOT_EXECUTABLE;
}

int start_launch(struct start *start, struct launch *launch) {
    int error = launch_start(launch, start->argv, set_environment, start);
    return error ? cannot_start(start, error) : EXIT_FINE;
}

int start_become(struct start *start) {
    set_environment(start);
    file_limit_restore();
    execvp(start->argv[0], start->argv);
    return cannot_start(start, errno);
}

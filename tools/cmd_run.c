/* cmd_run.c — memstow run: starts a program with the library preloaded, and sums up at its end.
 * Everything that can be refused is refused before the program starts; then it runs as it would without us. */
#include "commands.h"
#include "launch.h"
#include "library.h"
#include "thresholds.h"
#include "outfile.h"
#include "program.h"
#include "status.h"
#include "summary.h"
#include "template.h"
#include "text.h"

#include "../preload/pressure.h"
#include "../preload/snapshot.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum {
    OPTION_STACKS = 256,
    OPTION_ALLOCATOR,
    OPTION_FOLLOW,
    OPTION_PYTHON_OBJECTS,
    OPTION_STACK_MEMORY,
    OPTION_PRESSURE,
    OPTION_IDLE,
    OPTION_QUIET
};
enum { NOT_EXECUTABLE = 126, NOT_FOUND = 127 };
enum { STACK_MEMORY_LEAST = 64 << 10 };

struct run {
    const char *output, *stacks, *allocator, *follow, *pressure, *idle;
    uint64_t stack_memory; /* 0: not given */
    enum program_verdict verdict;
    bool quiet, untrackable, python_objects;
    char **argv;
    char library[4096], command[4096]; /* command: this one, for memstow_snapshot */
    struct template template;
    char sample[32];
    uint8_t run_id[16];
};

static int help(void) {
    puts("usage: memstow run [OPTION...] [--] CMD [ARG...]\n"
         "\n"
         "Runs CMD and keeps a ledger of its memory, and of each of its children, in a\n"
         "file.\n"
         "\n"
         "  -o FILE                 the ledger of CMD (default memstow.%n.%p.mst: name,\n"
         "                          pid; %x is the number of execs); children write\n"
         "                          FILE.PID.\n"
         "                          An earlier memstow file of yours is replaced, anything\n"
         "                          else is refused\n"
         "  --stacks=full|none|sample[:BYTES]\n"
         "                          call stacks of all allocations (default), of none, or\n"
         "                          of one in BYTES allocated (default 512K), which costs\n"
         "                          little; totals are exact all the same\n"
         "  --stack-memory=SIZE     memory that call stacks, sites and counters of each\n"
         "                          process may take: 500M, 1G, ..., 64K at least\n"
         "                          (default: 64 million bytes)\n"
         "  --allocator=keep|mimalloc\n"
         "                          who serves the memory: the program's own allocator, or\n"
         "                          mimalloc\n"
         "  --follow=all|none|NAME,...\n"
         "                          which children to track (default: all); a NAME is what\n"
         "                          a program was called by, without directories; a\n"
         "                          script goes by its interpreter\n"
         "  --python-objects        count each Python object by itself: sets\n"
         "                          PYTHONMALLOC=malloc, unless you have set it\n"
         "  --pressure=LIMIT,...    put away what may be (policy stow or free) when memory\n"
         "                          is short: more than 90% in use, less than 4G left,\n"
         "                          psi:20% of the time spent waiting for it; with 'kept'\n"
         "                          also stow what is kept\n"
         "  --idle=SECONDS          and what was not used for so long\n"
         "  --quiet                 no status line and no summary\n"
         "\n"
         "Exit code: that of CMD; 128+N when signal N killed it; 127 not found;\n"
         "126 not executable; 2 wrong usage.");
    return finish_output(EXIT_FINE);
}

/* The same sizes as --fail-over takes, from `least` to `most`. */
static bool valid_size(const char *value, uint64_t least, uint64_t most, uint64_t *bytes) {
    double size;
    if (!limits_parse_size(value, &size) || size < (double)least || size > (double)most) return false;
    *bytes = (uint64_t)size;
    return true;
}

/* The library reads plain digits only. */
static bool take_stacks(struct run *run, const char *value) {
    uint64_t bytes;
    run->stacks = value;
    if (strncmp(value, "sample:", 7) != 0)
        return strcmp(value, "full") == 0 || strcmp(value, "none") == 0 || strcmp(value, "sample") == 0;
    if (!valid_size(value + 7, 1, SNAP_SAMPLE_MOST, &bytes)) return false;
    snprintf(run->sample, sizeof run->sample, "sample:%llu", (unsigned long long)bytes);
    run->stacks = run->sample;
    return true;
}

static bool valid_allocator(const char *value) { return strcmp(value, "keep") == 0 || strcmp(value, "mimalloc") == 0; }

static bool valid_pressure(const char *value) { return pressure_parse(value, &(struct pressure_wishes){0}); }

static bool valid_idle(const char *value) { return pressure_parse_idle(value, &(struct pressure_wishes){0}); }

/* What begins with a dash is the next option, or "--": the list was left out. */
static bool valid_follow(const char *value) {
    size_t length = strlen(value);
    return length && value[0] != '-' && value[0] != ',' && value[length - 1] != ',' && !strstr(value, ",,");
}

/* LD_PRELOAD holds other libraries, too, perhaps: ours comes first. */
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

/* In the child: the contract with the library. */
static void set_environment(void *context) {
    const struct run *run = context;
    char run_id[33];
    for (size_t i = 0; i < sizeof run->run_id; i++) snprintf(run_id + 2 * i, 3, "%02x", run->run_id[i]);
    if (run->verdict != PROGRAM_MUSL) set_preload(run->library);
    setenv("MEMSTOW_OUT", run->template.text, 1);
    set_or_unset("MEMSTOW_OUT_NAMED", run->template.named ? "1" : NULL);
    set_number("MEMSTOW_MAIN", (uint64_t)getpid());
    setenv("MEMSTOW_RUN", run_id, 1);
    set_or_unset("MEMSTOW_COMMAND", run->command[0] ? run->command : NULL);
    set_or_unset("MEMSTOW_STACKS", run->stacks);
    if (run->stack_memory) set_number("MEMSTOW_STACK_MEMORY", run->stack_memory);
    set_or_unset("MEMSTOW_ALLOCATOR", run->allocator);
    set_or_unset("MEMSTOW_FOLLOW", run->follow);
    if (run->pressure) setenv("MEMSTOW_PRESSURE", run->pressure, 1);
    if (run->idle) setenv("MEMSTOW_IDLE", run->idle, 1);
    if (run->python_objects) setenv("PYTHONMALLOC", "malloc", 1);
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* With the pid in its name the file is not known yet, but its directory may be. */
static int check_output(const struct run *run) {
    char path[4096], error[4400];
    const char *name = base_name(run->argv[0]);
    if (!template_expand(&run->template, name, 0, path, sizeof path) &&
        !template_expand(&run->template, name, getpid(), path, sizeof path))
        return usage_error("run", "-o %s: name is too long", TEXT_SAFE(run->output ? run->output : ""));
    if (outfile_check(path, error, sizeof error) < 0) {
        complain("%s", error);
        return EXIT_USAGE;
    }
    return EXIT_FINE;
}

static int look_at_program(struct run *run) {
    char path[4096], note[256];
    int error = program_find(run->argv[0], path, sizeof path);
    if (error == ENOENT) {
        complain("%s: not found", TEXT_SAFE(run->argv[0]));
        return NOT_FOUND;
    }
    if (error) {
        complain("%s: %s", TEXT_SAFE(run->argv[0]), error == EACCES ? "not executable" : strerror(error));
        return NOT_EXECUTABLE;
    }
    run->verdict = program_look(path, note, sizeof note);
    if (run->verdict == PROGRAM_NO_INTERPRETER) {
        complain("%s: its interpreter %s: not found", TEXT_SAFE(run->argv[0]), TEXT_SAFE(note));
        return NOT_FOUND;
    }
    run->untrackable = run->verdict != PROGRAM_FINE;
    if (run->untrackable) complain("%s %s", TEXT_SAFE(run->argv[0]), note);
    return EXIT_FINE;
}

/* What is set already is somebody's decision. Python takes an empty value for none. */
static void leave_python_malloc(struct run *run) {
    const char *value = getenv("PYTHONMALLOC");
    if (!run->python_objects || !value || !*value || strcmp(value, "malloc") == 0) return;
    run->python_objects = false;
    complain("PYTHONMALLOC=%s is set, and stays: --python-objects changes nothing", TEXT_SAFE(value));
}

static int prepare(struct run *run) {
    char error[4400];
    if (template_make(&run->template, run->output, error, sizeof error) < 0) return usage_error("run", "%s", error);
    int code = check_output(run);
    if (code == EXIT_FINE) code = look_at_program(run);
    if (code != EXIT_FINE) return code;
    if (library_find(run->library, sizeof run->library, error, sizeof error) < 0) {
        complain("%s", error);
        return EXIT_USAGE;
    }
    leave_python_malloc(run);
    ssize_t length = readlink("/proc/self/exe", run->command, sizeof run->command - 1);
    run->command[length > 0 ? length : 0] = 0;
    if (getrandom(run->run_id, sizeof run->run_id, 0) != sizeof run->run_id)
        memset(run->run_id, getpid() & 0xff, sizeof run->run_id);
    return EXIT_FINE;
}

static void sum_up(const struct run *run, const struct launch *launch) {
    char directory[4096];
    if (!template_directory(&run->template, base_name(run->argv[0]), launch->pid, directory, sizeof directory)) return;
    struct summary summary = {
        .command = run->argv[0], .directory = directory, .launch = launch, .expected_none = run->untrackable};
    if (run->template.named) {
        summary.given = run->output;
        summary.file = base_name(run->output);
    }
    memcpy(summary.run_id, run->run_id, sizeof summary.run_id);
    summary_print(&summary);
}

static int execute(struct run *run) {
    struct launch launch = {0};
    struct status status;
    int error = launch_start(&launch, run->argv, set_environment, run);
    if (error) {
        complain("%s: %s", TEXT_SAFE(run->argv[0]), strerror(error));
        return error == ENOENT ? NOT_FOUND : NOT_EXECUTABLE;
    }
    bool shown = !run->quiet && isatty(STDERR_FILENO);
    status_begin(&status, launch.pid);
    launch_wait(&launch, shown ? status_tick : NULL, &status);
    status_end(&status);
    if (!run->quiet) sum_up(run, &launch);
    return launch_exit_code(&launch);
}

int cmd_run(int argc, char **argv) {
    static const struct option options[] = {{"output", required_argument, NULL, 'o'},
                                            {"stacks", required_argument, NULL, OPTION_STACKS},
                                            {"stack-memory", required_argument, NULL, OPTION_STACK_MEMORY},
                                            {"allocator", required_argument, NULL, OPTION_ALLOCATOR},
                                            {"follow", required_argument, NULL, OPTION_FOLLOW},
                                            {"python-objects", no_argument, NULL, OPTION_PYTHON_OBJECTS},
                                            {"pressure", required_argument, NULL, OPTION_PRESSURE},
                                            {"idle", required_argument, NULL, OPTION_IDLE},
                                            {"quiet", no_argument, NULL, OPTION_QUIET},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    static struct run run;
    opterr = 0;
    /* '+': the first word that is no option is the command, and what follows is its own. */
    for (int option; (option = getopt_long(argc, argv, "+:ho:", options, NULL)) != -1;) {
        if (option == 'h')
            return help();
        else if (option == 'o')
            run.output = optarg;
        else if (option == OPTION_STACKS && take_stacks(&run, optarg))
            continue;
        else if (option == OPTION_STACK_MEMORY && valid_size(optarg, STACK_MEMORY_LEAST, INT64_MAX, &run.stack_memory))
            continue;
        else if (option == OPTION_ALLOCATOR && valid_allocator(optarg))
            run.allocator = optarg;
        else if (option == OPTION_FOLLOW && valid_follow(optarg))
            run.follow = optarg;
        else if (option == OPTION_PRESSURE && valid_pressure(optarg))
            run.pressure = optarg;
        else if (option == OPTION_IDLE && valid_idle(optarg))
            run.idle = optarg;
        else if (option == OPTION_PYTHON_OBJECTS)
            run.python_objects = true;
        else if (option == OPTION_QUIET)
            run.quiet = true;
        else if (option == OPTION_STACKS)
            return usage_error("run", "--stacks=%s: not full, none or sample[:BYTES], 1 to 1T", TEXT_SAFE(optarg));
        else if (option == OPTION_STACK_MEMORY)
            return usage_error("run", "--stack-memory=%s: not a size like 64M or 1G, 64K at least", TEXT_SAFE(optarg));
        else if (option == OPTION_ALLOCATOR)
            return usage_error("run", "--allocator=%s: not keep or mimalloc", TEXT_SAFE(optarg));
        else if (option == OPTION_FOLLOW)
            return usage_error("run", "--follow=%s: not all, none or names, separated by commas", TEXT_SAFE(optarg));
        else if (option == OPTION_PRESSURE)
            return usage_error("run", "--pressure=%s: not 90%%, 4G, psi:20%% or some of them with commas, and 'kept'",
                               TEXT_SAFE(optarg));
        else if (option == OPTION_IDLE)
            return usage_error("run", "--idle=%s: not a number of seconds", TEXT_SAFE(optarg));
        else
            return option_error("run", option, argv);
    }
    if (optind == argc) return usage_error("run", "no command given");
    run.argv = argv + optind;
    int code = prepare(&run);
    return code == EXIT_FINE ? execute(&run) : code;
}

/* Calls the entries of CUDA in preload/cuda/cuda_table.h that the route in the first argument has. Four threads, with
 * streams of their own, call them at the same time. Then one thread alone calls the entries that would disturb other
 * threads, such as those that end contexts. Over the simulated driver, a test double.
 *
 * Each line of the table is an entry. Each line has a case, which calls the entry: in _every_line_runtime.c,
 * _every_line_driver.c or _every_line_alone.c, or in this file for a resolver. If a case is missing, the program does
 * not link.
 *
 * Out: "called NAME" for each entry that the route has, and the expected report of each kind of memory, live and
 * allocated, to the byte. Expectations name a block by its size, so no two of these blocks have the same size.
 *
 * GENERATION is that of the runtime, 12 or 13. With LINKED defined, the entries are called as the loader binds them. */
#include "_every_line.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>

#ifdef LINKED
#define ENTRY(side, name, base, since, per_thread, parameters, ...) int name parameters;
#define RESOLVER ENTRY
#include "preload/cuda/cuda_table.h"
#endif

struct entries f;
struct others h;
static const char *const kind_names[KINDS] = {"device", "pool",   "managed",    "array",    "vmm",
                                              "graph",  "pinned", "registered", "imported", "reserved"};
uint64_t live_bytes[KINDS], live_blocks[KINDS], made_bytes[KINDS], made_blocks[KINDS];
struct cuda_ipc_memory of_another[HANDLES];

/* --- resolvers: the test calls the functions that they return --- */

typedef int allocate(cuda_address *, size_t);

static void keep_by(allocate *call, struct worker *w) {
    size_t bytes = odd(w);
    cuda_address at;
    MUST(call);
    OK(call(&at, bytes));
    kept(DEVICE, bytes);
}

CASE(cuGetProcAddress) {
    allocate *found = NULL;
    OK(f.cuGetProcAddress("cuMemAlloc", (void **)&found, 3020, 0));
    keep_by(found, w);
}
CASE(cuGetProcAddress_v2) {
    allocate *found = NULL;
    int status = -1;
    OK(f.cuGetProcAddress_v2("cuMemAlloc", (void **)&found, 12000, 0, &status));
    MUST(status == 0);
    keep_by(found, w);
}
CASE(cudaGetDriverEntryPoint) {
    allocate *found = NULL;
    int status = -1;
    OK(f.cudaGetDriverEntryPoint("cuMemAlloc", (void **)&found, 0, &status));
    keep_by(found, w);
}
CASE(cudaGetDriverEntryPointByVersion) {
    allocate *found = NULL;
    int status = -1;
    OK(f.cudaGetDriverEntryPointByVersion("cuMemAlloc", (void **)&found, 3020, 0, &status));
    keep_by(found, w);
}

/* In the entries that follow, the default stream is the thread's own stream. */
typedef int allocate_async(cuda_address *, size_t, cuda_handle);

static void keep_in_own_stream_by(allocate_async *call, struct worker *w) {
    size_t bytes = odd(w);
    cuda_address at;
    MUST(call);
    OK(call(&at, bytes, NULL));
    kept(POOL, bytes);
    say("expect cuda.blocks[size_bytes=%zu].stream == 2", bytes);
}

CASE(cudaGetDriverEntryPoint_ptsz) {
    allocate_async *found = NULL;
    int status = -1;
    OK(f.cudaGetDriverEntryPoint_ptsz("cuMemAllocAsync", (void **)&found, 0, &status));
    keep_in_own_stream_by(found, w);
}
CASE(cudaGetDriverEntryPointByVersion_ptsz) {
    allocate_async *found = NULL;
    int status = -1;
    OK(f.cudaGetDriverEntryPointByVersion_ptsz("cuMemAllocAsync", (void **)&found, 11020, 0, &status));
    keep_in_own_stream_by(found, w);
}

/* --- the lines --- */

enum { RUNTIME, DRIVER };
static struct line {
    const char *name, *base;
    int side, since, per_thread;
    void *at; /* the place in `f` for its address */
    void (*run)(struct worker *);
    bool by_route;
} lines[] = {
#define ENTRY(side, name, base, since, per_thread, ...) {#name, base, side, since, per_thread, &f.name, case_##name, 0},
#define RESOLVER ENTRY
#include "preload/cuda/cuda_table.h"
};
enum { LINES = sizeof lines / sizeof *lines };

/* These are called by one thread only, in this order. */
static const char *const alone[] = {"cuCtxSynchronize", /* not beside a capture */
                                    "cuCtxSynchronize_v2",
                                    "cuStreamBeginCapture",
                                    "cuStreamBeginCapture_ptsz",
                                    "cuCtxCreate_v2",
                                    "cuCtxCreate_v3",
                                    "cuCtxCreate_v4",
                                    "cuCtxDestroy",
                                    "cuCtxDestroy_v2",
                                    "cuDevicePrimaryCtxRetain",
                                    "cuDevicePrimaryCtxReset",
                                    "cuDevicePrimaryCtxReset_v2",
                                    "cuDevicePrimaryCtxRelease",
                                    "cuDevicePrimaryCtxRelease_v2",
                                    "cudaDeviceReset",
                                    "cudaThreadExit",
                                    "cuCtxEnablePeerAccess"};
enum { ALONE = sizeof alone / sizeof *alone };

static bool is_alone(const char *name) {
    for (int i = 0; i < ALONE; i++)
        if (!strcmp(alone[i], name)) return true;
    return false;
}

/* --- routes: each says where a line is found, or NULL --- */

static void *driver, *runtime;
#define TEXT_OF(n) #n
#define TEXT(n) TEXT_OF(n)
#define RUNTIME_LIBRARY "libcudart.so." TEXT(GENERATION)

static void *library_of(const struct line *line) { return line->side == DRIVER ? driver : runtime; }
static void *by_dlsym(const struct line *line) { return dlsym(library_of(line), line->name); }
static void *by_default(const struct line *line) { return dlsym(RTLD_DEFAULT, line->name); }
/* The driver's symbols have no versions. */
static void *by_dlvsym(const struct line *line) { return dlvsym(library_of(line), line->name, RUNTIME_LIBRARY); }

typedef int get_v1(const char *, void **, int, uint64_t);
typedef int get_v2(const char *, void **, int, uint64_t, int *);
typedef int get_runtime(const char *, void **, unsigned long long, int *);
typedef int get_version(const char *, void **, unsigned, unsigned long long, int *);
enum { OWN_STREAM = 2 };

static void *by_getproc_v1(const struct line *line) {
    get_v1 *get = (get_v1 *)dlsym(driver, "cuGetProcAddress");
    void *found = NULL;
    if (!*line->base || get(line->base, &found, line->since, line->per_thread ? OWN_STREAM : 0)) return NULL;
    return found;
}
static void *by_getproc_v2(const struct line *line) {
    get_v2 *get = (get_v2 *)dlsym(driver, "cuGetProcAddress_v2");
    void *found = NULL;
    int status;
    if (!*line->base || get(line->base, &found, line->since, line->per_thread ? OWN_STREAM : 0, &status)) return NULL;
    return found;
}
/* The resolvers that the resolver itself returns. */
static void *by_getproc_again(const struct line *line) {
    get_v2 *get = (get_v2 *)dlsym(driver, "cuGetProcAddress_v2"), *young;
    get_v1 *old;
    void *found = NULL;
    int status, flags = line->per_thread ? OWN_STREAM : 0;
    OK(get("cuGetProcAddress", (void **)&old, 11030, 0, &status));
    OK(get("cuGetProcAddress", (void **)&young, 12000, 0, &status));
    if (!*line->base) return NULL;
    if (line->since % 20 ? old(line->base, &found, line->since, flags)
                         : young(line->base, &found, line->since, flags, &status))
        return NULL;
    return found;
}

/* The runtime asks for its own version: it gets neither older nor newer lines of the same name. */
static bool is_of_runtime(const struct line *line) {
    enum { VERSION = GENERATION * 1000 };
    for (int i = 0; i < LINES; i++)
        if (!strcmp(lines[i].base, line->base) && lines[i].since > line->since && lines[i].since <= VERSION &&
            lines[i].per_thread <= line->per_thread)
            return false;
    return *line->base && line->since <= VERSION;
}
static void *by_entry_point(const struct line *line) {
    get_runtime *get = (get_runtime *)dlsym(runtime, "cudaGetDriverEntryPoint");
    void *found = NULL;
    int status;
    if (!is_of_runtime(line) || get(line->base, &found, line->per_thread ? OWN_STREAM : 0, &status)) return NULL;
    return found;
}
static void *by_entry_point_ptsz(const struct line *line) {
    get_runtime *get = (get_runtime *)dlsym(runtime, "cudaGetDriverEntryPoint_ptsz");
    void *found = NULL;
    int status;
    if (!is_of_runtime(line) || get(line->base, &found, line->per_thread ? 0 : 1, &status)) return NULL;
    return found;
}
static void *by_entry_point_version(const struct line *line) {
    get_version *get = (get_version *)dlsym(runtime, "cudaGetDriverEntryPointByVersion");
    void *found = NULL;
    int status;
    if (!*line->base || get(line->base, &found, (unsigned)line->since, line->per_thread ? OWN_STREAM : 0, &status))
        return NULL;
    return found;
}
static void *by_entry_point_version_ptsz(const struct line *line) {
    get_version *get = (get_version *)dlsym(runtime, "cudaGetDriverEntryPointByVersion_ptsz");
    void *found = NULL;
    int status;
    if (!*line->base || get(line->base, &found, (unsigned)line->since, line->per_thread ? 0 : 1, &status)) return NULL;
    return found;
}

#ifdef LINKED
static void *by_loader(const struct line *line) {
    static const struct {
        const char *name;
        void *at;
    } all[] = {
#define ENTRY(side, name, ...) {#name, (void *)name},
#define RESOLVER ENTRY
#include "preload/cuda/cuda_table.h"
    };
    return all[line - lines].at;
}
#endif

static const struct {
    const char *name;
    void *(*find)(const struct line *);
} routes[] = {
#ifdef LINKED
    {"linked", by_loader},
#else
    {"dlsym", by_dlsym},
    {"default", by_default},
    {"dlvsym", by_dlvsym},
    {"getproc_v1", by_getproc_v1},
    {"getproc_v2", by_getproc_v2},
    {"getproc_again", by_getproc_again},
    {"entry_point", by_entry_point},
    {"entry_point_ptsz", by_entry_point_ptsz},
    {"entry_point_version", by_entry_point_version},
    {"entry_point_version_ptsz", by_entry_point_version_ptsz},
#endif
};

static void open_libraries(int how) {
    MUST(driver = dlopen("libcuda.so.1", RTLD_NOW | how));
    MUST(runtime = dlopen(RUNTIME_LIBRARY, RTLD_NOW | how));
#define FIND(library, name) MUST(*(void **)&h.name = dlsym(library, #name))
    FIND(driver, cuInit);
    FIND(driver, cuCtxSetCurrent);
    FIND(driver, cuStreamCreate);
    FIND(driver, cuGraphCreate);
    FIND(driver, cuEventCreate);
    FIND(driver, cuEventRecord);
    FIND(driver, cuEventDestroy_v2);
    FIND(driver, cuMulticastAddDevice);
    FIND(driver, cuMemPoolExportToShareableHandle);
    FIND(driver, cuMemPoolImportFromShareableHandle);
    FIND(driver, cuCtxGetCurrent);
    FIND(driver, sim_count);
    FIND(driver, sim_count_reset);
    FIND(runtime, cudaSetDevice);
}

static bool tracked(void) {
    static int known; /* 1: no; 2: yes */
    if (!known) known = dlsym(RTLD_DEFAULT, "memstow_owner_open") ? 2 : 1;
    return known == 2;
}

/* Under memstow, the function that a route finds for a line must be memstow's. */
static void is_hooked(const struct line *line, void *found) {
    Dl_info in;
    if (!tracked()) return;
    if (dladdr(found, &in) && strstr(in.dli_fname, "libmemstow")) return;
    say("%s is %s's", line->name, in.dli_fname);
    exit(1);
}

/* Finds every line by the route. A line that the route does not have is found by dlsym, because the cases of other
 * lines may need it. */
static void find_lines(const char *route) {
    void *(*find)(const struct line *) = NULL;
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++)
        if (!strcmp(routes[i].name, route)) find = routes[i].find;
    MUST(find);
    for (int i = 0; i < LINES; i++) {
        void *found = find(&lines[i]);
        if ((lines[i].by_route = found != NULL)) is_hooked(&lines[i], found);
        if (!found) found = by_dlsym(&lines[i]);
        MUST(found);
        *(void **)lines[i].at = found;
    }
}

/* --- running --- */

/* Runs in a process of its own, without memstow: allocates memory, writes the handles of this memory to standard
 * output, and waits for the end of standard input. */
static int export(void) {
    struct cuda_ipc_memory handle;
    cuda_handle context;
    cuda_address at;
    char end;
    open_libraries(RTLD_LOCAL);
    for (int i = 0; i < LINES; i++) *(void **)lines[i].at = by_dlsym(&lines[i]);
    OK(h.cuInit(0));
    OK(f.cuDevicePrimaryCtxRetain(&context, 0));
    OK(h.cuCtxSetCurrent(context));
    for (int i = 0; i < HANDLES; i++) {
        OK(f.cuMemAlloc_v2(&at, MIB));
        OK(f.cuIpcGetMemHandle(&handle, at));
        MUST(write(STDOUT_FILENO, &handle, sizeof handle) == sizeof handle);
    }
    return read(STDIN_FILENO, &end, 1) != 0;
}

static int end_of_exporter;

static void start_exporter(char *program) {
    int ask[2], answer[2];
    MUST(!pipe(ask) && !pipe(answer));
    pid_t child = fork();
    MUST(child >= 0);
    if (!child) {
        unsetenv("LD_PRELOAD");
        dup2(ask[0], STDIN_FILENO);
        dup2(answer[1], STDOUT_FILENO);
        close(ask[1]);
        execl("/proc/self/exe", program, "export", (char *)NULL);
        _exit(127);
    }
    close(ask[0]);
    close(answer[1]);
    for (size_t got = 0; got < sizeof of_another;) {
        ssize_t n = read(answer[0], (char *)of_another + got, sizeof of_another - got);
        MUST(n > 0);
        got += (size_t)n;
    }
    end_of_exporter = ask[1];
}

static cuda_handle first_context;

static void begin(struct worker *w) {
    int shared;
    OK(h.cuCtxSetCurrent(first_context));
    w->stream = new_stream();
    w->pool = new_pool(0);
    w->shared_pool = new_pool(AS_FILE);
    OK(h.cuMemPoolExportToShareableHandle(&shared, w->shared_pool, AS_FILE, 0));
    OK(h.cuMemPoolImportFromShareableHandle(&w->imported_pool, (void *)(intptr_t)shared, AS_FILE, 0));
    close(shared);
}

static void *work(void *number) {
    struct worker w = {.number = (int)(intptr_t)number};
    begin(&w);
    for (int i = 0; i < LINES; i++)
        if (lines[i].by_route && !is_alone(lines[i].name)) lines[i].run(&w);
    return NULL;
}

static void work_alone(void) {
    struct worker w = {.number = THREADS};
    begin(&w);
    for (int i = 0; i < ALONE; i++)
        for (int k = 0; k < LINES; k++)
            if (lines[k].by_route && !strcmp(lines[k].name, alone[i])) lines[k].run(&w);
}

/* Checks that memstow knows of no capture. During a capture it does not ask the driver for figures; without one it asks
 * after this many bytes. */
static void no_capture_is_left(void) {
    cuda_address at;
    usleep(200000); /* it asks again only after a while */
    h.sim_count_reset();
    OK(f.cuMemAlloc_v2(&at, 100 * MIB));
    kept(DEVICE, 100 * MIB);
    if (tracked()) MUST(h.sim_count("cuMemGetInfo_v2") == 1);
}

int main(int count, char **arguments) {
    pthread_t threads[THREADS];
    if (count == 1) {
        for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) say("%s", routes[i].name);
        return 0;
    }
    if (!strcmp(arguments[1], "export")) return export();
    start_exporter(arguments[0]);
    open_libraries(strcmp(arguments[1], "default") ? RTLD_LOCAL : RTLD_GLOBAL);
    find_lines(arguments[1]);
    OK(h.cuInit(0));
    OK(f.cuDevicePrimaryCtxRetain(&first_context, 0));
    OK(h.cuCtxSetCurrent(first_context));
    for (intptr_t i = 0; i < THREADS; i++) MUST(!pthread_create(&threads[i], NULL, work, (void *)i));
    for (int i = 0; i < THREADS; i++) MUST(!pthread_join(threads[i], NULL));
    work_alone();
    no_capture_is_left();
    for (int i = 0; i < LINES; i++)
        if (lines[i].by_route) say("called %s", lines[i].name);
    for (int kind = 0; kind < KINDS; kind++)
        say("kind %s %zu %zu %zu %zu", kind_names[kind], (size_t)live_bytes[kind], (size_t)live_blocks[kind],
            (size_t)made_bytes[kind], (size_t)made_blocks[kind]);
    close(end_of_exporter);
    MUST(wait(NULL) > 0);
    return 0;
}

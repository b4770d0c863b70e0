/* sim.h — shared by the files of the simulated driver: its objects, and the functions that lead from one to another.
 * In: calls of CUDA's driver interface. Out: their effects on host memory, which takes the place of device memory.
 * Everything here is read and changed under one lock, which call_enter takes and call_leave gives back. The engine's
 * thread takes it, too. */
#ifndef SIMCUDA_SIM_H
#define SIMCUDA_SIM_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cuda_abi.h"
#include "simcuda.h"

#pragma GCC visibility push(hidden)

enum { MAX_DEVICES = 16 };
#define KB ((size_t)1 << 10)
#define MB ((size_t)1 << 20)
#define GB ((size_t)1 << 30)
#define GRANULE (2 * MB) /* of physical memory, and of mappings */

static inline uint64_t round_up(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

/* ---- call.c: the way in and out of every entry */

enum needs {
    NEEDS_NOTHING = 0,
    NEEDS_INIT = 1,
    NEEDS_CONTEXT = 2, /* and init; the error of a broken context is returned */
    UNSAFE = 4,        /* a call during certain captures is refused, and breaks these captures */
    IN_CALLBACK = 8,   /* allowed in host callbacks */
};

int call_enter(const char *name, int needs);
CUresult call_leave(const char *name, CUresult result);
void call_details(uint64_t a, uint64_t b);                                           /* for the log */
void call_pool(uint64_t pool, uint64_t reserved, uint64_t used, uint64_t threshold); /* for observers */
void call_callback(bool begins);                           /* this thread runs a callback of the program */
void call_context_ends(const struct sim_context *context); /* for observers */
extern pthread_mutex_t sim_lock;

/* An entry: API(name, needs, (parameters), (arguments)) { body }. The body runs under the lock. */
#define API(name, needs, parameters, arguments)                                                                        \
    static CUresult body_##name parameters;                                                                            \
    CUresult sim_##name parameters;                                                                                    \
    CUresult sim_##name parameters {                                                                                   \
        CUresult result = call_enter(#name, needs);                                                                    \
        return call_leave(#name, result ? result : body_##name arguments);                                             \
    }                                                                                                                  \
    static CUresult body_##name parameters

/* TOLD does the same as API, and also tells observers the arguments before and after the call. */
void call_tell(const char *name, const uint64_t *arguments, uint64_t *shared, const CUresult *result);
#define WORD(value) (uint64_t)(uintptr_t)(value)
#define WORDS(a, b, c, d, e, ...) WORD(a), WORD(b), WORD(c), WORD(d), WORD(e)
#define WORDS_OF(...) WORDS(__VA_ARGS__, 0, 0, 0, 0, 0)
#define TOLD(name, needs, parameters, arguments)                                                                       \
    static CUresult body_##name parameters;                                                                            \
    CUresult sim_##name parameters;                                                                                    \
    CUresult sim_##name parameters {                                                                                   \
        uint64_t shared = 0, words[] = {WORDS_OF arguments};                                                           \
        call_tell(#name, words, &shared, NULL);                                                                        \
        CUresult result = call_enter(#name, needs);                                                                    \
        result = call_leave(#name, result ? result : body_##name arguments);                                           \
        call_tell(#name, words, &shared, &result);                                                                     \
        return result;                                                                                                 \
    }                                                                                                                  \
    static CUresult body_##name parameters

/* Defines an entry whose body is the expression `call`, so that several entries can share one function. */
#define SAME(name, needs, parameters, call)                                                                            \
    CUresult sim_##name parameters;                                                                                    \
    CUresult sim_##name parameters {                                                                                   \
        CUresult result = call_enter(#name, needs);                                                                    \
        return call_leave(#name, result ? result : call);                                                              \
    }

/* ---- config.c: the environment */
struct config {
    int devices, version;
    size_t capacity, context, fragmented, first;
    uint64_t latency_ns, vmm_us, copy_mib_s, pin_us_mib;
    bool drains, peers, fill, pageable, instances, served, multicast;
};
extern struct config sim_config;
void config_read(void);

/* ---- inject.c: calls fail or are late, as tests ask; journal.c: notes the calls */
CUresult inject_error(const char *name);
void inject_delay(const char *name); /* before the lock is taken */
void inject_parse(const char *list);
void journal_open(const char *path);
void journal_open_requests(const char *path);
void journal_request(const char *name, int version, uint64_t flags, int status);
void journal_add(const char *name, CUresult result, uint64_t a, uint64_t b);

/* ---- extent.c: free pieces of a range of numbers */
struct extent {
    struct extent *next;
    uint64_t start, size;
};
struct extents {
    struct extent *first;
};
void extents_give(struct extents *self, uint64_t start, uint64_t size);
bool extents_take(struct extents *self, uint64_t size, uint64_t align, uint64_t *start);
bool extents_take_at(struct extents *self, uint64_t start, uint64_t size);
void extents_clear(struct extents *self);

/* ---- device.c */
struct device {
    int id;
    size_t capacity, fragmented, used, contexts, physical;
    uint64_t handles;
    int fd;        /* memory of the device */
    uint64_t file; /* the number of its inode */
    char *alias;
    struct extents free;
    struct sim_context *primary;
    unsigned primary_flags;
    struct sim_pool *default_pool, *pool;
    struct sim_phys *slabs;
    struct sim_phys *graph_free; /* kept for graphs' memory nodes */
    uint64_t graph_used, graph_used_high, graph_reserved, graph_reserved_high;
};
extern struct device sim_devices[MAX_DEVICES];
struct device *device_get(int id);
CUresult device_begin(void);
bool device_peers(int a, int b);
/* Takes bytes of the device's capacity. Small requests may use the fragmented part. */
bool device_take(struct device *self, size_t bytes, bool small);
void device_give(struct device *self, size_t bytes);

/* ---- phys.c: pieces of physical memory */
struct sim_phys {
    struct sim_phys *next; /* in slabs or graph_free */
    struct device *device;
    size_t size;
    uint64_t offset; /* in the device's memory; unused if it has its own */
    char *host;      /* the address at which the driver itself sees it */
    int fd;          /* its own memory, -1: the device's */
    int refs;        /* mappings, and handles not released */
    int handle_refs;
    bool shared_in;                  /* another process's */
    struct sim_multicast *multicast; /* NULL: memory; else a multicast object */
    CUmemAllocationProp prop;
    uint64_t handle;
    CUdeviceptr slab_va;
    struct extents slab;
    size_t slab_live;
};
struct sim_phys *phys_new(struct device *device, size_t size, bool own_file);
struct sim_phys *phys_import(struct device *device, int fd, uint64_t offset, size_t size);
void phys_unref(struct sim_phys *self);
void phys_fill(char *at, size_t bytes);
uint64_t phys_file(const struct sim_phys *self, int *fd); /* → offset */

/* ---- vmm.c: handles of physical memory */
struct sim_phys *handle_find(CUmemGenericAllocationHandle handle);
CUmemGenericAllocationHandle handle_add(struct sim_phys *self);
void handle_unref(struct sim_phys *self);

/* ---- multicast.c: multicast objects, which bind together memory of several devices */
bool multicast_complete(const struct sim_multicast *self);
void multicast_drop(struct sim_multicast *self);

/* ---- space.c: device addresses and what lies there */
enum kind { KIND_PLAIN, KIND_POOL, KIND_VMM, KIND_MANAGED, KIND_ARRAY, KIND_GRAPH, KIND_IPC };
struct block {
    CUdeviceptr at;
    size_t size;  /* the mapped size */
    size_t asked; /* the size that the program requested */
    enum kind kind;
    struct device *device;
    struct sim_context *ctx; /* plain memory: the context that it dies with */
    struct sim_phys *phys;
    char *host;                  /* the driver's view of the first byte */
    uint64_t readable, writable; /* a bit for each device */
    uint64_t id;
    struct sim_pool *pool;
    struct sim_chunk *chunk;
    struct mark *freed; /* pool: done when its free was executed */
    bool gone;          /* pool: freed, not executed yet */
    bool resident;      /* managed: on the device */
    bool sync_memops;
    bool slab;
    struct gmem *gmem;
};
CUresult space_begin(void);
bool space_inside(uint64_t address);
CUresult space_reserve(size_t size, size_t align, CUdeviceptr hint, CUdeviceptr *out);
CUresult space_reserve_low(size_t size, CUdeviceptr *out); /* below 4 GiB */
void space_release(CUdeviceptr at, size_t size);
/* Whether [at, at + size) lies in a range that the program reserved. With `whole`: whether it equals such a range. */
bool space_is_reserved(CUdeviceptr at, size_t size, bool whole);
bool space_reservation(CUdeviceptr at, CUdeviceptr *start, size_t *size); /* the range that the program reserved */
void space_reserved_add(CUdeviceptr at, size_t size);
void space_reserved_remove(CUdeviceptr at);
uint64_t space_reserved_bytes(void);
struct block *space_add(struct block model);
struct block *space_find(CUdeviceptr at);
struct block *space_next(CUdeviceptr at); /* the first block at or behind the address */
void space_remove(struct block *block);
size_t space_count(void);
void space_protect(CUdeviceptr at, size_t size, int fd, uint64_t offset, bool visible);
void space_fault(void);
uint64_t space_faults(void);

/* ---- ipc.c: shares memory with other processes. A handle has 64 bytes. */
CUresult ipc_export(void *to, const struct block *block);
CUresult ipc_import(const void *from, bool same_process, struct block model, CUdeviceptr *out);

/* ---- host.c: pinned and registered host memory */
struct pinned {
    struct pinned *next;
    char *at;
    size_t size;
    bool registered;
    unsigned flags;
    struct sim_context *ctx;
};
struct pinned *host_find(const void *at);
bool host_leaves(uint64_t at, uint64_t bytes); /* whether the range begins in pinned memory and ends outside of it */
void host_forget(struct sim_context *ctx);
/* Managed memory; `model` has its context or its pool. */
CUresult managed_take(CUdeviceptr *out, size_t bytes, struct device *device, struct block model);
CUresult host_take(CUdeviceptr *out, size_t size); /* memory of a host pool; host_give returns false for other memory */
bool host_give(CUdeviceptr at);
void host_bytes(uint64_t *pinned, uint64_t *registered);

/* ---- context.c */
struct sim_context {
    struct sim_context *next;
    struct device *device;
    bool primary, alive;
    int refs;
    unsigned flags;
    uint64_t id;
    CUresult sticky;
    uint64_t peers; /* devices whose memory it may use */
    bool warm;      /* it has taken SIMCUDA_FIRST */
    uint64_t reserved;
};
extern __thread struct sim_context *context_current_slot;
struct sim_context *context_current(void); /* NULL: none, or it is destroyed */
bool context_valid(const struct sim_context *self);
CUresult context_warm(struct sim_context *self); /* before its first stream or pinned memory */
void context_break(struct sim_context *self, CUresult error);
extern struct sim_context *context_list;

/* ---- engine.c: operations on streams */
struct mark { /* set when something has happened */
    int refs;
    bool done;
    uint64_t when_ns;
};
struct mark *mark_new(void);
struct mark *mark_ref(struct mark *self);
void mark_unref(struct mark *self);

enum op_kind {
    OP_COPY,
    OP_FILL,
    OP_KERNEL,
    OP_HOST,
    OP_CALLBACK,
    OP_ALLOC,
    OP_FREE,
    OP_RECORD,
    OP_WAIT,
    OP_GALLOC,
    OP_GFREE,
    OP_CONDITION,
    OP_DEFAULT, /* a condition gets the value that it has at a launch */
    OP_NOTHING
};
struct shape {
    size_t width, height, depth, dpitch, spitch, dslice, sslice;
};
struct op {
    struct op *next;
    enum op_kind kind;
    struct sim_context *ctx;
    struct sim_stream *stream;
    uint64_t seq, due;
    struct mark *mark, *wait;
    union {
        struct {
            uint64_t to, from;
            struct shape shape;
            void *staged;
            bool peer;
        } copy;
        struct {
            uint64_t to;
            uint32_t value, element;
            size_t width, height, pitch;
        } fill;
        struct {
            const struct kernel *kernel;
            uint64_t arguments[8];
        } kernel;
        struct {
            CUhostFn run;
            CUstreamCallback call;
            CUstream handle;
            void *data;
        } host;
        struct {
            struct block *block;
            CUdeviceptr at;
            struct gmem *gmem;
            struct sim_pool *pool;
            void *pending;
        } memory;
        struct {
            struct sim_condition *handle;
            struct sim_graph *graph; /* that has the node */
            int type;
            unsigned count;
            struct sim_graph **bodies;
        } condition;
        struct sim_event *event; /* of OP_RECORD and OP_WAIT as nodes of a graph */
    };
};
struct sim_stream {
    struct sim_stream *next;
    struct sim_context *ctx;
    bool blocking, legacy, per_thread, destroyed;
    pthread_t thread;
    int priority;
    unsigned flags;
    uint64_t id;
    struct op *head, *tail;
    struct sim_capture *capture;
};
/* Adds a copy of `model` to the end of the stream, or to the graph of the stream's capture. */
CUresult engine_add(struct sim_stream *stream, const struct op *model, struct mark **mark);
/* engine_drain_stream waits until all operations that are now on the stream have been executed. engine_drain_context
 * waits until all operations that are now on any stream of the context have been executed. */
CUresult engine_drain_stream(struct sim_stream *stream);
CUresult engine_drain_context(struct sim_context *ctx);
bool engine_wait_mark(struct mark *mark);
bool engine_idle(const struct sim_stream *stream);
uint64_t engine_pending(void);
void engine_kick(void);
uint64_t engine_now(void);
CUresult op_run(struct op *op); /* execute.c; the lock is given up for host functions */
bool op_blocked(const struct op *op);
uint64_t op_cost_ns(const struct op *op); /* beside the latency */
void op_forget(struct op *op);

/* ---- access.c: finds the host memory behind an address when an operation is executed */
enum access { ACCESS_COPY, ACCESS_PEER_COPY, ACCESS_KERNEL };
char *access_at(uint64_t address, size_t *length, struct sim_context *ctx, bool write, enum access how);

/* ---- copy.c: describes a copy as an operation, and does not put the operation on a stream */
CUresult copy_shape(const CUDA_MEMCPY3D *is, struct op *out);

/* ---- stream.c */
struct sim_stream *stream_get(CUstream handle);                /* NULL: no such stream in the current context */
struct sim_stream *stream_of_context(struct sim_context *ctx); /* the legacy one */
CUstream stream_per_thread(CUstream handle);
void stream_forget(struct sim_context *ctx);
extern struct sim_stream *stream_list;
struct sim_event {
    struct sim_event *next;
    struct sim_context *ctx;
    unsigned flags;
    struct mark *mark;
    struct sim_capture *capture; /* recorded in a capture, which may be over */
    uint64_t capture_id;
};

struct sim_event *event_get(CUevent handle); /* NULL: there is none */
CUresult event_record(struct sim_event *self, struct sim_stream *stream);
CUresult event_wait(struct sim_event *self, struct sim_stream *stream);

/* ---- kernel.c */
CUresult kernel_op(CUfunction function, void **arguments, void **extra, struct op *out);

/* ---- condition.c: conditions of graphs */
CUresult condition_op(const CUDA_CONDITIONAL_NODE_PARAMS *params, struct sim_graph *graph, struct op *out);
CUresult condition_run(struct op *op); /* the bodies that its value chooses, within the engine */
CUresult condition_set(uint64_t handle, uint32_t value);
void condition_default(struct sim_condition *self);
CUresult condition_defaults(struct sim_graph *graph, struct sim_stream *stream); /* at a launch, before all nodes */
void condition_forget(const struct sim_graph *graph);                            /* its handles end with it */

/* ---- capture.c and graph.c */
struct sim_capture {
    struct sim_capture *next;
    struct sim_graph *graph;
    struct sim_stream *origin;
    int mode;
    bool broken, given; /* given: the graph existed before */
    pthread_t thread;
    uint64_t id;
};
/* If captures forbid unsafe calls now, breaks these captures, and returns the error of a forbidden call. */
CUresult capture_forbids(void);
/* The same for a call that waits for all streams of the context. Such a call also breaks the captures of these
 * streams. */
CUresult capture_forbids_sync(struct sim_context *ctx);
CUresult capture_forbids_legacy(struct sim_context *ctx);
bool capture_goes_on(const struct sim_capture *self, uint64_t id);
CUresult capture_add(struct sim_capture *self, const struct op *model);
void capture_forget(struct sim_context *ctx);
void capture_forget_stream(struct sim_stream *stream);
struct sim_graph *graph_new(void);
struct sim_graph *graph_hold(struct sim_graph *self); /* keeps it until it is dropped once more */
CUresult graph_add(struct sim_graph *self, const struct op *model, struct sim_node **node);
void graph_drop(struct sim_graph *self);
struct sim_graph *graph_new_body(void); /* for a condition; ends with the graph that has the condition's node */
bool graph_is_body(const struct sim_graph *self);
CUresult graph_run(struct sim_graph *self, const struct op *as); /* all at once, within the engine */
size_t graph_length(const struct sim_graph *self);
CUresult graph_memory(struct sim_graph *graph, struct device *device, size_t bytes, CUdeviceptr *out,
                      struct sim_node **node);
CUresult graph_memory_free(struct sim_graph *graph, CUdeviceptr at, struct sim_node **node);
struct gmem {
    struct gmem *next;
    struct device *device;
    CUdeviceptr at;
    size_t size;
    struct sim_phys *phys; /* while it lives */
    struct block *block;
    struct sim_graph *graph;
    int refs;
};
void gmem_live(struct gmem *self);
void gmem_dead(struct gmem *self);
void gmem_unref(struct gmem *self);

/* ---- pool.c */
void pool_begin(struct device *device);
void pool_executed(struct op *op);
void pool_synchronised(void); /* called after a wait: unused memory above the thresholds goes back to devices */
void pool_free_now(struct block *block);
bool pool_make_room(struct device *device);

/* ---- memory.c */
CUresult memory_free(struct block *block);
void memory_forget(struct sim_context *ctx);
CUresult memory_slab(struct sim_context *ctx, size_t bytes, struct block **out);

/* ---- array.c */
bool array_locate(CUarray handle, CUdeviceptr *at, size_t *pitch, size_t *height);
void array_forget(struct sim_context *ctx);

/* ---- kernel.c: the simulated kernels */
struct kernel {
    const char *name;
    int arguments;
    CUresult (*run)(struct sim_context *ctx, const uint64_t *arguments);
    bool (*blocked)(const uint64_t *arguments);
};

#pragma GCC visibility pop

#endif

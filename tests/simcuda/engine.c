/* engine.c — the thread that executes the operations of all streams, one at a time, each after the set latency.
 * In: operations in the order of each stream. Out: their effects, and marks for finished operations. Blocking streams
 * wait for the legacy stream, and it waits for them. Non-blocking streams wait for nothing. */
#include "sim.h"

#include <signal.h>
#include <stdlib.h>
#include <time.h>

static pthread_cond_t work = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;
static bool running;
static int holds;
static uint64_t next_seq = 1;
/* How long the last copy really took. If the next operation is a copy, too, this time is subtracted from its delay. */
static uint64_t credit_ns;

uint64_t engine_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now); /* the clock of pthread_cond_timedwait */
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void engine_kick(void) { pthread_cond_broadcast(&work); }

/* ---- marks */

struct mark *mark_new(void) {
    struct mark *self = calloc(1, sizeof *self);
    if (!self) abort();
    self->refs = 1;
    return self;
}

struct mark *mark_ref(struct mark *self) {
    if (self) self->refs++;
    return self;
}

void mark_unref(struct mark *self) {
    if (self && !--self->refs) free(self);
}

/* ---- which operation is next */

static bool behind(const struct sim_stream *stream, uint64_t seq) { return stream->head && stream->head->seq < seq; }

static bool ordered(const struct op *op) {
    if (!op->stream->blocking) return true;
    for (struct sim_stream *other = stream_list; other; other = other->next)
        if (other != op->stream && other->ctx == op->ctx && other->blocking && (other->legacy || op->stream->legacy) &&
            behind(other, op->seq))
            return false;
    return true;
}

/* In a broken context nothing waits any more. */
static bool ready(const struct op *op) {
    return op->ctx->sticky || (ordered(op) && (!op->wait || op->wait->done) && !op_blocked(op));
}

static uint64_t due_at(const struct op *op, uint64_t now) {
    uint64_t cost = op_cost_ns(op), credit = credit_ns < cost ? credit_ns : cost;
    credit_ns = 0;
    return now + sim_config.latency_ns + cost - credit;
}

/* Returns a ready operation that is due. If there is none, returns NULL, and sets *wake to the time when the next ready
 * operation will be due, or to 0 if no operation is ready or the streams are held (sim_hold). */
static struct op *choose(uint64_t *wake) {
    uint64_t now = engine_now();
    *wake = 0;
    for (struct sim_stream *stream = stream_list; stream && !holds; stream = stream->next) {
        struct op *op = stream->head;
        if (!op || !ready(op)) continue;
        if (!op->due) op->due = due_at(op, now);
        if (op->due <= now) return op;
        if (!*wake || op->due < *wake) *wake = op->due;
    }
    return NULL;
}

static void finish(struct op *op) {
    struct sim_stream *stream = op->stream;
    stream->head = op->next;
    if (!stream->head) stream->tail = NULL;
    if (op->mark) {
        op->mark->done = true;
        op->mark->when_ns = engine_now();
    }
    op_forget(op);
    free(op);
    pthread_cond_broadcast(&done);
}

static void execute(struct op *op) {
    uint64_t before = engine_now();
    if (!op->ctx->sticky) {
        CUresult result = op_run(op);
        if (result) context_break(op->ctx, result);
    }
    if (op_cost_ns(op)) credit_ns = engine_now() - before;
    pool_executed(op);
    finish(op);
}

static void wait_for_work(uint64_t wake) {
    if (!wake) {
        credit_ns = 0;
        pthread_cond_wait(&work, &sim_lock);
        return;
    }
    struct timespec until = {(time_t)(wake / 1000000000u), (long)(wake % 1000000000u)};
    pthread_cond_timedwait(&work, &sim_lock, &until);
}

static void *engine(void *unused) {
    (void)unused;
    pthread_mutex_lock(&sim_lock);
    for (;;) {
        uint64_t wake;
        struct op *op = choose(&wake);
        if (op)
            execute(op);
        else
            wait_for_work(wake);
    }
    return NULL;
}

static CUresult begin(void) {
    pthread_t thread;
    sigset_t all, before;
    if (running) return CUDA_SUCCESS;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    running = !pthread_create(&thread, NULL, engine, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!running) return CUDA_ERROR_OPERATING_SYSTEM;
    pthread_detach(thread);
    return CUDA_SUCCESS;
}

/* ---- what entries call */

CUresult engine_add(struct sim_stream *stream, const struct op *model, struct mark **mark) {
    if (stream->ctx->sticky) return stream->ctx->sticky;
    if (stream->capture) return capture_add(stream->capture, model);
    CUresult result = capture_forbids_legacy(stream->legacy ? stream->ctx : NULL);
    if (result || (result = begin())) return result;
    struct op *op = malloc(sizeof *op);
    if (!op) return CUDA_ERROR_OUT_OF_MEMORY;
    *op = *model;
    op->next = NULL;
    op->stream = stream;
    op->ctx = stream->ctx;
    op->seq = next_seq++;
    if (mark) {
        op->mark = mark_new();
        *mark = mark_ref(op->mark);
    }
    if (stream->tail)
        stream->tail->next = op;
    else
        stream->head = op;
    stream->tail = op;
    engine_kick();
    return CUDA_SUCCESS;
}

bool engine_idle(const struct sim_stream *stream) { return !stream->head; }

CUresult engine_drain_stream(struct sim_stream *stream) {
    uint64_t last = next_seq;
    struct sim_context *ctx = stream->ctx;
    while (behind(stream, last)) pthread_cond_wait(&done, &sim_lock);
    pool_synchronised();
    return ctx->sticky;
}

static bool context_behind(const struct sim_context *ctx, uint64_t seq) {
    for (struct sim_stream *stream = stream_list; stream; stream = stream->next)
        if (stream->ctx == ctx && behind(stream, seq)) return true;
    return false;
}

CUresult engine_drain_context(struct sim_context *ctx) {
    uint64_t last = next_seq;
    while (context_behind(ctx, last)) pthread_cond_wait(&done, &sim_lock);
    pool_synchronised();
    return ctx->sticky;
}

bool engine_wait_mark(struct mark *mark) {
    while (!mark->done) pthread_cond_wait(&done, &sim_lock);
    pool_synchronised();
    return true;
}

uint64_t engine_pending(void) {
    uint64_t count = 0;
    for (struct sim_stream *stream = stream_list; stream; stream = stream->next)
        for (struct op *op = stream->head; op; op = op->next) count++;
    return count;
}

__attribute__((visibility("default"))) void sim_hold(int add) {
    pthread_mutex_lock(&sim_lock);
    holds += add;
    engine_kick();
    pthread_mutex_unlock(&sim_lock);
}

__attribute__((visibility("default"))) void sim_set_latency_us(uint64_t us) {
    pthread_mutex_lock(&sim_lock);
    sim_config.latency_ns = us * 1000;
    pthread_mutex_unlock(&sim_lock);
}

/* python_threads.c — see python_threads.h.
 *
 * The way to the threads is _PyRuntime → interpreters → thread states → frames. In a thread of threading.Thread, the
 * outermost Python function is Thread._bootstrap(self). Its first local is the Thread object with _daemonic and
 * _name. */
#include "tools/proc/python_threads.h"
#include "tools/base/list.h"
#include "tools/proc/dynsym.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

enum {
    THREADS_MOST = 4096,
    FRAMES_MOST = 200000, /* for all threads together */
    KEYS_MOST = 256,
    TEXT_MOST = 120
};
enum { COMPACT_ASCII = 3, UNICODE_KEYS = 1, SPLIT_KEYS = 2 };

/* Offsets of members, from the headers of CPython 3.11.7 and 3.12.1. The offsets do not change within a minor
 * version. */
struct layout {
    uint32_t interpreters, thread_head, thread_id, cframe_frame, frame_code, frame_previous, cached_keys, text_state,
        text_start, text_shift;
    int values; /* where an object's attributes lie, in words from the object's start */
    bool values_tagged;
};
static const struct layout layouts[2] = {
    {40, 16, 160, 8, 32, 48, 872, 32, 48, 5, -4, false},
    {40, 72, 144, 0, 0, 8, 880, 32, 40, 5, -3, true},
};
/* Offsets that are equal in both layouts. */
enum {
    INTERPRETER_NEXT = 0,
    THREAD_NEXT = 8,
    THREAD_CFRAME = 56,
    FRAME_LOCALS = 72,
    CODE_FILE = 112,
    CODE_NAME = 120,
    OBJECT_TYPE = 8,
    DICT = -3, /* in words */
    DICT_KEYS = 32,
    DICT_VALUES = 40,
    KEYS_LOG2_BYTES = 9,
    KEYS_KIND = 10,
    KEYS_COUNT = 24,
    KEYS_INDICES = 32,
    TEXT_LENGTH = 16,
};

struct python {
    pid_t pid;
    bool main_only;
    const struct layout *layout;
    size_t frames; /* number of frames so far: the chain of a hostile process may be endless */
    uint64_t runtime, true_object, false_object;
};

static bool python_threads_peek(const struct python *python, uint64_t address, void *to, size_t size) {
    struct iovec local = {to, size}, remote = {(void *)(uintptr_t)address, size};
    return address && process_vm_readv(python->pid, &local, 1, &remote, 1, 0) == (ssize_t)size;
}

/* The word at the address; 0 also if it cannot be read. */
static uint64_t python_threads_word(const struct python *python, uint64_t address) {
    uint64_t value = 0;
    return python_threads_peek(python, address, &value, sizeof value) ? value : 0;
}

/* Reads a str of ASCII characters; "" for any other object. */
static void read_text(const struct python *python, uint64_t object, char *to, size_t capacity) {
    uint32_t state = 0;
    uint64_t length = python_threads_word(python, object + TEXT_LENGTH);
    to[0] = 0;
    if (!object || !python_threads_peek(python, object + python->layout->text_state, &state, sizeof state)) return;
    if ((state >> python->layout->text_shift & COMPACT_ASCII) != COMPACT_ASCII || !length) return;
    uint64_t from = object + python->layout->text_start;
    if (length >= capacity) { /* keeps the end of a path */
        from += length - (capacity - 1);
        length = capacity - 1;
    }
    to[python_threads_peek(python, from, to, length) ? length : 0] = 0;
}

/* --- attributes of an object --- */

struct keys {
    uint64_t entries, count;
    unsigned kind;
    size_t entry_size;
};

static bool read_keys(const struct python *python, uint64_t address, struct keys *keys) {
    uint8_t head[KEYS_INDICES];
    if (!python_threads_peek(python, address, head, sizeof head) || head[KEYS_LOG2_BYTES] > 20) return false;
    memcpy(&keys->count, head + KEYS_COUNT, sizeof keys->count);
    keys->kind = head[KEYS_KIND];
    keys->entry_size = keys->kind == 0 ? 24 : 16;
    keys->entries = address + KEYS_INDICES + (UINT64_C(1) << head[KEYS_LOG2_BYTES]);
    return keys->count <= KEYS_MOST && keys->kind <= SPLIT_KEYS;
}

/* The value of an attribute; 0: there is none. `values`: the address of the values if they lie apart from the keys;
 * else 0. */
static uint64_t find_value(const struct python *python, const struct keys *keys, uint64_t values, const char *name) {
    char text[32];
    for (uint64_t i = 0; i < keys->count; i++) {
        uint64_t entry = keys->entries + i * keys->entry_size + (keys->kind == 0 ? 8 : 0);
        read_text(python, python_threads_word(python, entry), text, sizeof text);
        if (strcmp(text, name) == 0) return python_threads_word(python, values ? values + 8 * i : entry + 8);
    }
    return 0;
}

static uint64_t python_threads_attribute(const struct python *python, uint64_t object, const char *name) {
    const struct layout *layout = python->layout;
    struct keys keys;
    uint64_t values = python_threads_word(python, object + (uint64_t)(8 * (int64_t)layout->values));
    uint64_t dict = python_threads_word(python, object + (uint64_t)(8 * (int64_t)DICT));
    if (layout->values_tagged) values = values & 1 ? values + 1 : 0;
    if (values) {
        uint64_t type = python_threads_word(python, object + OBJECT_TYPE);
        return read_keys(python, python_threads_word(python, type + layout->cached_keys), &keys)
                   ? find_value(python, &keys, values, name)
                   : 0;
    }
    return read_keys(python, python_threads_word(python, dict + DICT_KEYS), &keys)
               ? find_value(python, &keys, python_threads_word(python, dict + DICT_VALUES), name)
               : 0;
}

/* --- reading threads and their frames --- */

/* The function of a frame; "" if it cannot be read. */
struct function {
    char name[TEXT_MOST / 2], file[TEXT_MOST];
};

static struct function function_of(const struct python *python, uint64_t frame) {
    struct function function;
    uint64_t code = python_threads_word(python, frame + python->layout->frame_code);
    read_text(python, python_threads_word(python, code + CODE_NAME), function.name, sizeof function.name);
    read_text(python, python_threads_word(python, code + CODE_FILE), function.file, sizeof function.file);
    return function;
}

static void note_function(struct python_thread *thread, struct function function) {
    const char *slash = strrchr(function.file, '/');
    if (function.name[0] && function.file[0])
        snprintf(thread->function, sizeof thread->function, "%.59s (%.90s)", function.name,
                 slash ? slash + 1 : function.file);
}

static bool ends_in(const char *text, const char *tail) {
    size_t length = strlen(text), size = strlen(tail);
    return length >= size && strcmp(text + length - size, tail) == 0;
}

/* Whether a function belongs to Python's code for the end of a program. If this is so for the outermost function of the
 * main thread, the program's own code is over. */
static bool is_of_the_end(const struct function *function) {
    return (strcmp(function->name, "_shutdown") == 0 && ends_in(function->file, "/threading.py")) ||
           (strcmp(function->name, "_exit_function") == 0 && ends_in(function->file, "/multiprocessing/util.py"));
}

/* Walks along a thread's frames outwards. Notes the innermost function, and at_end. Returns the object that
 * Thread._bootstrap was called with; 0: none. */
static uint64_t python_threads_walk(struct python *python, uint64_t frame, struct python_thread *thread) {
    uint64_t outermost = 0, last = 0;
    for (; frame && python->frames < FRAMES_MOST; python->frames++) {
        if (!thread->function[0]) note_function(thread, function_of(python, frame));
        last = outermost; /* in 3.12, a frame without a function lies outside the outermost function's frame */
        outermost = frame;
        frame = python_threads_word(python, frame + python->layout->frame_previous);
    }
    for (int i = 0; i < 2; i++, outermost = last) {
        struct function function = function_of(python, outermost);
        thread->at_end |= is_of_the_end(&function);
        if (strcmp(function.name, "_bootstrap") == 0) return python_threads_word(python, outermost + FRAME_LOCALS);
    }
    return 0;
}

static void thread_read(struct python *python, uint64_t state, struct python_thread *thread) {
    uint64_t tid = python_threads_word(python, state + python->layout->thread_id);
    *thread = (struct python_thread){.tid = (pid_t)tid, .daemon = PYTHON_FOREIGN};
    uint64_t frame =
        python_threads_word(python, python_threads_word(python, state + THREAD_CFRAME) + python->layout->cframe_frame);
    uint64_t object = python_threads_walk(python, frame, thread);
    if (thread->tid == python->pid) thread->daemon = PYTHON_MAIN;
    if (!object) return;
    uint64_t daemonic = python_threads_attribute(python, object, "_daemonic");
    read_text(python, python_threads_attribute(python, object, "_name"), thread->name, sizeof thread->name);
    if (daemonic == python->true_object) thread->daemon = PYTHON_DAEMON;
    if (daemonic == python->false_object) thread->daemon = PYTHON_NOT_DAEMON;
}

static bool find_python(struct python *python) {
    static const char *const files[] = {"python3", "libpython3", NULL};
    static const char *const names[] = {"_PyRuntime", "_Py_TrueStruct", "_Py_FalseStruct", "Py_Version"};
    uint64_t addresses[4];
    uint32_t version;
    if (!dynsym_find(python->pid, files, names, addresses, 4)) return false;
    python->runtime = addresses[0];
    python->true_object = addresses[1];
    python->false_object = addresses[2];
    if (!python_threads_peek(python, addresses[3], &version, sizeof version)) return false;
    unsigned minor = version >> 16 & 0xFF;
    if (version >> 24 != 3 || minor < 11 || minor > 12) return false;
    python->layout = &layouts[minor - 11];
    return true;
}

static void load_interpreter(struct python_threads *threads, struct python *python, uint64_t interpreter) {
    uint64_t state = python_threads_word(python, interpreter + python->layout->thread_head);
    for (size_t i = 0; state && i < THREADS_MOST; i++, state = python_threads_word(python, state + THREAD_NEXT)) {
        if (python->main_only && (pid_t)python_threads_word(python, state + python->layout->thread_id) != python->pid)
            continue;
        if (!LIST_GROW(threads->list, threads->count, threads->capacity)) return;
        thread_read(python, state, &threads->list[threads->count++]);
    }
}

static void threads_load(struct python_threads *threads, struct python *python) {
    *threads = (struct python_threads){0};
    if (!find_python(python)) return;
    uint64_t interpreter = python_threads_word(python, python->runtime + python->layout->interpreters);
    for (int i = 0; interpreter && i < 64;
         i++, interpreter = python_threads_word(python, interpreter + INTERPRETER_NEXT))
        load_interpreter(threads, python, interpreter);
}

void python_threads_load(struct python_threads *threads, pid_t pid) {
    threads_load(threads, &(struct python){.pid = pid});
}

bool python_threads_at_end(pid_t pid) {
    struct python_threads threads;
    bool at_end = false;
    threads_load(&threads, &(struct python){.pid = pid, .main_only = true});
    for (size_t i = 0; i < threads.count; i++) at_end |= threads.list[i].at_end;
    python_threads_clear(&threads);
    return at_end;
}

void python_threads_clear(struct python_threads *threads) {
    free(threads->list);
    *threads = (struct python_threads){0};
}

const struct python_thread *python_threads_find(const struct python_threads *threads, pid_t tid) {
    for (size_t i = 0; i < threads->count; i++)
        if (threads->list[i].tid == tid) return &threads->list[i];
    return NULL;
}

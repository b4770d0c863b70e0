/* python_layout.c — see python_layout.h. */
#include "preload/stacks/python_layout.h"

#include <string.h>

/* --- 3.13 and later: _Py_DebugOffsets, at the start of _PyRuntime. First comes a cookie. 64-bit words follow: the
 * version, whether the interpreter is free-threaded, and groups of offsets. Each group begins with the size of its
 * struct. Newer versions add words to groups. --- */

enum { WORD_VERSION = 1, WORD_FREE_THREADED = 2, WORD_FINALIZING = 4, WORDS = 81 };

/* The index of each group's first word (the size). */
struct groups {
    uint32_t thread, frame, code, object, bytes, text;
};
static const struct groups groups_313 = {.thread = 19, .frame = 28, .code = 34, .object = 44, .bytes = 64, .text = 67};
static const struct groups groups_314 = {.thread = 22, .frame = 31, .code = 39, .object = 50, .bytes = 74, .text = 77};

/* Word n of a group, which must be an offset into the struct. If it is not, `good` becomes false. */
static uint32_t python_layout_offset(const uint64_t *words, uint32_t group, uint32_t n, bool *good) {
    uint64_t size = words[group], at = words[group + n];
    *good = *good && size <= 1 << 20 && at < size;
    return (uint32_t)at;
}

static bool from_words(const uint64_t *words, const struct groups *at, struct python_layout *out) {
    bool good = true;
    uint32_t head = (uint32_t)words[at->object], free_threaded = words[WORD_FREE_THREADED] != 0;
    *out = (struct python_layout){
        .thread_head = python_layout_offset(words, at->thread, 4, &good),
        .thread_id = python_layout_offset(words, at->thread, 5, &good),
        .frame_previous = python_layout_offset(words, at->frame, 1, &good),
        .frame_code = python_layout_offset(words, at->frame, 2, &good),
        .frame_instruction = python_layout_offset(words, at->frame, 3, &good),
        .frame_owner = python_layout_offset(words, at->frame, 5, &good),
        .code_file = python_layout_offset(words, at->code, 1, &good),
        .code_name = python_layout_offset(words, at->code, 3, &good),
        .code_lines = python_layout_offset(words, at->code, 4, &good),
        .code_first_line = python_layout_offset(words, at->code, 5, &good),
        .code_start = python_layout_offset(words, at->code, 9, &good),
        .object_type = python_layout_offset(words, at->object, 1, &good),
        .object_size = head,
        .type_dealloc = head + 4 * sizeof(void *), /* a size, the name and two sizes come before tp_dealloc */
        .bytes_start = python_layout_offset(words, at->bytes, 2, &good),
        .text_state = python_layout_offset(words, at->text, 1, &good),
        .text_length = python_layout_offset(words, at->text, 2, &good),
        .text_ascii = (uint32_t)words[at->text + 3],
        .text_other = (uint32_t)words[at->text + 3] + 2 * sizeof(void *), /* cached UTF-8 and its length lie between */
        /* The kind comes after "interned". "interned" has 2 bits. In free-threaded interpreters it has a byte, because
         * it must be atomic there. */
        .text_kind_shift = free_threaded ? 8 : 2,
        .runtime_finalizing = (uint32_t)words[WORD_FINALIZING],
        /* 3 is FRAME_OWNED_BY_CSTACK in 3.13, and FRAME_OWNED_BY_INTERPRETER from 3.14 on. 3.15 adds
         * FRAME_OWNED_BY_THREAD_STATE, which is 4. */
        .entry_owner = 3,
    };
    /* The offset of _co_firsttraceable is not published, so it is computed from the offset of the instructions.
     * _co_firsttraceable is an int with 4 bytes of padding. Between it and the instructions lies the pointer co_extra.
     * In free-threaded interpreters from 3.14 on, the pointer co_tlbc lies there too. */
    bool more = free_threaded && at == &groups_314;
    out->code_first_traceable = out->code_start - (more ? 24 : 16);
    return good && head >= 16 && head <= 64 && words[at->object + 1] == head - 8 && words[at->bytes + 1] == head &&
           out->text_ascii >= out->text_state + 4 && out->text_ascii <= 128 && out->code_start > out->code_lines + 24;
}

static bool from_runtime(uint32_t version, const void *runtime, struct python_layout *out) {
    uint64_t words[WORDS];
    if (memcmp(runtime, "xdebugpy", 8) != 0) return false;
    memcpy(words, runtime, sizeof words); /* _PyRuntime is much larger than this */
    if ((uint32_t)words[WORD_VERSION] != version) return false;
    return from_words(words, version >> 16 == 0x030d ? &groups_313 : &groups_314, out);
}

bool python_layout(uint32_t version, const void *runtime, struct python_layout *out) {
    uint32_t minor = version >> 16;
    if (minor == 0x030b || minor == 0x030c) {
        *out = minor == 0x030b ? python_layout_311 : python_layout_312;
        return true;
    }
    return minor > 0x030c && runtime && from_runtime(version, runtime, out);
}

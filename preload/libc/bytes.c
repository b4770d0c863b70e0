/* bytes.c — the library's own memcpy, strcmp and the like.
 * In: calls from this library, including calls that the compiler makes for assignments. Out: what libc's functions
 * would do. Nothing here may call a function outside of this file: in a program with a sanitizer, the memcpy and strcmp
 * outside of the library are the sanitizer's, and crash if they are called before the sanitizer has started. The linker
 * binds all calls of the library to the functions of this file, because their visibility is hidden. (Compiler options
 * in CMakeLists.txt keep the compiler from replacing a loop here by a call of the function that the loop is in.) */
#include <emmintrin.h>
#include <stdint.h>
#include <string.h>

/* Words of 2, 4 and 8 bytes at any address. */
typedef uint16_t __attribute__((may_alias, aligned(1))) two;
typedef uint32_t __attribute__((may_alias, aligned(1))) four;
typedef uint64_t __attribute__((may_alias, aligned(1))) eight;

/* BY_STRING: from this size on, the processor's string instructions are faster than a loop over vectors. */
enum { VECTOR = sizeof(__m128i), BY_STRING = 2048 };

static inline __m128i bytes_load(const void *from) { return _mm_loadu_si128(from); }

static inline void bytes_store(void *to, __m128i value) { _mm_storeu_si128(to, value); }

/* Copies at most two vectors (32 bytes). It reads all bytes before it writes any, so the ranges may overlap. */
static inline void move_short(char *to, const char *from, size_t n) {
    if (n >= VECTOR) {
        __m128i first = bytes_load(from), last = bytes_load(from + n - VECTOR);
        bytes_store(to, first);
        bytes_store(to + n - VECTOR, last);
    } else if (n >= 8) {
        uint64_t first = *(const eight *)from, last = *(const eight *)(from + n - 8);
        *(eight *)to = first;
        *(eight *)(to + n - 8) = last;
    } else if (n >= 4) {
        uint32_t first = *(const four *)from, last = *(const four *)(from + n - 4);
        *(four *)to = first;
        *(four *)(to + n - 4) = last;
    } else if (n >= 2) {
        uint16_t first = *(const two *)from, last = *(const two *)(from + n - 2);
        *(two *)to = first;
        *(two *)(to + n - 2) = last;
    } else if (n) {
        *to = *from;
    }
}

/* The last vector is read first, because overlapping ranges may overwrite it. */
static void move_up(char *to, const char *from, size_t n) {
    __m128i last = bytes_load(from + n - VECTOR);
    for (size_t at = 0; at < n - VECTOR; at += VECTOR) bytes_store(to + at, bytes_load(from + at));
    bytes_store(to + n - VECTOR, last);
}

static void move_down(char *to, const char *from, size_t n) {
    __m128i first = bytes_load(from);
    for (size_t at = n; at > VECTOR; at -= VECTOR) bytes_store(to + at - VECTOR, bytes_load(from + at - VECTOR));
    bytes_store(to, first);
}

/* Copies upwards. The ranges may overlap if `to` is below `from`. */
static inline void *copy_up(void *to, const void *from, size_t n) {
    void *at = to;
    if (n <= 2 * VECTOR)
        move_short(to, from, n);
    else if (n < BY_STRING)
        move_up(to, from, n);
    else
        __asm__ volatile("rep movsb" : "+D"(at), "+S"(from), "+c"(n) : : "memory");
    return to;
}

void *memcpy(void *restrict to, const void *restrict from, size_t n) { return copy_up(to, from, n); }

void *memmove(void *to, const void *from, size_t n) {
    if (n <= 2 * VECTOR || (uintptr_t)to - (uintptr_t)from >= n) return copy_up(to, from, n);
    move_down(to, from, n);
    return to;
}

static inline void set_short(char *to, uint64_t bytes, size_t n) {
    if (n >= 8) {
        *(eight *)to = bytes;
        *(eight *)(to + n - 8) = bytes;
    } else if (n >= 4) {
        *(four *)to = (uint32_t)bytes;
        *(four *)(to + n - 4) = (uint32_t)bytes;
    } else if (n >= 2) {
        *(two *)to = (uint16_t)bytes;
        *(two *)(to + n - 2) = (uint16_t)bytes;
    } else if (n) {
        *to = (char)bytes;
    }
}

void *memset(void *to, int byte, size_t n) {
    char *at = to;
    if (n < VECTOR) {
        set_short(to, (uint8_t)byte * UINT64_C(0x0101010101010101), n);
    } else if (n < BY_STRING) {
        __m128i bytes = _mm_set1_epi8((char)byte);
        for (char *last = at + n - VECTOR; at < last; at += VECTOR) bytes_store(at, bytes);
        bytes_store((char *)to + n - VECTOR, bytes);
    } else {
        __asm__ volatile("rep stosb" : "+D"(at), "+c"(n) : "a"(byte) : "memory");
    }
    return to;
}

static inline __m128i bytes_equal(const uint8_t *a, const uint8_t *b) {
    return _mm_cmpeq_epi8(bytes_load(a), bytes_load(b));
}

/* Compares four vectors at a time, until they differ. Returns how many bytes were found equal, a multiple of four
 * vectors. */
static size_t same_by_fours(const uint8_t *a, const uint8_t *b, size_t n) {
    size_t at = 0;
    for (; n - at >= 4 * VECTOR; at += 4 * VECTOR) {
        __m128i first = _mm_and_si128(bytes_equal(a + at, b + at), bytes_equal(a + at + VECTOR, b + at + VECTOR));
        __m128i last = _mm_and_si128(bytes_equal(a + at + 2 * VECTOR, b + at + 2 * VECTOR),
                                     bytes_equal(a + at + 3 * VECTOR, b + at + 3 * VECTOR));
        if (_mm_movemask_epi8(_mm_and_si128(first, last)) != 0xFFFF) break;
    }
    return at;
}

int memcmp(const void *a, const void *b, size_t n) {
    const uint8_t *left = a, *right = b;
    size_t at = same_by_fours(left, right, n);
    while (n - at >= sizeof(eight) && *(const eight *)(left + at) == *(const eight *)(right + at)) at += sizeof(eight);
    for (; at < n; at++)
        if (left[at] != right[at]) return left[at] - right[at];
    return 0;
}

void *memchr(const void *in, int byte, size_t n) {
    for (const uint8_t *at = in; n--; at++)
        if (*at == (uint8_t)byte) return (void *)at;
    return NULL;
}

/* --- text, byte by byte: texts are short --- */

size_t strnlen(const char *text, size_t most) {
    size_t n = 0;
    while (n < most && text[n]) n++;
    return n;
}

size_t strlen(const char *text) { return strnlen(text, SIZE_MAX); }

int strncmp(const char *a, const char *b, size_t most) {
    while (most && *a && *a == *b) a++, b++, most--;
    return most ? (uint8_t)*a - (uint8_t)*b : 0;
}

int strcmp(const char *a, const char *b) { return strncmp(a, b, SIZE_MAX); }

char *stpcpy(char *restrict to, const char *restrict from) {
    while ((*to = *from++)) to++;
    return to;
}

char *strcpy(char *restrict to, const char *restrict from) {
    stpcpy(to, from);
    return to;
}

char *strcat(char *restrict to, const char *restrict from) {
    stpcpy(to + strlen(to), from);
    return to;
}

char *strncpy(char *restrict to, const char *restrict from, size_t capacity) {
    size_t length = strnlen(from, capacity);
    memcpy(to, from, length);
    memset(to + length, 0, capacity - length);
    return to;
}

char *strchr(const char *text, int byte) {
    for (; *text != (char)byte; text++)
        if (!*text) return NULL;
    return (char *)text;
}

char *strrchr(const char *text, int byte) {
    const char *last = NULL;
    for (; text; text = *text ? text + 1 : NULL)
        if (*text == (char)byte) last = text;
    return (char *)last;
}

/* Counts the characters of the text before the first character that is not in `bytes`. If `among` is 0, counts those
 * before the first character that is in `bytes`. */
static size_t bytes_span(const char *text, const char *bytes, int among) {
    size_t n = 0;
    while (text[n] && (strchr(bytes, text[n]) != NULL) == among) n++;
    return n;
}

size_t strspn(const char *text, const char *bytes) { return bytes_span(text, bytes, 1); }

size_t strcspn(const char *text, const char *bytes) { return bytes_span(text, bytes, 0); }

char *strstr(const char *text, const char *part) {
    size_t length = strlen(part);
    while (strncmp(text, part, length) != 0)
        if (!*text++) return NULL;
    return (char *)text;
}

// memcpy, strcmp and their like do what libc's do for all lengths, places and overlaps, and touch nothing else.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* The library's functions, by names of their own. */
#define memcpy own_memcpy
#define memmove own_memmove
#define memset own_memset
#define memcmp own_memcmp
#define memchr own_memchr
#define strlen own_strlen
#define strnlen own_strnlen
#define strcmp own_strcmp
#define strncmp own_strncmp
#define strcpy own_strcpy
#define stpcpy own_stpcpy
#define strncpy own_strncpy
#define strcat own_strcat
#define strchr own_strchr
#define strrchr own_strrchr
#define strspn own_strspn
#define strcspn own_strcspn
#define strstr own_strstr
void *memcpy(void *restrict, const void *restrict, size_t), *memmove(void *, const void *, size_t),
    *memset(void *, int, size_t);
void *memchr(const void *, int, size_t);
int memcmp(const void *, const void *, size_t), strcmp(const char *, const char *),
    strncmp(const char *, const char *, size_t);
size_t strlen(const char *), strnlen(const char *, size_t), strspn(const char *, const char *),
    strcspn(const char *, const char *);
char *strcpy(char *restrict, const char *restrict), *stpcpy(char *restrict, const char *restrict);
char *strncpy(char *restrict, const char *restrict, size_t), *strcat(char *restrict, const char *restrict);
char *strchr(const char *, int), *strrchr(const char *, int), *strstr(const char *, const char *);
#include "preload/libc/bytes.c"
#undef memcpy
#undef memmove
#undef memset
#undef memcmp
#undef memchr
#undef strlen
#undef strnlen
#undef strcmp
#undef strncmp
#undef strcpy
#undef stpcpy
#undef strncpy
#undef strcat
#undef strchr
#undef strrchr
#undef strspn
#undef strcspn
#undef strstr

enum { ROOM = 8192, SHORT = 200 };
static unsigned char before[ROOM], ours[ROOM], theirs[ROOM];

static void fill(void) {
    for (int i = 0; i < ROOM; i++) before[i] = (unsigned char)rand();
    memcpy(ours, before, ROOM);
    memcpy(theirs, before, ROOM);
}

static void same(const char *what, size_t to, size_t from, size_t n) {
    cr_assert(!memcmp(ours, theirs, ROOM), "%s of %zu bytes from %zu to %zu", what, n, from, to);
}

static void move_and_set(size_t to, size_t from, size_t n) {
    fill();
    cr_assert_eq(own_memmove(ours + to, ours + from, n), ours + to);
    memmove(theirs + to, theirs + from, n);
    same("memmove", to, from, n);
    cr_assert_eq(own_memcpy(ours + to, before + from, n), ours + to);
    memcpy(theirs + to, before + from, n);
    same("memcpy", to, from, n);
    cr_assert_eq(own_memset(ours + to, 0x1A5, n), ours + to);
    memset(theirs + to, 0xA5, n);
    same("memset", to, from, n);
}

Test(bytes, moves_and_sets_just_these) {
    for (size_t n = 0; n < SHORT; n++)
        for (size_t distance = 0; distance < 2 * SHORT; distance += 1 + distance / 24) {
            move_and_set(SHORT + distance, SHORT, n);
            move_and_set(SHORT, SHORT + distance, n);
        }
    static const size_t lengths[] = {511, 2047, 2048, 2049, 4000};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (size_t distance = 0; distance < 4000; distance += 97) {
            move_and_set(37 + distance, 37, lengths[i]);
            move_and_set(37, 37 + distance, lengths[i]);
        }
}

static int sign(int n) { return (n > 0) - (n < 0); }

Test(bytes, compares_and_finds) {
    for (size_t n = 0; n < 3 * SHORT; n++)
        for (size_t at = 0; at < 8; at++) {
            fill();
            size_t different = at + (n ? (size_t)rand() % (n + 1) : 0);
            theirs[different] = (unsigned char)rand();
            int found = own_memcmp(ours + at, theirs + at, n);
            cr_assert_eq(sign(found), sign(memcmp(ours + at, theirs + at, n)), "%zu bytes", n);
            int byte = rand() | 0x100;
            cr_assert_eq(own_memchr(ours + at, byte, n), memchr(ours + at, byte, n));
        }
    cr_assert(own_memcmp("\x80", "\x7f", 1) > 0, "bytes have no sign");
}

static const char *some_text(char *to) {
    static const char letters[] = "aab,:\x80\xff";
    size_t n = (size_t)rand() % 12;
    for (size_t i = 0; i < n; i++) to[i] = letters[(size_t)rand() % (sizeof letters - 1)];
    to[n] = 0;
    return to;
}

static void texts_alike(const char *a, const char *b) {
    size_t n = (size_t)rand() % 14;
    cr_assert_eq(own_strlen(a), strlen(a));
    cr_assert_eq(own_strnlen(a, n), strnlen(a, n));
    cr_assert_eq(sign(own_strcmp(a, b)), sign(strcmp(a, b)), "'%s' '%s'", a, b);
    cr_assert_eq(sign(own_strncmp(a, b, n)), sign(strncmp(a, b, n)), "'%s' '%s' %zu", a, b, n);
    for (int i = 0; i < 2; i++) { /* looks for the NUL; then for *b, with a bit set that does not fit into a char */
        cr_assert_eq(own_strchr(a, i * (0x100 | *b)), strchr(a, i * (0x100 | *b)));
        cr_assert_eq(own_strrchr(a, i * (0x100 | *b)), strrchr(a, i * (0x100 | *b)));
    }
    cr_assert_eq(own_strspn(a, b), strspn(a, b));
    cr_assert_eq(own_strcspn(a, b), strcspn(a, b));
    cr_assert_eq(own_strstr(a, b), strstr(a, b), "'%s' in '%s'", b, a);
}

static void texts_copied(const char *a, const char *b) {
    char mine[32], libcs[32];
    size_t n = (size_t)rand() % 14;
    memset(mine, 1, sizeof mine);
    memset(libcs, 1, sizeof libcs);
    cr_assert_eq(own_stpcpy(mine, a) - mine, stpcpy(libcs, a) - libcs);
    cr_assert_eq(own_strcat(mine, b), mine);
    strcat(libcs, b);
    cr_assert(!memcmp(mine, libcs, sizeof mine));
    cr_assert_eq(own_strcpy(mine, b), mine);
    strcpy(libcs, b);
    cr_assert(!memcmp(mine, libcs, sizeof mine));
    cr_assert_eq(own_strncpy(mine, a, n), mine);
    strncpy(libcs, a, n);
    cr_assert(!memcmp(mine, libcs, sizeof mine));
}

Test(bytes, texts_are_what_libc_takes_them_for) {
    char a[16], b[16];
    for (int i = 0; i < 200000; i++) {
        texts_alike(some_text(a), some_text(b));
        texts_copied(a, b);
    }
}

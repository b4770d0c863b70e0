// A file is read through a small buffer, ahead of the code that takes its bytes. That code gets every byte once and in
// order. The tests also cover a file that ends too early, a taker that stops half way, a bad descriptor, and a reader
// whose thread cannot be started.
// build: -Wl,--wrap=stow_thread_start
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preload/stow/stow.h"
#include "preload/stow/stow_read.h"
#include "preload/stow/stow_thread.h"

enum { SPAN = 11 * READ_PIECE + 3 * 4096, BEGIN = 5 * 4096, ROOM_PIECES = 3 };

static bool no_threads;

struct stow_thread *__real_stow_thread_start(void (*work)(void *context), void *context, bool *own_files);
struct stow_thread *__wrap_stow_thread_start(void (*work)(void *context), void *context, bool *own_files);

struct stow_thread *__wrap_stow_thread_start(void (*work)(void *context), void *context, bool *own_files) {
    return no_threads ? NULL : __real_stow_thread_start(work, context, own_files);
}

static char room[ROOM_PIECES * READ_PIECE];

static uint64_t word_at(uint64_t offset) { return (offset + 1) * 0x9e3779b97f4a7c15; }

/* A file in which each word contains its position. */
static int make_file(uint64_t length) {
    FILE *file = tmpfile();
    cr_assert_not_null(file);
    for (uint64_t offset = 0; offset < length; offset += sizeof(uint64_t)) {
        uint64_t word = word_at(offset);
        cr_assert_eq(fwrite(&word, sizeof word, 1, file), 1);
    }
    cr_assert_eq(fflush(file), 0);
    int fd = dup(fileno(file));
    fclose(file);
    return fd;
}

static void check_words(const char *at, uint64_t offset, uint64_t length) {
    for (uint64_t i = 0; i < length; i += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, at + i, sizeof word);
        cr_assert_eq(word, word_at(offset + i), "at %lu", (unsigned long)(offset + i));
    }
}

/* Takes up to `most` bytes in parts of up to 8 KiB or in whole pieces. Returns how many bytes there were. */
static uint64_t take(struct stow_read *reading, uint64_t most) {
    unsigned seed = 3;
    uint64_t done = 0, there;
    char *at;
    while (done < most && (there = stow_read_wait(reading, &at))) {
        uint64_t part = rand_r(&seed) % 3 ? there : 8 * (1 + (uint64_t)rand_r(&seed) % 1024);
        if (part > there) part = there;
        if (part > most - done) part = most - done;
        check_words(at, BEGIN + done, part);
        memset(at, 0xee, part);
        stow_read_take(reading, part);
        done += part;
    }
    return done;
}

static void read_all(void) {
    struct stow_read reading;
    int fd = make_file(BEGIN + SPAN + 4096);
    stow_read_begin(&reading, fd, BEGIN, SPAN, room, ROOM_PIECES);
    cr_assert_eq(take(&reading, UINT64_MAX), SPAN);
    cr_assert_eq(reading.refusal, STOW_DONE);
    stow_read_end(&reading);
    close(fd);
}

Test(stow_read, every_byte_in_order) { read_all(); }

Test(stow_read, without_threads) {
    no_threads = true;
    read_all();
}

Test(stow_read, taker_stops_half_way) {
    struct stow_read reading;
    int fd = make_file(BEGIN + SPAN);
    stow_read_begin(&reading, fd, BEGIN, SPAN, room, ROOM_PIECES);
    cr_assert_eq(take(&reading, SPAN / 2), SPAN / 2);
    stow_read_end(&reading);
    memset(room, 0x11, sizeof room);
    usleep(20000);
    for (size_t i = 0; i < sizeof room; i++) cr_assert_eq(room[i], 0x11); /* nobody reads into it any more */
    close(fd);
}

/* Whole pieces before the end of the file can still be taken. */
Test(stow_read, file_too_short) {
    struct stow_read reading;
    uint64_t there = 7 * READ_PIECE + 4096;
    int fd = make_file(BEGIN + there);
    stow_read_begin(&reading, fd, BEGIN, SPAN, room, ROOM_PIECES);
    cr_assert_eq(take(&reading, UINT64_MAX), 7 * READ_PIECE);
    cr_assert_eq(reading.refusal, STOW_DISK_ERROR);
    stow_read_end(&reading);
    close(fd);
}

Test(stow_read, descriptor_is_none) {
    struct stow_read reading;
    char *at;
    stow_read_begin(&reading, -1, 0, SPAN, room, ROOM_PIECES);
    cr_assert_eq(stow_read_wait(&reading, &at), 0);
    cr_assert_eq(reading.refusal, STOW_DISK_ERROR);
    stow_read_end(&reading);
}

/* state_bytes.c — see state_bytes.h. Files are written past the page cache, through a buffer. The program's memory is
 * rarely aligned, and so a value of any size needs no more memory than the buffer. */
#include "preload/state/state_bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "preload/shared/os.h"
#include "preload/stow/stow.h"

/* From <linux/memfd.h> and <linux/fcntl.h>. */
enum { CLOSE_ON_EXEC = 1, ALLOW_SEALING = 2, ADD_SEALS = 1033, SEAL_ALL = 15 };
enum { BUFFER = 2 << 20, AT_ONCE = 1 << 30, LANES = 16 };
/* For statx, which tells the alignment that a file needs for writes past the page cache (Linux 6.1). */
enum { STATX_DIRECT = 0x2000, DIRECT_MEMORY = 0x98, STATX_BYTES = 256 };

static const char MAGIC[8] = "MSTVALUE";

/* --- the header --- */

static uint64_t table_end(const struct state_header *header) {
    return sizeof *header + (uint64_t)header->parts * sizeof *header->part;
}

static uint64_t alignment_of(uint64_t length) { return length < STATE_LARGE ? STATE_ALIGNMENT : OS_PAGE; }

bool state_header_lay_out(struct state_header *header) {
    uint64_t at = table_end(header);
    memcpy(header->magic, MAGIC, sizeof MAGIC);
    header->version = STATE_VERSION;
    for (uint32_t i = 0; i < header->parts; i++) {
        header->part[i].start = at = os_round_up(at, alignment_of(header->part[i].length));
        if (header->part[i].length > (uint64_t)INT64_MAX / 2 - at) return false;
        at += header->part[i].length;
    }
    header->length = os_round_up(at, OS_PAGE);
    return true;
}

static bool is_sound(const struct state_header *header, uint64_t length) {
    if (length < sizeof *header || memcmp(header->magic, MAGIC, sizeof MAGIC) != 0) return false;
    if (header->version != STATE_VERSION || header->length != length) return false;
    if (header->parts > MEMSTOW_STATE_PARTS || table_end(header) > length) return false;
    if (!memchr(header->type, 0, sizeof header->type)) return false;
    for (uint32_t i = 0; i < header->parts; i++)
        if (header->part[i].start > length || header->part[i].length > length - header->part[i].start) return false;
    return true;
}

/* --- the checksum: each step is reversible, so a change of one word always changes the sum --- */

struct sum {
    uint64_t lanes[LANES];
};

static void sum_add(struct sum *self, const void *pages, uint64_t length) {
    const uint64_t *word = pages;
    uint64_t lanes[LANES];
    memcpy(lanes, self->lanes, sizeof lanes);
    for (uint64_t i = 0; i < length / sizeof *word; i += LANES)
        for (int lane = 0; lane < LANES; lane++) {
            uint64_t mixed = (lanes[lane] ^ word[i + lane]) * 0x9E3779B97F4A7C15u;
            lanes[lane] = mixed ^ mixed >> 29;
        }
    memcpy(self->lanes, lanes, sizeof lanes);
}

static uint64_t sum_of(const struct sum *self) {
    uint64_t sum = 0;
    for (int lane = 0; lane < LANES; lane++) sum = (sum ^ self->lanes[lane]) * 0xD6E8FEB86659FD93u + (sum >> 32);
    return sum;
}

/* --- results --- */

static int error_of(uint32_t refusal) {
    switch (refusal) {
    case STOW_DONE:
        return 0;
    case STOW_DISK_FULL:
        return -ENOSPC;
    case STOW_FILE_LIMIT:
        return -EFBIG;
    case STOW_NO_DESCRIPTOR:
        return -EMFILE;
    case STOW_ADDRESS_SPACE:
        return -ENOMEM;
    case STOW_DISK_ERROR:
        return -EIO;
    default:
        return -ENOTSUP;
    }
}

static int failed(struct state_bytes *self, int error) {
    stow_file_close(&self->file);
    return error;
}

/* A reader of a value looks at its first page, so only that page is brought into the page cache. */
static void read_first_page(const struct state_bytes *self) {
    char page[OS_PAGE];
    os_call(SYS_fcntl, self->file.fd, F_SETFL, 0); /* through the page cache from now on */
    os_call(SYS_fadvise64, self->file.fd, 0, 0, POSIX_FADV_RANDOM);
    os_pread(self->file.fd, page, sizeof page, 0);
    os_call(SYS_fadvise64, self->file.fd, 0, 0, POSIX_FADV_NORMAL);
}

static int finish(struct state_bytes *self, uint32_t place, uint64_t length) {
    if (place != MEMSTOW_STATE_MEMORY) read_first_page(self);
    self->file.used = 0;
    self->place = place;
    self->length = length;
    long base = os_call(SYS_mmap, NULL, length, PROT_READ, MAP_PRIVATE, self->file.fd, 0);
    if (base < 0 && base > -OS_PAGE) return failed(self, (int)base);
    self->base = (char *)base;
    return 0;
}

void state_bytes_drop(struct state_bytes *self) {
    if (!self->base) return;
    os_unmap(self->base, self->length);
    stow_file_close(&self->file);
    self->base = NULL;
}

/* --- in memory --- */

static int put(int fd, uint64_t from, uint64_t length, uint64_t at) {
    for (uint64_t done = 0; done < length;) {
        uint64_t part = length - done < AT_ONCE ? length - done : AT_ONCE;
        long written = os_call(SYS_pwrite64, fd, from + done, part, at + done);
        if (written == -EINTR) continue;
        if (written <= 0) return written ? (int)written : -ENOSPC;
        done += (uint64_t)written;
    }
    return 0;
}

static int put_all(int fd, const struct state_source *source) {
    const struct state_header *header = source->header;
    int error = put(fd, (uint64_t)header, table_end(header), 0);
    for (uint32_t i = 0; i < header->parts && !error; i++)
        error = put(fd, source->parts[i].start, header->part[i].length, header->part[i].start);
    return error;
}

static int open_memory(struct state_bytes *self, uint64_t length) {
    struct stat status = {0};
    if (length > os_file_limit()) return -EFBIG; /* the limit also holds for files in memory, and exceeding it kills */
    *self =
        (struct state_bytes){.file.fd = (int)os_call(SYS_memfd_create, "memstow-state", CLOSE_ON_EXEC | ALLOW_SEALING)};
    if (self->file.fd < 0) return self->file.fd;
    int error = os_stat_fd(self->file.fd, &status);
    if (!error) error = (int)os_call(SYS_ftruncate, self->file.fd, length);
    self->file.device = status.st_dev, self->file.inode = status.st_ino;
    return error ? failed(self, error) : 0;
}

int state_bytes_in_memory(struct state_bytes *self, const struct state_source *source) {
    int error = open_memory(self, source->header->length);
    if (error) return error;
    error = put_all(self->file.fd, source);
    if (error) return failed(self, error);
    os_call(SYS_fcntl, self->file.fd, ADD_SEALS, SEAL_ALL);
    return finish(self, MEMSTOW_STATE_MEMORY, source->header->length);
}

/* --- in a file --- */

struct writer {
    struct stow_file *file;
    char *buffer;
    uint64_t filled, flushed;
    struct sum *sum;    /* NULL: no checksum is wanted */
    uint64_t alignment; /* the alignment for direct writes from the program's memory; 0: there are none */
};

/* Pages that go through the page cache are dropped from it. */
static uint32_t write_pages(struct writer *self, const void *pages, uint64_t length) {
    if (self->sum) sum_add(self->sum, pages, length);
    uint32_t refusal = stow_file_append(self->file, pages, length);
    if (refusal || self->file->direct) return refusal;
    refusal = stow_file_flush(self->file, self->flushed);
    self->flushed = self->file->used;
    return refusal;
}

static int write_buffer(struct writer *self) {
    uint64_t pages = os_round_up(self->filled, OS_PAGE);
    memset(self->buffer + self->filled, 0, pages - self->filled);
    self->filled = 0;
    return pages ? error_of(write_pages(self, self->buffer, pages)) : 0;
}

static int write_by_buffer(struct writer *self, uint64_t from, uint64_t length) {
    int error = 0;
    for (uint64_t done = 0; done < length && !error;) {
        uint64_t left = BUFFER - self->filled, part = length - done < left ? length - done : left;
        if (!os_peek(self->buffer + self->filled, (const void *)(from + done), part)) return -EFAULT;
        self->filled += part;
        done += part;
        if (self->filled == BUFFER) error = write_buffer(self);
    }
    return error;
}

/* The kernel reports unreadable memory and a disk error in the same way. So each page is tried. */
static int why_not_written(const struct writer *self, uint64_t from, uint64_t length, int error) {
    for (uint64_t done = 0; done < length && error == -EIO; done += OS_PAGE)
        if (!os_peek(self->buffer, (const void *)(from + done), 1)) error = -EFAULT;
    return error;
}

/* Writes directly from the program's memory if the disk can. With a checksum it cannot: the program may change the
 * memory between the sum and the write. */
static int write_part(struct writer *self, uint64_t from, uint64_t length) {
    uint64_t pages = length & ~(uint64_t)(OS_PAGE - 1);
    if (length < STATE_LARGE || self->sum || !self->alignment || from % self->alignment)
        return write_by_buffer(self, from, length);
    int error = write_buffer(self);
    if (!error) error = why_not_written(self, from, pages, error_of(write_pages(self, (const void *)from, pages)));
    return error ? error : write_by_buffer(self, from + pages, length - pages);
}

static int write_gap(struct writer *self, uint64_t until) {
    static const char zeros[OS_PAGE];
    return write_by_buffer(self, (uint64_t)zeros, until - (self->file->used + self->filled));
}

static uint64_t alignment_in(const struct stow_file *file) {
    uint32_t status[STATX_BYTES / sizeof(uint32_t)] = {0};
    if (!file->direct || os_call(SYS_statx, file->fd, "", AT_EMPTY_PATH, STATX_DIRECT, status) < 0) return 0;
    return status[0] & STATX_DIRECT ? status[DIRECT_MEMORY / sizeof *status] : 0;
}

static int write_all(struct writer *self, const struct state_source *source) {
    const struct state_header *header = source->header;
    int error = write_by_buffer(self, (uint64_t)header, table_end(header));
    for (uint32_t i = 0; i < header->parts && !error; i++) {
        error = write_gap(self, header->part[i].start);
        if (!error) error = write_part(self, source->parts[i].start, header->part[i].length);
    }
    if (!error) error = write_buffer(self);
    /* The length is flushed together with the bytes. */
    if (!error) error = (int)os_call(SYS_ftruncate, self->file->fd, header->length);
    return error ? error : error_of(stow_file_flush(self->file, self->flushed));
}

static int fill(struct state_bytes *self, const struct state_source *source, struct sum *sum) {
    struct writer writer = {
        .file = &self->file, .buffer = os_map(BUFFER), .sum = sum, .alignment = alignment_in(&self->file)};
    if (!writer.buffer) return failed(self, -ENOMEM);
    int error = write_all(&writer, source);
    os_unmap(writer.buffer, BUFFER);
    if (error) return failed(self, error);
    if (sum) self->checksum = sum_of(sum);
    return finish(self, MEMSTOW_STATE_FILE, source->header->length);
}

int state_bytes_in_file(struct state_bytes *self, const struct state_source *source, const char *directory) {
    *self = (struct state_bytes){0};
    uint32_t refusal = stow_file_open(&self->file, directory, source->header->length);
    return refusal ? error_of(refusal) : fill(self, source, NULL);
}

static int open_in(int folder, int flags) {
    return (int)os_call(SYS_openat, folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC | flags, 0600);
}

int state_bytes_in_folder(struct state_bytes *self, const struct state_source *source, int folder) {
    struct sum sum = {{0}};
    *self = (struct state_bytes){0};
    int fd = open_in(folder, O_DIRECT);
    bool direct = fd != -EINVAL;
    if (!direct) fd = open_in(folder, 0);
    uint32_t refusal = stow_file_take(&self->file, fd, direct, source->header->length);
    return refusal ? error_of(refusal) : fill(self, source, &sum);
}

/* --- from a file --- */

static int check_sum(struct state_bytes *self, uint64_t length, uint64_t checksum) {
    struct sum sum = {{0}};
    char *buffer = os_map(BUFFER);
    int error = buffer ? 0 : -ENOMEM;
    for (uint64_t done = 0; done < length && !error;) {
        uint64_t part = length - done < BUFFER ? length - done : BUFFER;
        long got = os_pread(self->file.fd, buffer, part, done);
        if (got != (long)part) error = got < 0 ? -EIO : -EUCLEAN;
        sum_add(&sum, buffer, part);
        os_call(SYS_fadvise64, self->file.fd, done, part, POSIX_FADV_DONTNEED);
        done += part;
    }
    if (buffer) os_unmap(buffer, BUFFER);
    if (!error && sum_of(&sum) != checksum) error = -EUCLEAN;
    self->checksum = checksum;
    return error;
}

int state_bytes_from_file(struct state_bytes *self, int fd, uint64_t length, uint64_t checksum) {
    struct stat status;
    *self = (struct state_bytes){.file.fd = fd};
    int error = os_stat_fd(fd, &status);
    if (error) {
        os_close(fd);
        return error;
    }
    self->file.device = status.st_dev, self->file.inode = status.st_ino;
    if (((uint64_t)status.st_size != length || !length || length % OS_PAGE)) error = -EUCLEAN;
    if (!error) error = check_sum(self, length, checksum);
    if (error) return failed(self, error);
    error = finish(self, MEMSTOW_STATE_FILE, length);
    if (error || is_sound((const struct state_header *)self->base, length)) return error;
    state_bytes_drop(self);
    return -EUCLEAN;
}

/* --- views, and moves --- */

/* Beyond the end of a file that somebody has made shorter is no memory, but a signal. */
bool state_bytes_are_whole(const struct state_bytes *self) {
    struct stat status;
    return os_stat_fd(self->file.fd, &status) == 0 && (uint64_t)status.st_size >= self->length;
}

void *state_bytes_view(const struct state_bytes *self) { return stow_file_map(&self->file, self->length); }

/* The kernel reads the base. So a disk that fails gives an error, not a signal. */
static int copy_to_file(struct state_bytes *copy, const struct state_bytes *from) {
    struct writer writer = {.file = &copy->file};
    uint32_t refusal = stow_file_open(&copy->file, NULL, from->length);
    if (refusal) return error_of(refusal);
    for (uint64_t done = 0; done < from->length && !refusal;) {
        uint64_t part = from->length - done < BUFFER ? from->length - done : BUFFER;
        refusal = write_pages(&writer, from->base + done, part);
        done += part;
    }
    if (!refusal) refusal = stow_file_flush(&copy->file, writer.flushed);
    return refusal ? failed(copy, error_of(refusal)) : 0;
}

int state_bytes_copy(struct state_bytes *copy, const struct state_bytes *from, uint32_t place) {
    *copy = (struct state_bytes){.file.fd = -1};
    int error = place == MEMSTOW_STATE_MEMORY ? open_memory(copy, from->length) : copy_to_file(copy, from);
    if (!error && place == MEMSTOW_STATE_MEMORY) {
        error = put(copy->file.fd, (uint64_t)from->base, from->length, 0);
        if (!error) os_call(SYS_fcntl, copy->file.fd, ADD_SEALS, SEAL_ALL);
        if (error) failed(copy, error);
    }
    os_call(SYS_madvise, from->base, from->length, MADV_DONTNEED); /* the file's pages stay, but nothing maps them */
    return error ? error : finish(copy, place, from->length);
}

bool state_bytes_replace(struct state_bytes *self, struct state_bytes *copy) {
    long base = os_call(SYS_mmap, self->base, self->length, PROT_READ, MAP_PRIVATE | MAP_FIXED, copy->file.fd, 0);
    os_unmap(copy->base, copy->length);
    copy->base = NULL;
    if (base < 0 && base > -OS_PAGE) {
        stow_file_close(&copy->file);
        return false;
    }
    stow_file_close(&self->file);
    self->file = copy->file;
    self->place = copy->place;
    return true;
}

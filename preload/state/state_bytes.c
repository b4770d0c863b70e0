/* state_bytes.c — see state_bytes.h. state_writer writes files on a disk. */
#include "preload/state/state_bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "preload/shared/os.h"
#include "preload/state/state_writer.h"
#include "preload/stow/stow.h"

/* From <linux/memfd.h> and <linux/fcntl.h>. */
enum { CLOSE_ON_EXEC = 1, ALLOW_SEALING = 2, NO_EXEC = 8, ADD_SEALS = 1033, SEAL_ALL = 15 };
enum { BUFFER = 2 << 20, AT_ONCE = 1 << 30 };

static const char MAGIC[8] = "MSTVALUE";

/* --- the header of a value --- */

static uint64_t alignment_of(uint64_t length) { return length < STATE_LARGE ? STATE_ALIGNMENT : OS_PAGE; }

bool state_header_lay_out(struct state_header *header) {
    uint64_t at = state_header_end(header);
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
    if (header->parts > MEMSTOW_STATE_PARTS || state_header_end(header) > length) return false;
    if (!memchr(header->type, 0, sizeof header->type)) return false;
    for (uint32_t i = 0; i < header->parts; i++)
        if (header->part[i].start > length || header->part[i].length > length - header->part[i].start) return false;
    return true;
}

/* --- finishing and dropping bytes --- */

static int state_bytes_failed(struct state_bytes *self, int error) {
    stow_file_close(&self->file);
    return error;
}

/* Brings only the first page into the page cache, because each reader of a value looks at that page. */
static void read_first_page(const struct state_bytes *self) {
    char page[OS_PAGE];
    os_call(SYS_fcntl, self->file.fd, F_SETFL, 0); /* through the page cache from now on */
    os_call(SYS_fadvise64, self->file.fd, 0, 0, POSIX_FADV_RANDOM);
    os_pread(self->file.fd, page, sizeof page, 0);
    os_call(SYS_fadvise64, self->file.fd, 0, 0, POSIX_FADV_NORMAL);
}

static int state_bytes_finish(struct state_bytes *self, uint32_t place, uint64_t length) {
    if (place != MEMSTOW_STATE_MEMORY) read_first_page(self);
    self->file.used = 0;
    self->place = place;
    self->length = length;
    long base = os_call(SYS_mmap, NULL, length, PROT_READ, MAP_PRIVATE, self->file.fd, 0);
    if (base < 0 && base > -OS_PAGE) return state_bytes_failed(self, (int)base);
    self->base = (char *)base;
    return 0;
}

void state_bytes_drop(struct state_bytes *self) {
    if (!self->base) return;
    os_unmap(self->base, self->length);
    stow_file_close(&self->file);
    self->base = NULL;
}

/* --- writing bytes into memory --- */

static int state_bytes_put(int fd, uint64_t from, uint64_t length, uint64_t at) {
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
    int error = state_bytes_put(fd, (uint64_t)header, state_header_end(header), 0);
    for (uint32_t i = 0; i < header->parts && !error; i++)
        error = state_bytes_put(fd, source->parts[i].start, header->part[i].length, header->part[i].start);
    return error;
}

/* Opens a file in memory. With vm.memfd_noexec=2 the kernel demands NO_EXEC. Kernels before 6.3 do not know this
 * flag. */
static int open_memfd(void) {
    const int flags = CLOSE_ON_EXEC | ALLOW_SEALING;
    int fd = os_open_memory("memstow-state", flags | NO_EXEC);
    return fd == -EINVAL ? os_open_memory("memstow-state", flags) : fd;
}

static int open_memory(struct state_bytes *self, uint64_t length) {
    struct stat status = {0};
    if (length > os_file_limit()) return -EFBIG; /* the limit holds for memfds, too: exceeding it kills the process */
    *self = (struct state_bytes){.file.fd = open_memfd()};
    if (self->file.fd < 0) return self->file.fd;
    int error = os_stat_fd(self->file.fd, &status);
    if (!error) error = (int)os_call(SYS_ftruncate, self->file.fd, length);
    self->file.device = status.st_dev, self->file.inode = status.st_ino;
    return error ? state_bytes_failed(self, error) : 0;
}

int state_bytes_in_memory(struct state_bytes *self, const struct state_source *source) {
    int error = open_memory(self, source->header->length);
    if (error) return error;
    error = put_all(self->file.fd, source);
    if (error) return state_bytes_failed(self, error);
    os_call(SYS_fcntl, self->file.fd, ADD_SEALS, SEAL_ALL);
    return state_bytes_finish(self, MEMSTOW_STATE_MEMORY, source->header->length);
}

/* --- writing bytes into a file --- */

static int state_bytes_fill(struct state_bytes *self, const struct state_source *source, struct state_sum *sum) {
    int error = state_writer_fill(&self->file, source, sum);
    if (error) return state_bytes_failed(self, error);
    if (sum) self->checksum = state_sum_value(sum);
    return state_bytes_finish(self, MEMSTOW_STATE_FILE, source->header->length);
}

int state_bytes_in_file(struct state_bytes *self, const struct state_source *source, const char *directory) {
    *self = (struct state_bytes){0};
    uint32_t refusal = stow_file_open(&self->file, directory, source->header->length);
    return refusal ? state_writer_error(refusal) : state_bytes_fill(self, source, NULL);
}

static int open_in(int folder, int flags) { return os_open_in(folder, ".", O_TMPFILE | O_RDWR | flags, 0600); }

int state_bytes_in_folder(struct state_bytes *self, const struct state_source *source, int folder) {
    struct state_sum sum = {{0}};
    *self = (struct state_bytes){0};
    int fd = open_in(folder, O_DIRECT);
    bool direct = fd != -EINVAL;
    if (!direct) fd = open_in(folder, 0);
    uint32_t refusal = stow_file_take(&self->file, fd, direct, source->header->length);
    return refusal ? state_writer_error(refusal) : state_bytes_fill(self, source, &sum);
}

/* --- taking bytes from a file of an earlier process --- */

static int check_sum(struct state_bytes *self, uint64_t length, uint64_t checksum) {
    struct state_sum sum = {{0}};
    char *buffer = os_map(BUFFER);
    int error = buffer ? 0 : -ENOMEM;
    for (uint64_t done = 0; done < length && !error;) {
        uint64_t part = length - done < BUFFER ? length - done : BUFFER;
        long got = os_pread(self->file.fd, buffer, part, done);
        if (got != (long)part) error = got < 0 ? -EIO : -EUCLEAN;
        state_sum_add(&sum, buffer, part);
        os_call(SYS_fadvise64, self->file.fd, done, part, POSIX_FADV_DONTNEED);
        done += part;
    }
    if (buffer) os_unmap(buffer, BUFFER);
    if (!error && state_sum_value(&sum) != checksum) error = -EUCLEAN;
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
    if ((uint64_t)status.st_size != length || !length || length % OS_PAGE) error = -EUCLEAN;
    if (!error) error = check_sum(self, length, checksum);
    if (error) return state_bytes_failed(self, error);
    error = state_bytes_finish(self, MEMSTOW_STATE_FILE, length);
    if (error || is_sound((const struct state_header *)self->base, length)) return error;
    state_bytes_drop(self);
    return -EUCLEAN;
}

/* --- viewing and moving bytes --- */

/* False: somebody has closed the descriptor, or has made the file shorter. If the file is shorter, a read of a view
 * beyond the file's end would raise a signal. */
bool state_bytes_are_whole(const struct state_bytes *self) {
    struct stat status;
    return os_stat_fd(self->file.fd, &status) == 0 && (uint64_t)status.st_size >= self->length;
}

void *state_bytes_view(const struct state_bytes *self) { return stow_file_map(&self->file, self->length); }

/* Copies bytes into a file. The kernel reads them from the base, so a disk that fails gives an error and no signal. */
static int copy_to_file(struct state_bytes *copy, const struct state_bytes *from) {
    uint32_t refusal = stow_file_open(&copy->file, NULL, from->length);
    if (refusal) return state_writer_error(refusal);
    int error = state_writer_copy(&copy->file, from->base, from->length);
    return error ? state_bytes_failed(copy, error) : 0;
}

/* Unmaps the pages at the base; they stay in the file. It works piece by piece, because 1 GiB takes tens of
 * milliseconds, and older kernels let no other thread map memory meanwhile. */
static void unmap_pages(const struct state_bytes *self) {
    for (uint64_t done = 0; done < self->length; done += BUFFER) {
        uint64_t part = self->length - done < BUFFER ? self->length - done : BUFFER;
        os_call(SYS_madvise, self->base + done, part, MADV_DONTNEED);
    }
}

int state_bytes_copy(struct state_bytes *copy, const struct state_bytes *from, uint32_t place) {
    *copy = (struct state_bytes){.file.fd = -1};
    int error = place == MEMSTOW_STATE_MEMORY ? open_memory(copy, from->length) : copy_to_file(copy, from);
    if (!error && place == MEMSTOW_STATE_MEMORY) {
        error = state_bytes_put(copy->file.fd, (uint64_t)from->base, from->length, 0);
        if (!error) os_call(SYS_fcntl, copy->file.fd, ADD_SEALS, SEAL_ALL);
        if (error) state_bytes_failed(copy, error);
    }
    unmap_pages(from);
    return error ? error : state_bytes_finish(copy, place, from->length);
}

bool state_bytes_exchange(struct state_bytes *self, struct state_bytes *copy) {
    long base = os_call(SYS_mmap, self->base, self->length, PROT_READ, MAP_PRIVATE | MAP_FIXED, copy->file.fd, 0);
    if (base < 0 && base > -OS_PAGE) return false;
    struct stow_file file = self->file;
    self->file = copy->file;
    self->place = copy->place;
    copy->file = file;
    return true;
}

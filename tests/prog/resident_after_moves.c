// The report says where memory is after it was moved out:
// - Dropped pages of files are not resident until they are used again.
// - Stowed memory that is read or written again counts as `stowed_resident_bytes`.
// - Blocks that were restored count as `live_bytes` again. Stowed blocks and free memory of the heap do not.
#include "abi.h"
#include "expect.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>

enum { PAGE = 4096, MIB = 1 << 20, FILES = 6 * MIB, BLOCK = 10 * MIB, MAPPED = 8 * MIB, SMALL = 64 };

static uint32_t model, other;

/* Writes a file, maps it, and assigns the mapping to the model. */
static char *map_file(const char *name) {
    static char part[MIB];
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
    MUST(fd >= 0);
    for (int i = 0; i < FILES / MIB; i++) MUST(write(fd, part, sizeof part) == sizeof part);
    MUST(fsync(fd) == 0);
    char *p = mmap(NULL, FILES, PROT_READ, MAP_PRIVATE, fd, 0);
    MUST(p != MAP_FAILED && CALL(0, memstow_assign, model, p, FILES) == 0);
    close(fd);
    return p;
}

static char *allocate(uint32_t owner, size_t size) {
    MUST(CALL(0, memstow_scope_enter, owner) == 0);
    char *p = malloc(size);
    MUST(p);
    memset(p, 1, size);
    MUST(CALL(0, memstow_scope_leave, owner) == 0);
    return p;
}

static void use(const char *p, size_t size) {
    unsigned sum = 0;
    for (size_t i = 0; i < size; i += PAGE) sum += (unsigned char)p[i];
    __asm__ volatile("" : : "r"(sum));
}

/* Leaves free memory in the heap, which must not be taken for live blocks. */
static void fill_heap(void) {
    static char *blocks[4 * MIB / SMALL];
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) memset(blocks[i] = malloc(SMALL), 1, SMALL);
    for (size_t i = 0; i + 1 < sizeof blocks / sizeof *blocks; i++) free(blocks[i]);
}

int main(void) {
    abi_find();
    model = (uint32_t)CALL(1, memstow_owner_open, MEMSTOW_MODEL, "model", "", 1, 0);
    other = (uint32_t)CALL(2, memstow_owner_open, MEMSTOW_MODEL, "other", "", 2, 0);
    char *dropped = map_file("dropped"), *used = map_file("used");
    char *away = allocate(model, BLOCK), *read = allocate(model, BLOCK), *written = allocate(model, BLOCK);
    char *mapping = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(mapping != MAP_FAILED && CALL(0, memstow_assign, model, mapping, MAPPED) == 0);
    memset(mapping, 1, MAPPED);
    char *back = allocate(other, BLOCK);
    fill_heap();
    use(dropped, FILES), use(used, FILES);
    MUST(CALL(1, memstow_stow, model) > 0 && CALL(1, memstow_stow, other) > 0 && CALL(1, memstow_restore, other) > 0);
    use(used, FILES), use(read, BLOCK), use(back, BLOCK), use(mapping, MAPPED);
    memset(written + MIB, 2, BLOCK / 2);
    memset(mapping, 2, MAPPED / 2);
    MUST(away[0] == 1); /* the block's first page, which has the header, too, was not moved out */
    const unsigned long back_again = BLOCK + BLOCK / 2 + MAPPED, header_pages = 3 * 2 * PAGE;
    EXPECT("residency.files[file=*/dropped].resident_bytes", 0);
    EXPECT("residency.files[file=*/used].resident_bytes", FILES);
    EXPECT("residency.files[file=*(deleted)].resident_bytes", 0);
    say("expect residency.stowed_resident_bytes >= %lu", back_again - header_pages);
    say("expect residency.stowed_resident_bytes <= %lu", back_again + MIB); /* the kernel reads around used pages */
    say("expect residency.live_bytes >= %d", BLOCK);
    say("expect residency.live_bytes < %d", BLOCK + MIB);
    say("expect residency.retained_bytes >= %d", 2 * MIB);
    say("expect residency.program_data_bytes < %d", 2 * MIB);
    say("expect residency.mapped_anonymous_bytes < %d", MIB);
    say("expect owners[name=model].stowed_bytes >= %lu", 3 * BLOCK + MAPPED - header_pages);
    EXPECT("owners[name=other].stowed_bytes", 0);
    say("ok");
    return 0;
}

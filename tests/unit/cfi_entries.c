// The CFI reader finds each function through the index, and finds nothing outside of functions, for all encodings. If a
// table is cut, foreign or damaged, the reader says why it has no rule.
#include <criterion/criterion.h>
#include <stdlib.h>

#include "cfi_image.h"

static struct cfi_image image;

static const uint8_t wide[] = {DEF_CFA_OFFSET, 48};

static struct cfi_object object_of(const struct cfi_image *of) {
    return (struct cfi_object){image_at(of, of->header), image_at(of, 0), image_at(of, of->size)};
}

/* One function of this shape is found, from its first byte to its last. */
static void expect_found(const struct shape *shape, const char *what) {
    image_of(&image, shape, wide, sizeof wide);
    cr_expect_eq(image_rule(&image, 0).cfa, 48, "%s", what);
    cr_expect_eq(image_rule(&image, FUNCTION - 1).cfa, 48, "%s", what);
    cr_expect_eq(image_rule(&image, FUNCTION).why, CFI_NO_ENTRY, "%s", what);
    cr_expect_eq(image_rule(&image, (uintptr_t)-1).why, CFI_NO_ENTRY, "%s", what);
}

static void expect_refused(const struct shape *shape, enum cfi_why why, const char *what) {
    image_of(&image, shape, wide, sizeof wide);
    cr_expect_eq(image_rule(&image, 0).kind, CFI_UNKNOWN, "%s", what);
    cr_expect_eq(image_rule(&image, 0).why, why, "%s: %d", what, image_rule(&image, 0).why);
}

Test(cfi_entries, versions) {
    for (unsigned version = 0; version < 256; version++) {
        struct shape shape = usual_shape;
        shape.version = (uint8_t)version;
        if (version == 1 || version == 3 || version == 4)
            expect_found(&shape, "version");
        else
            expect_refused(&shape, CFI_FORMAT, "version");
    }
    struct shape shape = usual_shape;
    shape.version = 4, shape.address_size = 4;
    expect_refused(&shape, CFI_FORMAT, "addresses of 4 bytes");
}

Test(cfi_entries, augmentations) {
    static const char *const known[] = {"zR", "zPLR", "zRB", "zPR", "zLRB", "zPLRBS"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct shape shape = usual_shape;
        shape.augmentation = known[i];
        if (strchr(known[i], 'S'))
            expect_refused(&shape, CFI_ODD_SIGNAL, known[i]);
        else
            expect_found(&shape, known[i]);
    }
    static const char *const unknown[] = {"eh", "R", "zRG", "armcc+", "zRRRRRRRRRRRRRRRRRRRR"};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        struct shape shape = usual_shape;
        shape.augmentation = unknown[i];
        expect_refused(&shape, CFI_FORMAT, unknown[i]);
    }
    struct shape shape = usual_shape;
    shape.augmentation = "", shape.encoding = ABSPTR;
    expect_found(&shape, "none: addresses as they are");
    shape.augmentation = "z";
    expect_found(&shape, "no R: addresses as they are");
}

Test(cfi_entries, encodings) {
    static const uint8_t known[] = {ABSPTR,           UDATA8,           SDATA8,         PCREL | ABSPTR,
                                    PCREL | SDATA8,   PCREL | SDATA4,   PCREL | UDATA4, DATAREL | SDATA4,
                                    DATAREL | UDATA4, DATAREL | UDATA8, PCREL | ULEB,   PCREL | SLEB,
                                    DATAREL | ULEB};
    for (size_t i = 0; i < sizeof known; i++) {
        struct shape shape = usual_shape;
        shape.encoding = known[i];
        expect_found(&shape, "encoding");
    }
    static const uint8_t unknown[] = {0x1d, 0x15, 0x2b, 0x4b, 0x50, 0x9b, 0xff};
    for (size_t i = 0; i < sizeof unknown; i++) {
        struct shape shape = usual_shape;
        shape.encoding = unknown[i];
        expect_refused(&shape, CFI_FORMAT, "encoding");
    }
}

Test(cfi_entries, long_lengths) {
    struct shape shape = usual_shape;
    shape.long_length = true;
    expect_found(&shape, "64-bit");
}

Test(cfi_entries, another_return_register) {
    struct shape shape = usual_shape;
    shape.return_register = 15;
    expect_refused(&shape, CFI_RETURN_ADDRESS, "r15");
}

/* Function `i` has i + 1 bytes. Between it and the next function lie i bytes. */
static uintptr_t start_of(unsigned i) { return (uintptr_t)i * i; }

static void build_many(struct cfi_image *self) {
    struct shape other = usual_shape;
    other.augmentation = "zPLR", other.version = 3;
    self->size = self->count = 0;
    size_t shared = image_shared(self, &usual_shape), second = image_shared(self, &other);
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        uint8_t program[] = {DEF_CFA_OFFSET, (uint8_t)(8 + 8 * i % 64 + 0), OFFSET | BP, (uint8_t)(i + 1)};
        const struct shape *shape = i % 3 ? &usual_shape : &other;
        image_function(self, i % 3 ? shared : second, shape, start_of(i), i + 1, program, sizeof program);
    }
    image_finish(self);
}

static void expect_many(void) {
    uintptr_t offset = 0;
    for (unsigned i = 0; i < FUNCTIONS; i++)
        for (; offset < start_of(i + 1); offset++) {
            struct cfi_rule rule = image_rule(&image, offset);
            if (offset - start_of(i) <= i)
                cr_expect_eq(rule.bp, -8 * (int)(i + 1), "at %zu", (size_t)offset);
            else
                cr_expect_eq(rule.why, CFI_NO_ENTRY, "at %zu", (size_t)offset);
        }
}

Test(cfi_entries, many_functions) {
    build_many(&image);
    expect_many();
}

/* Linkers leave the index out when they cannot read some input: then all entries are walked. */
Test(cfi_entries, without_an_index) {
    build_many(&image);
    image.bytes[image.header + 2] = image.bytes[image.header + 3] = 0xff;
    expect_many();
    build_many(&image);
    image.bytes[image.header + 3] = DATAREL | SDATA8; /* an index of another kind */
    expect_many();
    build_many(&image);
    memset(image.bytes + image.header + 4, 0x7f, 4); /* a wrong address of .eh_frame, which the index does not need */
    expect_many();
    image.bytes[image.header + 3] = 0xff;
    cr_expect_eq(image_rule(&image, 0).why, CFI_MALFORMED);
}

Test(cfi_entries, an_index_of_no_functions) {
    image.size = image.count = 0;
    image_finish(&image);
    cr_expect_eq(image_rule(&image, 0).why, CFI_NO_ENTRY);
    image.bytes[image.header + 3] = 0xff;
    cr_expect_eq(image_rule(&image, 0).why, CFI_NO_ENTRY);
}

Test(cfi_entries, headers_that_are_none) {
    build_many(&image);
    struct cfi_object object = object_of(&image);
    object.header = 0;
    cr_expect_eq(cfi_find(&object, image_at(&image, CODE)).why, CFI_NO_TABLE);
    object.header = object.end - 3;
    cr_expect_eq(cfi_find(&object, image_at(&image, CODE)).why, CFI_NO_TABLE);
    object.header = object.end + 1;
    cr_expect_eq(cfi_find(&object, image_at(&image, CODE)).why, CFI_NO_TABLE);
    image.bytes[image.header] = 2;
    cr_expect_eq(image_rule(&image, 0).why, CFI_NO_TABLE);
    image.bytes[image.header] = 1;
    image.bytes[image.header + 1] = 0x4b;
    cr_expect_eq(image_rule(&image, 0).why, CFI_NO_TABLE);
}

Test(cfi_entries, counts_and_distances_that_lie) {
    build_many(&image);
    memset(image.bytes + image.header + 8, 0xff, 4);
    cr_expect_eq(image_rule(&image, 0).why, CFI_MALFORMED);
    for (unsigned bits = 0; bits < 32; bits++) { /* the address of the first function's FDE */
        build_many(&image);
        int32_t distance = (int32_t)(1u << bits);
        memcpy(image.bytes + image.header + 16, &distance, 4);
        cr_expect_eq(image_rule(&image, 0).kind, CFI_UNKNOWN);
    }
    for (unsigned bits = 0; bits < 32; bits++) { /* the address of its CIE */
        build_many(&image);
        uint32_t distance = 1u << bits;
        memcpy(image.bytes + image.index[0].entry + 4, &distance, 4);
        cr_expect_eq(image_rule(&image, 0).kind, CFI_UNKNOWN);
    }
    build_many(&image);
    memset(image.bytes + image.index[0].entry, 0xff, 12);
    cr_expect_eq(image_rule(&image, 0).why, CFI_MALFORMED);
}

/* Without an index the entries are walked one after the other. Here no entry ends the table, so the walk gives up
 * after some entries. */
Test(cfi_entries, too_many_entries_to_walk) {
    enum { SIZE = 4 << 20 };
    uint8_t *bytes = calloc(1, SIZE);
    cr_assert(bytes);
    for (size_t at = 0; at < SIZE; at += 8) bytes[at] = 4; /* a CIE with only its id */
    memcpy(bytes + SIZE - 8, "\1\33\377\377", 4);
    int32_t distance = 4 - SIZE;
    memcpy(bytes + SIZE - 4, &distance, 4);
    struct cfi_object object = {(uintptr_t)bytes + SIZE - 8, (uintptr_t)bytes, (uintptr_t)bytes + SIZE};
    cr_expect_eq(cfi_find(&object, (uintptr_t)bytes + CODE).why, CFI_TOO_LONG);
    free(bytes);
}

Test(cfi_entries, too_many_instructions) {
    enum { SIZE = 4 << 20 };
    static struct cfi_image small;
    image_of(&small, &usual_shape, wide, sizeof wide);
    uint8_t *bytes = calloc(1, small.size + SIZE);
    cr_assert(bytes);
    memcpy(bytes, small.bytes, small.header);
    memcpy(bytes + small.header + SIZE, small.bytes + small.header, small.size - small.header);
    uint32_t length = SIZE;
    memcpy(bytes + small.index[0].entry, &length, 4);
    int32_t entry = (int32_t)(small.index[0].entry - small.header) - SIZE;
    memcpy(bytes + small.header + SIZE + 16, &entry, 4);
    uintptr_t header = (uintptr_t)bytes + small.header + SIZE;
    int32_t start;
    memcpy(&start, bytes + small.index[0].entry + 8, 4);
    uintptr_t code = (uintptr_t)bytes + small.index[0].entry + 8 + (uintptr_t)start;
    int32_t distance = (int32_t)(code - header);
    memcpy((uint8_t *)header + 12, &distance, 4);
    struct cfi_object object = {header, (uintptr_t)bytes, (uintptr_t)bytes + small.size + SIZE};
    cr_expect_eq(cfi_find(&object, code).why, CFI_TOO_LONG);
    free(bytes);
}

/* The table is cut at every place. Each cut table has a block of its own, so a sanitizer notices a read beyond the
 * end. */
Test(cfi_entries, truncated_anywhere) {
    build_many(&image);
    for (size_t size = 0; size < image.size; size++) {
        uint8_t *copy = malloc(size ? size : 1);
        cr_assert(copy);
        memcpy(copy, image.bytes, size);
        struct cfi_object object = {(uintptr_t)copy + image.header, (uintptr_t)copy, (uintptr_t)copy + size};
        cr_expect_eq(cfi_find(&object, (uintptr_t)copy + CODE).kind, CFI_UNKNOWN, "cut at %zu", size);
        free(copy);
    }
    for (size_t first = image.index[0].entry; first <= image.header; first++) { /* at least the CIE is missing */
        struct cfi_object object = {image_at(&image, image.header), image_at(&image, first),
                                    image_at(&image, image.size)};
        cr_expect_eq(cfi_find(&object, image_at(&image, CODE)).kind, CFI_UNKNOWN, "from %zu", first);
    }
}

/* Each byte in turn gets every value. There is always an answer. */
Test(cfi_entries, any_byte_wrong) {
    build_many(&image);
    size_t used = image.index[2].entry;
    for (size_t at = 0; at < image.size; at = at + 1 == used ? image.header : at + 1)
        for (unsigned value = 0; value < 256; value++) {
            uint8_t kept = image.bytes[at];
            image.bytes[at] = (uint8_t)value;
            for (uintptr_t offset = 0; offset < 2; offset++) {
                struct cfi_rule rule = image_rule(&image, offset);
                cr_assert(rule.kind <= CFI_END && rule.why < CFI_WHYS && (rule.kind == CFI_UNKNOWN) == (rule.why != 0));
            }
            image.bytes[at] = kept;
        }
}

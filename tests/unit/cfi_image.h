/* cfi_image.h — unwind tables in memory, for tests of the CFI reader. In: shapes of CIEs and instructions of functions.
 * Out: .eh_frame and .eh_frame_hdr as a linker makes them, correct except for what a test makes wrong on purpose. The
 * tables describe code that would begin CODE bytes behind the beginning of the tables. Nobody reads that code. */
#ifndef CFI_IMAGE_H
#define CFI_IMAGE_H

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "preload/stacks/cfi.h"

enum { CODE = 0x100000, FUNCTION = 0x100, FUNCTIONS = 64 };

/* Opcodes and encodings, by DWARF's names. */
/* clang-format off */
enum {
    ADVANCE = 0x40, OFFSET = 0x80, RESTORE = 0xc0,
    NOP = 0, SET_LOC, ADVANCE1, ADVANCE2, ADVANCE4, OFFSET_EXTENDED, RESTORE_EXTENDED, UNDEFINED, SAME_VALUE, REGISTER,
    REMEMBER, RESTORE_STATE, DEF_CFA, DEF_CFA_REGISTER, DEF_CFA_OFFSET, DEF_CFA_EXPRESSION, EXPRESSION,
    OFFSET_EXTENDED_SF, DEF_CFA_SF, DEF_CFA_OFFSET_SF, VAL_OFFSET, VAL_OFFSET_SF, VAL_EXPRESSION,
    ADVANCE8 = 0x1d, ARGS_SIZE = 0x2e, NEGATIVE_OFFSET = 0x2f,
    BP = 6, SP = 7, RA = 16, BREG = 0x70, DEREF = 0x06, PLUS_UCONST = 0x23, LIT = 0x30, AND = 0x1a, PLUS = 0x22,
    SHL = 0x24, GE = 0x2a,
    ABSPTR = 0, ULEB, UDATA2, UDATA4, UDATA8, SLEB = 9, SDATA2, SDATA4, SDATA8, PCREL = 0x10, DATAREL = 0x30
};
/* clang-format on */

struct shape {
    const char *augmentation;
    const uint8_t *program;
    uint32_t program_size;
    uint8_t version, encoding, code_factor, data_factor, return_register, address_size;
    bool long_length; /* 64-bit */
};

struct cfi_image {
    uint8_t bytes[1 << 15];
    size_t size, header;
    struct {
        size_t entry;
        uintptr_t start;
    } index[FUNCTIONS];
    unsigned count;
};

static const uint8_t usual_program[] = {DEF_CFA, SP, 8, OFFSET | RA, 1};
static const struct shape usual_shape = {"zR", usual_program, sizeof usual_program, 1, PCREL | SDATA4, 1, 0x78, RA, 8,
                                         0};

static inline uintptr_t image_at(const struct cfi_image *self, size_t offset) {
    return (uintptr_t)self->bytes + offset;
}

static inline void image_put(struct cfi_image *self, uint64_t value, unsigned bytes) {
    assert(self->size + bytes <= sizeof self->bytes);
    memcpy(self->bytes + self->size, &value, bytes);
    self->size += bytes;
}

static inline void image_put_all(struct cfi_image *self, const void *from, size_t bytes) {
    assert(self->size + bytes <= sizeof self->bytes);
    memcpy(self->bytes + self->size, from, bytes);
    self->size += bytes;
}

static inline void image_put_uleb(struct cfi_image *self, uint64_t value) {
    do image_put(self, (value & 0x7f) | (value > 0x7f ? 0x80 : 0), 1);
    while (value >>= 7);
}

static inline void image_put_format(struct cfi_image *self, uint8_t encoding, uint64_t value) {
    switch (encoding & 0x0f) {
    case ULEB:
        image_put_uleb(self, value);
        break;
    case SLEB:
        image_put_uleb(self, value);
        break; /* wrong if the last byte has bit 6: in SLEB this bit is the sign */
    case UDATA2:
    case SDATA2:
        image_put(self, value, 2);
        break;
    case UDATA4:
    case SDATA4:
        image_put(self, value, 4);
        break;
    default:
        image_put(self, value, 8);
    }
}

static inline void image_put_address(struct cfi_image *self, uint8_t encoding, uintptr_t address) {
    uint8_t base = encoding & 0x70;
    image_put_format(self, encoding,
                     address - (base == PCREL     ? image_at(self, self->size)
                                : base == DATAREL ? image_at(self, self->header)
                                                  : 0));
}

/* Begins an entry, whose length is filled in when it ends. Returns where its body begins. */
static inline size_t image_begin_entry(struct cfi_image *self, bool long_length) {
    image_put(self, long_length ? 0xffffffff : 0, 4);
    if (long_length) image_put(self, 0, 8);
    return self->size;
}

static inline void image_end_entry(struct cfi_image *self, size_t body, bool long_length) {
    while (self->size % 4) image_put(self, NOP, 1);
    uint64_t length = self->size - body;
    memcpy(self->bytes + body - (long_length ? 8 : 4), &length, long_length ? 8 : 4);
}

/* Appends a CIE, and returns its address. A personality (P) in the augmentation has an encoding and 4 bytes, an LSDA
 * (L) only an encoding. */
static inline size_t image_shared(struct cfi_image *self, const struct shape *shape) {
    size_t at = self->size, body = image_begin_entry(self, shape->long_length);
    image_put(self, 0, 4);
    image_put(self, shape->version, 1);
    image_put_all(self, shape->augmentation, strlen(shape->augmentation) + 1);
    if (shape->version == 4) {
        image_put(self, shape->address_size, 1);
        image_put(self, 0, 1);
    }
    image_put_uleb(self, shape->code_factor);
    image_put(self, shape->data_factor, 1);
    image_put(self, shape->return_register, 1);
    if (shape->augmentation[0] == 'z') {
        size_t length = self->size;
        image_put(self, 0, 1);
        for (const char *letter = shape->augmentation + 1; *letter; letter++)
            if (*letter == 'R') {
                image_put(self, shape->encoding, 1);
            } else if (*letter == 'P') {
                image_put(self, PCREL | SDATA4, 1);
                image_put(self, 0x12345678, 4);
            } else if (*letter == 'L') {
                image_put(self, PCREL | SDATA4, 1);
            }
        self->bytes[length] = (uint8_t)(self->size - length - 1);
    }
    image_put_all(self, shape->program, shape->program_size);
    image_end_entry(self, body, shape->long_length);
    return at;
}

/* Appends an FDE that belongs to the CIE at `shared`, for `length` bytes of code at CODE + start. */
static inline void image_function(struct cfi_image *self, size_t shared, const struct shape *shape, uintptr_t start,
                                  uint64_t length, const uint8_t *program, size_t program_size) {
    assert(self->count < FUNCTIONS);
    self->index[self->count].entry = self->size;
    self->index[self->count++].start = image_at(self, CODE + start);
    size_t body = image_begin_entry(self, shape->long_length);
    image_put(self, self->size - shared, 4);
    image_put_address(self, shape->encoding, image_at(self, CODE + start));
    image_put_format(self, shape->encoding, length);
    if (shape->augmentation[0] == 'z') {
        bool lsda = strchr(shape->augmentation, 'L');
        image_put(self, lsda ? 4 : 0, 1);
        if (lsda) image_put(self, 0x77777777, 4);
    }
    image_put_all(self, program, program_size);
    image_end_entry(self, body, shape->long_length);
}

/* The terminator, and the header with its index. */
static inline void image_finish(struct cfi_image *self) {
    image_put(self, 0, 4);
    self->header = self->size;
    image_put(self, 0x3b031b01, 4);
    image_put_address(self, PCREL | SDATA4, image_at(self, 0));
    image_put(self, self->count, 4);
    for (unsigned i = 0; i < self->count; i++) {
        image_put_address(self, DATAREL | SDATA4, self->index[i].start);
        image_put_address(self, DATAREL | SDATA4, image_at(self, self->index[i].entry));
    }
}

/* Makes an image of one function of FUNCTION bytes. It is made twice, because DATAREL needs the address of the
 * header. */
static inline void image_of(struct cfi_image *self, const struct shape *shape, const uint8_t *program, size_t size) {
    for (int pass = 0; pass < 2; pass++) {
        self->size = self->count = 0;
        size_t shared = image_shared(self, shape);
        image_function(self, shared, shape, 0, FUNCTION, program, size);
        image_finish(self);
    }
}

static inline struct cfi_rule image_rule(const struct cfi_image *self, uintptr_t offset) {
    struct cfi_object object = {image_at(self, self->header), image_at(self, 0), image_at(self, self->size)};
    return cfi_find(&object, image_at(self, CODE + offset));
}

#endif

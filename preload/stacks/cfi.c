/* cfi.c — see cfi.h. A look-up goes from the index to the function's entry (FDE), to the entry that several FDEs share
 * (CIE), to the row of the table for the address, and to the rule. Addresses are integers until they are read. Every
 * read goes through a cursor, which knows its end. So a damaged table yields a reason, never a fault. */
#include "preload/stacks/cfi.h"

#include <elf.h>
#include <link.h>
#include <stddef.h>

#include "preload/shared/os.h"

enum {
    REGISTER_BP = 6,
    REGISTER_SP = 7,
    REGISTER_RETURN = 16,
    WALK_LIMIT = 1 << 16,    /* entries that are read in an object without an index */
    PROGRAM_LIMIT = 1 << 20, /* bytes of instructions that are read for one function */
    LETTERS = 8,             /* letters in the augmentation of a CIE */
    REMEMBERED = 8,          /* most rows that remember_state may stack; compilers need one */
    OPERANDS = 8,            /* most operands that an expression may stack; linkers and compilers need three */
    OFFSET_LIMIT = 1 << 28
};

/* The names of DWARF 5, the Linux Standard Base and GNU. */
/* clang-format off */
enum {
    DW_CFA_nop, DW_CFA_set_loc, DW_CFA_advance_loc1, DW_CFA_advance_loc2, DW_CFA_advance_loc4, DW_CFA_offset_extended,
    DW_CFA_restore_extended, DW_CFA_undefined, DW_CFA_same_value, DW_CFA_register, DW_CFA_remember_state,
    DW_CFA_restore_state, DW_CFA_def_cfa, DW_CFA_def_cfa_register, DW_CFA_def_cfa_offset, DW_CFA_def_cfa_expression,
    DW_CFA_expression, DW_CFA_offset_extended_sf, DW_CFA_def_cfa_sf, DW_CFA_def_cfa_offset_sf, DW_CFA_val_offset,
    DW_CFA_val_offset_sf, DW_CFA_val_expression, DW_CFA_MIPS_advance_loc8 = 0x1d, DW_CFA_GNU_args_size = 0x2e,
    DW_CFA_GNU_negative_offset_extended, DW_CFA_advance_loc = 0x40, DW_CFA_offset = 0x80, DW_CFA_restore = 0xc0
};
enum {
    DW_OP_deref = 0x06, DW_OP_and = 0x1a, DW_OP_plus = 0x22, DW_OP_plus_uconst, DW_OP_shl, DW_OP_ge = 0x2a,
    DW_OP_lit0 = 0x30, DW_OP_lit31 = 0x4f, DW_OP_breg0 = 0x70
};
enum {
    DW_EH_PE_absptr, DW_EH_PE_uleb128, DW_EH_PE_udata2, DW_EH_PE_udata4, DW_EH_PE_udata8, DW_EH_PE_sleb128 = 0x09,
    DW_EH_PE_sdata2, DW_EH_PE_sdata4, DW_EH_PE_sdata8, DW_EH_PE_pcrel = 0x10, DW_EH_PE_datarel = 0x30,
    DW_EH_PE_omit = 0xff
};
/* clang-format on */

/* --- reading a range of memory --- */

struct cursor {
    uintptr_t at, end; /* at <= end */
    uint8_t why;       /* the first error; after an error the cursor has nothing left to read */
};

static void cfi_fail(struct cursor *c, enum cfi_why why) {
    if (c->why == CFI_KNOWN) c->why = (uint8_t)why;
    c->at = c->end;
}

__attribute__((always_inline)) static inline uint64_t take(struct cursor *c, unsigned bytes) {
    uint64_t value = 0;
    if (unlikely(c->end - c->at < bytes)) {
        cfi_fail(c, CFI_MALFORMED);
        return 0;
    }
    __builtin_memcpy(&value, (const void *)c->at, bytes);
    c->at += bytes;
    return value;
}

static inline int64_t take_signed(struct cursor *c, unsigned bytes) {
    unsigned unused = 64 - 8 * bytes;
    return (int64_t)(take(c, bytes) << unused) >> unused;
}

static void cfi_skip(struct cursor *c, uint64_t bytes) {
    if (c->end - c->at < bytes)
        cfi_fail(c, CFI_MALFORMED);
    else
        c->at += bytes;
}

/* Reads a LEB128 of at most ten bytes; bits above the 64th are lost. */
static inline uint64_t take_leb(struct cursor *c, bool is_signed) {
    uint64_t value = 0, byte;
    unsigned shift = 0;
    do {
        if (shift == 70) {
            cfi_fail(c, CFI_MALFORMED);
            return 0;
        }
        byte = take(c, 1);
        value |= (byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80);
    if (is_signed && byte & 0x40 && shift < 64) value |= ~(uint64_t)0 << shift;
    return value;
}

static uint64_t take_uleb(struct cursor *c) { return take_leb(c, false); }
static int64_t take_sleb(struct cursor *c) { return (int64_t)take_leb(c, true); }

/* Takes the next `length` bytes as a cursor of their own. */
static struct cursor take_block(struct cursor *c, uint64_t length) {
    struct cursor block = {.at = c->at, .why = c->why};
    cfi_skip(c, length);
    block.end = c->why ? block.at : c->at;
    return block;
}

static uint64_t take_format(struct cursor *c, unsigned format) {
    switch (format & 0x0f) {
    case DW_EH_PE_absptr:
    case DW_EH_PE_udata8:
    case DW_EH_PE_sdata8:
        return take(c, 8);
    case DW_EH_PE_uleb128:
        return take_uleb(c);
    case DW_EH_PE_udata2:
        return take(c, 2);
    case DW_EH_PE_udata4:
        return take(c, 4);
    case DW_EH_PE_sleb128:
        return (uint64_t)take_sleb(c);
    case DW_EH_PE_sdata2:
        return (uint64_t)take_signed(c, 2);
    case DW_EH_PE_sdata4:
        return (uint64_t)take_signed(c, 4);
    default:
        cfi_fail(c, CFI_FORMAT);
        return 0;
    }
}

/* Takes an encoded address; "datarel" addresses are relative to `data`. */
static uint64_t take_address(struct cursor *c, uint8_t encoding, uintptr_t data) {
    uintptr_t here = c->at;
    uint64_t value = take_format(c, encoding);
    switch (encoding & 0xf0) {
    case DW_EH_PE_absptr:
        return value;
    case DW_EH_PE_pcrel:
        return here + value;
    case DW_EH_PE_datarel:
        return data + value;
    default:
        cfi_fail(c, CFI_FORMAT);
        return 0;
    }
}

static struct cursor cursor_from(const struct cfi_object *object, uintptr_t at) {
    if (at < object->start || at > object->end)
        return (struct cursor){.at = object->start, .end = object->start, .why = CFI_MALFORMED};
    return (struct cursor){.at = at, .end = object->end};
}

/* Takes an entry (CIE or FDE) without its length. The result is empty at the end of the table. */
static struct cursor take_entry(struct cursor *c) {
    uint64_t length = take(c, 4);
    if (length == 0xffffffff) length = take(c, 8);
    return take_block(c, length);
}

/* --- entries of the table (CIE, FDE) --- */

struct shared { /* from a CIE */
    uint64_t code_factor, data_factor;
    uint8_t encoding;
    bool augmented, signal;
    struct cursor program;
};

struct function { /* from an FDE */
    struct shared shared;
    uintptr_t start;
    struct cursor program;
};

/* Reads the data of the augmentation. `text` holds the augmentation's letters after the "z": some of "PLRSB", in any
 * order. */
static void read_augmentation(struct cursor *c, struct cursor text, struct shared *out) {
    struct cursor data = take_block(c, take_uleb(c));
    uint8_t letter;
    while ((letter = (uint8_t)take(&text, 1)) && !data.why) {
        switch (letter) {
        case 'L':
            take(&data, 1);
            break;
        case 'R':
            out->encoding = (uint8_t)take(&data, 1);
            break;
        case 'P':
            take_format(&data, (unsigned)take(&data, 1));
            break;
        case 'S':
            out->signal = true;
            break;
        case 'B':
            break;
        default:
            cfi_fail(&data, CFI_FORMAT);
        }
    }
    if (data.why) cfi_fail(c, data.why);
}

static enum cfi_why read_shared(struct cursor at, struct shared *out) {
    struct cursor c = take_entry(&at);
    uint64_t id = take(&c, 4);
    uint8_t version = (uint8_t)take(&c, 1);
    struct cursor text = c;
    while (take(&c, 1)) /* skip the letters of the augmentation; a failed read yields 0 */
        if (c.at - text.at > LETTERS) return CFI_FORMAT;
    if (c.why || id != 0) return CFI_MALFORMED;
    if (version != 1 && version != 3 && version != 4) return CFI_FORMAT;
    if (version == 4 && (take(&c, 1) != 8 || take(&c, 1) != 0)) /* the sizes of addresses and segment selectors */
        return CFI_FORMAT;
    *out = (struct shared){.code_factor = take_uleb(&c)};
    out->data_factor = (uint64_t)take_sleb(&c);
    if ((version == 1 ? take(&c, 1) : take_uleb(&c)) != REGISTER_RETURN) cfi_fail(&c, CFI_RETURN_ADDRESS);
    uint8_t first = (uint8_t)take(&text, 1);
    if (first == 'z') {
        out->augmented = true;
        read_augmentation(&c, text, out);
    } else if (first) {
        cfi_fail(&c, CFI_FORMAT);
    }
    out->program = c;
    return c.why;
}

/* Reads an FDE. `c` begins behind the FDE's length. CFI_NO_ENTRY: the FDE does not cover pc. */
static enum cfi_why read_function(const struct cfi_object *object, struct cursor c, uintptr_t pc,
                                  struct function *out) {
    uintptr_t here = c.at;
    uint64_t distance = take(&c, 4);
    if (c.why || distance == 0 || distance > here) return CFI_MALFORMED;
    struct cursor at = cursor_from(object, here - distance);
    enum cfi_why why = at.why ? at.why : read_shared(at, &out->shared);
    if (why) return why;
    out->start = take_address(&c, out->shared.encoding, object->header);
    uint64_t length = take_format(&c, out->shared.encoding);
    if (!c.why && pc - out->start >= length) return CFI_NO_ENTRY;
    if (out->shared.augmented) cfi_skip(&c, take_uleb(&c));
    out->program = c;
    return c.why;
}

/* Searches the index. Its rows are sorted pairs of 4-byte numbers: the address of a function and the address of its
 * entry, both relative to the header. */
static enum cfi_why search_index(const struct cfi_object *object, struct cursor index, uint64_t count, uintptr_t pc,
                                 struct function *out) {
    if (count > (index.end - index.at) / 8) return CFI_MALFORMED;
    int64_t key = (int64_t)(pc - object->header);
    uint64_t low = 0, high = count; /* rows below `low` begin at or before pc; rows from `high` on begin after it */
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        struct cursor row = {.at = index.at + 8 * middle, .end = index.end};
        if (take_signed(&row, 4) <= key)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0) return CFI_NO_ENTRY;
    struct cursor row = {.at = index.at + 8 * (low - 1) + 4, .end = index.end};
    struct cursor at = cursor_from(object, object->header + (uint64_t)take_signed(&row, 4));
    struct cursor entry = take_entry(&at);
    return entry.why ? entry.why : read_function(object, entry, pc, out);
}

/* Searches a table that has no index: reads entry after entry. */
static enum cfi_why walk_entries(const struct cfi_object *object, struct cursor at, uintptr_t pc,
                                 struct function *out) {
    for (int i = 0; i < WALK_LIMIT; i++) {
        struct cursor entry = take_entry(&at), id = entry;
        if (at.why) return at.why;
        if (entry.at == entry.end) return CFI_NO_ENTRY;
        if (take(&id, 4) == 0) /* this entry is a CIE */
            continue;
        enum cfi_why why = read_function(object, entry, pc, out);
        if (why != CFI_NO_ENTRY) return why;
    }
    return CFI_TOO_LONG;
}

static enum cfi_why find_function(const struct cfi_object *object, uintptr_t pc, struct function *out) {
    struct cursor c = cursor_from(object, object->header);
    uint8_t version = (uint8_t)take(&c, 1), frame_encoding = (uint8_t)take(&c, 1);
    uint8_t count_encoding = (uint8_t)take(&c, 1), index_encoding = (uint8_t)take(&c, 1);
    if (c.why || version != 1) return CFI_NO_TABLE;
    struct cursor after_frame = c;
    uintptr_t frame = take_address(&after_frame, frame_encoding, object->header);
    if (index_encoding == (DW_EH_PE_datarel | DW_EH_PE_sdata4) && count_encoding != DW_EH_PE_omit && !after_frame.why) {
        uint64_t count = take_address(&after_frame, count_encoding, object->header);
        return after_frame.why ? after_frame.why : search_index(object, after_frame, count, pc, out);
    }
    if (after_frame.why) return CFI_NO_TABLE;
    c = cursor_from(object, frame);
    return c.why ? c.why : walk_entries(object, c, pc, out);
}

/* --- rows: where the registers of a frame's caller are --- */

enum how { UNSAID, SAME, UNDEFINED, AT_CFA, FROM_REGISTER, EXPRESSION, ELSEWHERE };

/* Where the CFA, or the caller's value of a register, is found. */
struct location {
    uint8_t how;
    uint8_t number;  /* for FROM_REGISTER: the register; 255: any above 254 */
    uint32_t length; /* for EXPRESSION: its length in bytes */
    union {
        int64_t offset;       /* for AT_CFA and FROM_REGISTER: in bytes */
        uintptr_t expression; /* for EXPRESSION: its address */
    };
};

struct row {
    struct location cfa, bp, sp, return_address, other;
};

static struct location *location_of(struct row *row, uint64_t number) {
    switch (number) {
    case REGISTER_BP:
        return &row->bp;
    case REGISTER_SP:
        return &row->sp;
    case REGISTER_RETURN:
        return &row->return_address;
    default:
        return &row->other;
    }
}

struct machine {
    struct row row, first; /* first: the row after the CIE's program, for the restore opcodes */
    struct row remembered[REMEMBERED];
    unsigned depth;
};

static struct location at_cfa(uint64_t offset) { return (struct location){.how = AT_CFA, .offset = (int64_t)offset}; }

static struct location from_register(uint64_t number, uint64_t offset) {
    return (struct location){
        .how = FROM_REGISTER, .number = number < 255 ? (uint8_t)number : 255, .offset = (int64_t)offset};
}

static struct location take_expression(struct cursor *c) {
    struct cursor block = take_block(c, take_uleb(c));
    return (struct location){.how = EXPRESSION, .length = (uint32_t)(block.end - block.at), .expression = block.at};
}

static void cfi_remember(struct cursor *c, struct machine *m) {
    if (m->depth == REMEMBERED)
        cfi_fail(c, CFI_TOO_LONG);
    else
        m->remembered[m->depth++] = m->row;
}

static void restore_state(struct cursor *c, struct machine *m) {
    if (m->depth == 0)
        cfi_fail(c, CFI_MALFORMED);
    else
        m->row = m->remembered[--m->depth];
}

/* The row's CFA, for opcodes that change only its register or only its offset. The cursor fails if the CFA is not a
 * register plus an offset. */
static struct location *cfa_from_register(struct cursor *c, struct machine *m) {
    if (m->row.cfa.how != FROM_REGISTER) cfi_fail(c, CFI_MALFORMED);
    return &m->row.cfa;
}

/* Executes an instruction that says where the CFA is. False: the instruction is of another kind. */
static bool cfi_execute_cfa(struct cursor *c, struct machine *m, const struct shared *shared, unsigned opcode) {
    uint64_t number;
    switch (opcode) {
    case DW_CFA_def_cfa:
        number = take_uleb(c);
        m->row.cfa = from_register(number, take_uleb(c));
        return true;
    case DW_CFA_def_cfa_sf:
        number = take_uleb(c);
        m->row.cfa = from_register(number, (uint64_t)take_sleb(c) * shared->data_factor);
        return true;
    case DW_CFA_def_cfa_register: {
        struct location *cfa = cfa_from_register(c, m);
        *cfa = from_register(take_uleb(c), (uint64_t)cfa->offset);
        return true;
    }
    case DW_CFA_def_cfa_offset:
        cfa_from_register(c, m)->offset = (int64_t)take_uleb(c);
        return true;
    case DW_CFA_def_cfa_offset_sf:
        cfa_from_register(c, m)->offset = (int64_t)((uint64_t)take_sleb(c) * shared->data_factor);
        return true;
    case DW_CFA_def_cfa_expression:
        m->row.cfa = take_expression(c);
        return true;
    default:
        return false;
    }
}

/* Executes an instruction that says where a register of the caller is. The register's number is the first operand.
 * False: the instruction is of another kind. */
static bool cfi_execute_register(struct cursor *c, struct machine *m, const struct shared *shared, unsigned opcode) {
    uint64_t number = take_uleb(c);
    struct location *location = location_of(&m->row, number);
    switch (opcode) {
    case DW_CFA_offset_extended:
        *location = at_cfa(take_uleb(c) * shared->data_factor);
        return true;
    case DW_CFA_offset_extended_sf:
        *location = at_cfa((uint64_t)take_sleb(c) * shared->data_factor);
        return true;
    case DW_CFA_GNU_negative_offset_extended:
        *location = at_cfa(-take_uleb(c) * shared->data_factor);
        return true;
    case DW_CFA_restore_extended:
        *location = *location_of(&m->first, number);
        return true;
    case DW_CFA_undefined:
        *location = (struct location){.how = UNDEFINED};
        return true;
    case DW_CFA_same_value:
        *location = (struct location){.how = SAME};
        return true;
    case DW_CFA_expression:
        *location = take_expression(c);
        return true;
    case DW_CFA_register:
    case DW_CFA_val_offset:
        take_uleb(c);
        break;
    case DW_CFA_val_offset_sf:
        take_sleb(c);
        break;
    case DW_CFA_val_expression:
        take_expression(c);
        break;
    default:
        return false;
    }
    *location = (struct location){.how = ELSEWHERE};
    return true;
}

/* Executes the opcodes 0x00–0x3f that do not advance the location. */
static void cfi_execute(struct cursor *c, struct machine *m, const struct shared *shared, unsigned opcode) {
    if (cfi_execute_cfa(c, m, shared, opcode)) return;
    switch (opcode) {
    case DW_CFA_nop:
        break;
    case DW_CFA_remember_state:
        cfi_remember(c, m);
        break;
    case DW_CFA_restore_state:
        restore_state(c, m);
        break;
    case DW_CFA_GNU_args_size:
        take_uleb(c);
        break;
    default:
        if (!cfi_execute_register(c, m, shared, opcode)) cfi_fail(c, CFI_MALFORMED);
    }
}

/* Runs a CFI program up to the row for pc. This is the row of the highest location that is not above pc. */
static enum cfi_why cfi_run(struct cursor c, struct machine *m, const struct function *f, uintptr_t pc) {
    uint64_t factor = f->shared.code_factor;
    uintptr_t location = f->start;
    if (c.end - c.at > PROGRAM_LIMIT) return CFI_TOO_LONG;
    while (c.at < c.end) {
        unsigned opcode = (unsigned)take(&c, 1), operand = opcode & 0x3f;
        switch (opcode & 0xc0) {
        case DW_CFA_advance_loc:
            location += operand * factor;
            break;
        case DW_CFA_offset:
            *location_of(&m->row, operand) = at_cfa(take_uleb(&c) * f->shared.data_factor);
            continue;
        case DW_CFA_restore:
            *location_of(&m->row, operand) = *location_of(&m->first, operand);
            continue;
        default:
            switch (opcode) {
            case DW_CFA_set_loc:
                location = take_address(&c, f->shared.encoding, 0);
                break;
            case DW_CFA_advance_loc1:
                location += take(&c, 1) * factor;
                break;
            case DW_CFA_advance_loc2:
                location += take(&c, 2) * factor;
                break;
            case DW_CFA_advance_loc4:
                location += take(&c, 4) * factor;
                break;
            case DW_CFA_MIPS_advance_loc8:
                location += take(&c, 8) * factor;
                break;
            default:
                cfi_execute(&c, m, &f->shared, opcode);
                continue;
            }
        }
        if (location > pc) break;
    }
    return c.why;
}

/* --- evaluating expressions --- */

/* The value of an expression: a number, or a distance from something that only the unwinding thread knows. */
struct value {
    enum { NUMBER, FROM_CFA, FROM_BP, FROM_SP, FROM_WORD_AT_BP, FROM_WORD_AT_SP } base;
    int64_t offset;
    int64_t word; /* for FROM_WORD_AT_BP and FROM_WORD_AT_SP: the word lies at rbp + word or rsp + word */
};

struct operands {
    struct value stack[OPERANDS];
    unsigned depth;
};

static bool cfi_push(struct operands *o, struct value value) {
    if (o->depth == OPERANDS) return false;
    o->stack[o->depth++] = value;
    return true;
}

static bool push_from(struct operands *o, unsigned base, uint64_t offset) {
    return cfi_push(o, (struct value){.base = base, .offset = (int64_t)offset});
}

static bool cfi_operate(struct operands *o, unsigned opcode) {
    if (o->depth < 2) return false;
    struct value *left = &o->stack[o->depth - 2], right = o->stack[--o->depth];
    if (right.base != NUMBER || (left->base != NUMBER && opcode != DW_OP_plus)) return false;
    uint64_t a = (uint64_t)left->offset, b = (uint64_t)right.offset;
    switch (opcode) {
    case DW_OP_and:
        a &= b;
        break;
    case DW_OP_plus:
        a += b;
        break;
    case DW_OP_shl:
        a = b < 64 ? a << b : 0;
        break;
    case DW_OP_ge:
        a = left->offset >= right.offset;
        break;
    default:
        return false;
    }
    left->offset = (int64_t)a;
    return true;
}

static bool cfi_dereference(struct operands *o) {
    if (o->depth == 0) return false;
    struct value *top = &o->stack[o->depth - 1];
    if (top->base != FROM_BP && top->base != FROM_SP) return false;
    *top = (struct value){.base = top->base == FROM_BP ? FROM_WORD_AT_BP : FROM_WORD_AT_SP, .word = top->offset};
    return true;
}

/* Evaluates expressions of the forms that linkers (for the PLT), compilers (for realigned frames) and glibc (for signal
 * frames) emit. `o` may hold operands at the start. */
static bool cfi_evaluate(const struct location *location, uintptr_t pc, struct operands *o, struct value *out) {
    struct cursor c = {.at = location->expression, .end = location->expression + location->length};
    bool fine = location->how == EXPRESSION;
    while (fine && c.at < c.end) {
        unsigned opcode = (unsigned)take(&c, 1);
        switch (opcode) {
        case DW_OP_deref:
            fine = cfi_dereference(o);
            break;
        case DW_OP_plus_uconst:
            fine = push_from(o, NUMBER, take_uleb(&c)) && cfi_operate(o, DW_OP_plus);
            break;
        case DW_OP_lit0 ... DW_OP_lit31:
            fine = push_from(o, NUMBER, opcode - DW_OP_lit0);
            break;
        case DW_OP_breg0 + REGISTER_BP:
            fine = push_from(o, FROM_BP, (uint64_t)take_sleb(&c));
            break;
        case DW_OP_breg0 + REGISTER_SP:
            fine = push_from(o, FROM_SP, (uint64_t)take_sleb(&c));
            break;
        case DW_OP_breg0 + REGISTER_RETURN:
            fine = push_from(o, NUMBER, pc + (uint64_t)take_sleb(&c));
            break;
        default:
            fine = cfi_operate(o, opcode);
        }
    }
    if (!fine || c.why || o->depth == 0) return false;
    *out = o->stack[o->depth - 1];
    return true;
}

static bool evaluate_cfa(const struct location *location, uintptr_t pc, struct value *out) {
    struct operands none = {.depth = 0};
    return cfi_evaluate(location, pc, &none, out);
}

/* Evaluates an expression that gives the address at which a register was saved. Such an expression starts with the CFA
 * on its stack. */
static bool evaluate_saved(const struct location *location, uintptr_t pc, struct value *out) {
    struct operands cfa = {.stack = {{.base = FROM_CFA}}, .depth = 1};
    return cfi_evaluate(location, pc, &cfa, out);
}

/* --- from a row to the rule --- */

static enum cfi_why check_offset(int64_t offset) {
    return offset % 8 || offset > OFFSET_LIMIT || offset < -OFFSET_LIMIT ? CFI_OFFSET : CFI_KNOWN;
}

static enum cfi_why decide_cfa(const struct location *cfa, uintptr_t pc, struct cfi_rule *rule) {
    int64_t offset = cfa->offset;
    if (cfa->how == EXPRESSION) {
        struct value value;
        if (!evaluate_cfa(cfa, pc, &value)) return CFI_EXPRESSION;
        offset = value.offset;
        if (value.base == FROM_WORD_AT_BP && value.offset == 0) {
            rule->kind = CFI_BP_DEREF;
            offset = value.word;
        } else if (value.base == FROM_SP || value.base == FROM_BP) {
            rule->kind = value.base == FROM_SP ? CFI_SP : CFI_BP;
        } else {
            return CFI_EXPRESSION;
        }
    } else if (cfa->how == FROM_REGISTER && (cfa->number == REGISTER_SP || cfa->number == REGISTER_BP)) {
        rule->kind = cfa->number == REGISTER_SP ? CFI_SP : CFI_BP;
    } else {
        return CFI_REGISTER;
    }
    if (rule->kind == CFI_SP && offset < 8) /* the return address would lie below rsp */
        return CFI_OFFSET;
    rule->cfa = (int32_t)offset;
    return check_offset(offset);
}

static enum cfi_why decide_bp(const struct location *bp, uintptr_t pc, struct cfi_rule *rule) {
    int64_t offset = bp->offset;
    switch (bp->how) {
    case UNSAID:
    case SAME:
    case UNDEFINED:
        rule->bp = CFI_SAME;
        return CFI_KNOWN;
    case AT_CFA:
        break;
    case EXPRESSION: {
        struct value value;
        if (!evaluate_saved(bp, pc, &value) || (value.base != FROM_BP && value.base != FROM_CFA))
            return CFI_FRAME_POINTER;
        rule->bp_at_bp = value.base == FROM_BP;
        offset = value.offset;
        break;
    }
    default:
        return CFI_FRAME_POINTER;
    }
    rule->bp = (int32_t)offset;
    return check_offset(offset);
}

/* Whether the row describes the frame that the kernel pushes for a signal, as the row of glibc's __restore_rt does. The
 * row comes from an entry that is marked as a signal frame's (letter 'S'). */
static bool is_kernel_frame(const struct row *row, uintptr_t pc) {
    struct value cfa, bp, from;
    return evaluate_cfa(&row->cfa, pc, &cfa) && cfa.base == FROM_WORD_AT_SP && cfa.word == CFI_SIGNAL_SP &&
           cfa.offset == 0 && evaluate_saved(&row->bp, pc, &bp) && bp.base == FROM_SP && bp.offset == CFI_SIGNAL_BP &&
           evaluate_saved(&row->return_address, pc, &from) && from.base == FROM_SP && from.offset == CFI_SIGNAL_PC;
}

static enum cfi_why cfi_decide(const struct row *row, bool signal, uintptr_t pc, struct cfi_rule *rule) {
    if (row->return_address.how == UNDEFINED) {
        rule->kind = CFI_END;
        return CFI_KNOWN;
    }
    if (signal) {
        rule->kind = CFI_SIGNAL;
        return is_kernel_frame(row, pc) ? CFI_KNOWN : CFI_ODD_SIGNAL;
    }
    if (row->return_address.how != AT_CFA || row->return_address.offset != -8) return CFI_RETURN_ADDRESS;
    if (row->sp.how != UNSAID && row->sp.how != SAME) return CFI_REGISTER;
    enum cfi_why why = decide_cfa(&row->cfa, pc, rule);
    return why ? why : decide_bp(&row->bp, pc, rule);
}

static enum cfi_why find_rule(const struct cfi_object *object, uintptr_t pc, struct cfi_rule *rule) {
    struct function f;
    struct machine m;
    if (!object->header) return CFI_NO_TABLE;
    enum cfi_why why = find_function(object, pc, &f);
    if (why) return why;
    m.row = m.first = (struct row){0};
    m.depth = 0;
    if ((why = cfi_run(f.shared.program, &m, &f, UINTPTR_MAX))) return why;
    m.first = m.row;
    m.depth = 0;
    if ((why = cfi_run(f.program, &m, &f, pc))) return why;
    return cfi_decide(&m.row, f.shared.signal, pc, rule);
}

struct cfi_rule cfi_find(const struct cfi_object *object, uintptr_t pc) {
    struct cfi_rule rule = {.kind = CFI_UNKNOWN, .bp = CFI_SAME};
    enum cfi_why why = find_rule(object, pc, &rule);
    return why ? (struct cfi_rule){.kind = CFI_UNKNOWN, .why = (uint8_t)why, .bp = CFI_SAME} : rule;
}

/* --- the object that contains an address --- */

/* Finds the segment that holds `address`. Linkers put the program headers behind the ELF header, in the first page.
 * Returns false if they are elsewhere: e_phoff is an offset in the file, and behind the first page, the same offset in
 * memory may lead to something else. */
static bool find_segment(uintptr_t image, uintptr_t base, uintptr_t address, struct cfi_object *out) {
    const Elf64_Ehdr *elf = (const Elf64_Ehdr *)image;
    if (__builtin_memcmp(elf->e_ident, ELFMAG, SELFMAG) != 0 || elf->e_phentsize != sizeof(Elf64_Phdr) ||
        elf->e_phoff > OS_PAGE || elf->e_phoff + elf->e_phnum * sizeof(Elf64_Phdr) > OS_PAGE)
        return false;
    const Elf64_Phdr *segments = (const Elf64_Phdr *)(image + elf->e_phoff);
    for (unsigned i = 0; i < elf->e_phnum; i++) {
        uintptr_t start = base + segments[i].p_vaddr;
        if (segments[i].p_type == PT_LOAD && segments[i].p_flags & PF_R && address - start < segments[i].p_filesz) {
            out->start = start;
            out->end = start + segments[i].p_filesz;
            return true;
        }
    }
    return false;
}

bool cfi_object_of(uintptr_t pc, struct cfi_object *object) {
    struct dl_find_object found;
    *object = (struct cfi_object){0};
    if (_dl_find_object((void *)pc, &found)) return false;
    uintptr_t header = (uintptr_t)found.dlfo_eh_frame;
    if (header && find_segment((uintptr_t)found.dlfo_map_start, found.dlfo_link_map->l_addr, header, object))
        object->header = header;
    return true;
}

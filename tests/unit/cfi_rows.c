// The CFI reader, instruction by instruction: each opcode changes the rule as DWARF says. Rows that cannot be a rule
// are refused with a reason.
#include <criterion/criterion.h>

#include "cfi_image.h"

static struct cfi_image image;

#define BYTES(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})

static struct cfi_rule rule_at(uintptr_t offset, const uint8_t *program, size_t size) {
    image_of(&image, &usual_shape, program, size);
    return image_rule(&image, offset);
}

static void expect_same(struct cfi_rule found, struct cfi_rule wanted, int line) {
    cr_expect(found.kind == wanted.kind && found.why == wanted.why && found.bp_at_bp == wanted.bp_at_bp &&
                  found.cfa == wanted.cfa && found.bp == wanted.bp,
              "line %d: kind %d why %d cfa %d bp %d%s, not kind %d why %d cfa %d bp %d%s", line, found.kind, found.why,
              found.cfa, found.bp, found.bp_at_bp ? " at rbp" : "", wanted.kind, wanted.why, wanted.cfa, wanted.bp,
              wanted.bp_at_bp ? " at rbp" : "");
}

#define RULE(offset, kind, cfa, bp, ...)                                                                               \
    expect_same(rule_at(offset, BYTES(__VA_ARGS__)), (struct cfi_rule){kind, CFI_KNOWN, false, cfa, bp}, __LINE__)
#define REFUSED(why, ...)                                                                                              \
    expect_same(rule_at(0x80, BYTES(__VA_ARGS__)), (struct cfi_rule){CFI_UNKNOWN, why, false, 0, CFI_SAME}, __LINE__)

/* A function with a frame pointer, as compilers describe it. */
#define FRAME                                                                                                          \
    ADVANCE | 1, DEF_CFA_OFFSET, 16, OFFSET | BP, 2, ADVANCE | 3, DEF_CFA_REGISTER, BP, ADVANCE | 0x3c, DEF_CFA, SP, 8

Test(cfi_rows, each_row_of_a_function) {
    RULE(0, CFI_SP, 8, CFI_SAME, FRAME);
    RULE(1, CFI_SP, 16, -16, FRAME);
    RULE(3, CFI_SP, 16, -16, FRAME);
    RULE(4, CFI_BP, 16, -16, FRAME);
    RULE(0x3f, CFI_BP, 16, -16, FRAME);
    RULE(0x40, CFI_SP, 8, -16, FRAME);
    RULE(FUNCTION - 1, CFI_SP, 8, -16, FRAME);
}

Test(cfi_rows, every_way_to_advance) {
    RULE(9, CFI_SP, 8, CFI_SAME, ADVANCE1, 10, DEF_CFA_OFFSET, 16);
    RULE(10, CFI_SP, 16, CFI_SAME, ADVANCE1, 10, DEF_CFA_OFFSET, 16);
    RULE(0x7f, CFI_SP, 8, CFI_SAME, ADVANCE2, 0x80, 0, DEF_CFA_OFFSET, 16);
    RULE(0x80, CFI_SP, 16, CFI_SAME, ADVANCE2, 0x80, 0, DEF_CFA_OFFSET, 16);
    RULE(0x80, CFI_SP, 8, CFI_SAME, ADVANCE2, 0x80, 1, DEF_CFA_OFFSET, 16);
    RULE(0x80, CFI_SP, 16, CFI_SAME, ADVANCE4, 0x80, 0, 0, 0, DEF_CFA_OFFSET, 16);
    RULE(0x80, CFI_SP, 8, CFI_SAME, ADVANCE4, 0x80, 0, 0, 1, DEF_CFA_OFFSET, 16);
    RULE(0x80, CFI_SP, 16, CFI_SAME, ADVANCE8, 0x80, 0, 0, 0, 0, 0, 0, 0, DEF_CFA_OFFSET, 16);
    RULE(0x80, CFI_SP, 8, CFI_SAME, ADVANCE8, 0x80, 0, 0, 0, 0, 0, 0, 1, DEF_CFA_OFFSET, 16);
}

Test(cfi_rows, set_loc_takes_an_encoded_address) {
    for (uintptr_t offset = 0x7f; offset <= 0x80; offset++) {
        uint8_t program[] = {SET_LOC, 0, 0, 0, 0, DEF_CFA_OFFSET, 32};
        rule_at(offset, program, sizeof program); /* once, to find the address of its operand */
        uint8_t *at = memmem(image.bytes, image.size, program, sizeof program);
        cr_assert_not_null(at);
        int32_t distance = (int32_t)(image_at(&image, CODE + 0x80) - (uintptr_t)(at + 1));
        memcpy(at + 1, &distance, 4);
        cr_expect_eq(image_rule(&image, offset).cfa, offset < 0x80 ? 8 : 32);
    }
}

Test(cfi_rows, where_the_cfa_is) {
    RULE(0, CFI_SP, 0x100, CFI_SAME, DEF_CFA, SP, 0x80, 0x02);
    RULE(0, CFI_BP, 24, CFI_SAME, DEF_CFA, BP, 24);
    RULE(0, CFI_BP, 8, CFI_SAME, DEF_CFA_REGISTER, BP);
    RULE(0, CFI_SP, 0x4000, CFI_SAME, DEF_CFA_OFFSET, 0x80, 0x80, 0x01);
    RULE(0, CFI_BP, 16, CFI_SAME, DEF_CFA_SF, BP, 0x7e);    /* -2 × -8 */
    RULE(0, CFI_SP, 48, CFI_SAME, DEF_CFA_OFFSET_SF, 0x7a); /* -6 × -8 */
    RULE(0, CFI_BP, -8, CFI_SAME, DEF_CFA_SF, BP, 1);
}

Test(cfi_rows, where_rbp_is) {
    RULE(0, CFI_SP, 8, -24, OFFSET | BP, 3);
    RULE(0, CFI_SP, 8, -24, OFFSET_EXTENDED, BP, 3);
    RULE(0, CFI_SP, 8, 8, OFFSET_EXTENDED_SF, BP, 0x7f);
    RULE(0, CFI_SP, 8, 24, NEGATIVE_OFFSET, BP, 3);
    RULE(0, CFI_SP, 8, CFI_SAME, OFFSET | BP, 3, RESTORE | BP);
    RULE(0, CFI_SP, 8, CFI_SAME, OFFSET | BP, 3, RESTORE_EXTENDED, BP);
    RULE(0, CFI_SP, 8, CFI_SAME, OFFSET | BP, 3, SAME_VALUE, BP);
    RULE(0, CFI_SP, 8, CFI_SAME, OFFSET | BP, 3, UNDEFINED, BP);
}

Test(cfi_rows, what_says_nothing_about_the_rule) {
    RULE(0, CFI_SP, 8, CFI_SAME, NOP, OFFSET | 3, 4, RESTORE | 3, ARGS_SIZE, 0x80, 0x01, SAME_VALUE, 12, UNDEFINED, 13,
         REGISTER, 14, 15, VAL_OFFSET, 3, 4, VAL_OFFSET_SF, 3, 4, OFFSET_EXTENDED, 0x80, 0x01, 1, EXPRESSION, 3, 2,
         BREG + SP, 8, VAL_EXPRESSION, 3, 1, DEREF, NEGATIVE_OFFSET, 3, 1, OFFSET_EXTENDED_SF, 3, 0x70);
    RULE(0, CFI_SP, 8, CFI_SAME, SAME_VALUE, SP);
}

Test(cfi_rows, remembered_rows_come_back_whole) {
#define EPILOGUE FRAME_ON, ADVANCE | 0x10, REMEMBER, DEF_CFA, SP, 8, RESTORE | BP, ADVANCE | 1, RESTORE_STATE
#define FRAME_ON DEF_CFA, BP, 16, OFFSET | BP, 2
    RULE(0x0f, CFI_BP, 16, -16, EPILOGUE);
    RULE(0x10, CFI_SP, 8, CFI_SAME, EPILOGUE);
    RULE(0x11, CFI_BP, 16, -16, EPILOGUE);
    RULE(0x80, CFI_SP, 24, CFI_SAME, REMEMBER, REMEMBER, REMEMBER, REMEMBER, REMEMBER, REMEMBER, REMEMBER,
         DEF_CFA_OFFSET, 24, REMEMBER, DEF_CFA_OFFSET, 32, RESTORE_STATE);
    REFUSED(CFI_TOO_LONG, REMEMBER, REMEMBER, REMEMBER, REMEMBER, REMEMBER, REMEMBER, REMEMBER, REMEMBER, REMEMBER);
    REFUSED(CFI_MALFORMED, RESTORE_STATE);
}

/* In a function, DW_CFA_restore_state cannot restore a row that the instructions of the CIE have remembered.
 * DW_CFA_restore gives a register the CIE's rule again. */
Test(cfi_rows, restore_goes_back_to_the_shared_row) {
    static const uint8_t program[] = {DEF_CFA, SP, 8, OFFSET | RA, 1, OFFSET | BP, 5, REMEMBER};
    struct shape shape = usual_shape;
    shape.program = program, shape.program_size = sizeof program;
    image_of(&image, &shape, BYTES(OFFSET | BP, 2, RESTORE | BP));
    expect_same(image_rule(&image, 0), (struct cfi_rule){CFI_SP, 0, 0, 8, -40}, __LINE__);
    image_of(&image, &shape, BYTES(SAME_VALUE, BP, RESTORE_EXTENDED, BP));
    expect_same(image_rule(&image, 0), (struct cfi_rule){CFI_SP, 0, 0, 8, -40}, __LINE__);
    image_of(&image, &shape, BYTES(RESTORE_STATE));
    cr_expect_eq(image_rule(&image, 0).why, CFI_MALFORMED);
}

Test(cfi_rows, factors_multiply) {
    struct shape shape = usual_shape;
    shape.code_factor = 4, shape.data_factor = 0x70; /* -16 */
    static const uint8_t program[] = {DEF_CFA, SP, 8, OFFSET_EXTENDED_SF, RA, 0};
    shape.program = program, shape.program_size = sizeof program;
    const uint8_t body[] = {NEGATIVE_OFFSET, BP, 1, ADVANCE | 2, DEF_CFA_SF, BP, 0x7f, ADVANCE1, 1, DEF_CFA, SP, 8};
    image_of(&image, &shape, body, sizeof body);
    cr_expect_eq(image_rule(&image, 0).why, CFI_RETURN_ADDRESS); /* it is at CFA - 0 there */
    static const uint8_t halves[] = {DEF_CFA, SP, 8, OFFSET | RA, 1};
    shape.data_factor = 0x78, shape.program = halves, shape.program_size = sizeof halves;
    image_of(&image, &shape, body, sizeof body);
    expect_same(image_rule(&image, 7), (struct cfi_rule){CFI_SP, 0, 0, 8, 8}, __LINE__);
    expect_same(image_rule(&image, 8), (struct cfi_rule){CFI_BP, 0, 0, 8, 8}, __LINE__);
    expect_same(image_rule(&image, 11), (struct cfi_rule){CFI_BP, 0, 0, 8, 8}, __LINE__);
    expect_same(image_rule(&image, 12), (struct cfi_rule){CFI_SP, 0, 0, 8, 8}, __LINE__);
}

Test(cfi_rows, the_end_of_the_stack) {
    RULE(0, CFI_END, 0, CFI_SAME, UNDEFINED, RA);
    RULE(0, CFI_END, 0, CFI_SAME, DEF_CFA, 10, 0, UNDEFINED, RA); /* whatever the CFA */
}

Test(cfi_rows, realigned_frames) {
    struct cfi_rule rule =
        rule_at(0, BYTES(DEF_CFA_EXPRESSION, 3, BREG + BP, 0x78, DEREF, EXPRESSION, BP, 2, BREG + BP, 0));
    expect_same(rule, (struct cfi_rule){CFI_BP_DEREF, 0, true, -8, 0}, __LINE__);
    rule = rule_at(0, BYTES(DEF_CFA_EXPRESSION, 4, BREG + BP, 0xc0, 0x7e, DEREF, EXPRESSION, BP, 2, BREG + BP, 0x70));
    expect_same(rule, (struct cfi_rule){CFI_BP_DEREF, 0, true, -192, -16}, __LINE__);
}

Test(cfi_rows, plain_expressions) {
    RULE(0, CFI_SP, 24, CFI_SAME, DEF_CFA_EXPRESSION, 2, BREG + SP, 24);
    RULE(0, CFI_BP, 16, CFI_SAME, DEF_CFA_EXPRESSION, 2, BREG + BP, 16);
    RULE(0, CFI_SP, 24, CFI_SAME, DEF_CFA_EXPRESSION, 4, BREG + SP, 8, PLUS_UCONST, 16);
    RULE(0, CFI_SP, 8, 16, EXPRESSION, BP, 2, PLUS_UCONST, 16); /* from the CFA */
}

/* The rule of the PLT: in each slot of 16 bytes, 8 more bytes are on the stack from offset 11 on. */
Test(cfi_rows, plt_slots) {
    for (uintptr_t offset = 0; offset < FUNCTION; offset++)
        RULE(offset, CFI_SP, (image_at(&image, CODE + offset) & 15) >= 11 ? 16 : 8, CFI_SAME, DEF_CFA_EXPRESSION, 11,
             BREG + SP, 8, BREG + RA, 0, LIT | 15, AND, LIT | 11, GE, LIT | 3, SHL, PLUS);
}

#define FROM(register, n) EXPRESSION, register, 3, BREG + SP, (n) | 0x80, (n) >> 7
#define SIGNAL_CFA DEF_CFA_EXPRESSION, 4, BREG + SP, 0xa0, 0x01, DEREF

Test(cfi_rows, signal_frames) {
    struct shape shape = usual_shape;
    shape.augmentation = "zRS";
    image_of(&image, &shape, BYTES(SIGNAL_CFA, FROM(BP, 120), FROM(RA, 168), FROM(SP, 160), FROM(3, 128)));
    expect_same(image_rule(&image, 0), (struct cfi_rule){CFI_SIGNAL, 0, 0, 0, CFI_SAME}, __LINE__);
    image_of(&image, &shape, BYTES(SIGNAL_CFA, FROM(BP, 120), FROM(RA, 160)));
    cr_expect_eq(image_rule(&image, 0).why, CFI_ODD_SIGNAL);
    image_of(&image, &shape, BYTES(SIGNAL_CFA, FROM(BP, 112), FROM(RA, 168)));
    cr_expect_eq(image_rule(&image, 0).why, CFI_ODD_SIGNAL);
    image_of(&image, &shape, BYTES(DEF_CFA, SP, 16));
    cr_expect_eq(image_rule(&image, 0).why, CFI_ODD_SIGNAL);
    image_of(&image, &shape, BYTES(UNDEFINED, RA));
    cr_expect_eq(image_rule(&image, 0).kind, CFI_END);
    REFUSED(CFI_RETURN_ADDRESS, SIGNAL_CFA, FROM(BP, 120), FROM(RA, 168)); /* no mark for a signal frame */
}

Test(cfi_rows, refused_cfa) {
    REFUSED(CFI_REGISTER, DEF_CFA, 10, 0);
    REFUSED(CFI_REGISTER, DEF_CFA, 0x80 | BP, 0x02, 8); /* register 262 is not register 6 */
    REFUSED(CFI_REGISTER, DEF_CFA_REGISTER, 3);
    REFUSED(CFI_REGISTER, VAL_OFFSET, SP, 1);
    REFUSED(CFI_REGISTER, OFFSET | SP, 2);
    REFUSED(CFI_EXPRESSION, DEF_CFA_EXPRESSION, 0);
    REFUSED(CFI_EXPRESSION, DEF_CFA_EXPRESSION, 1, LIT | 8);
    REFUSED(CFI_EXPRESSION, DEF_CFA_EXPRESSION, 1, DEREF);
    REFUSED(CFI_EXPRESSION, DEF_CFA_EXPRESSION, 1, PLUS);
    REFUSED(CFI_EXPRESSION, DEF_CFA_EXPRESSION, 1, 0x96);                        /* nop */
    REFUSED(CFI_EXPRESSION, DEF_CFA_EXPRESSION, 4, BREG + SP, 8, LIT | 8, 0x1c); /* minus: not supported */
    REFUSED(CFI_EXPRESSION, DEF_CFA_EXPRESSION, 2, BREG + 3, 0);                 /* another register */
    REFUSED(CFI_EXPRESSION, DEF_CFA_EXPRESSION, 2, BREG + BP, 0x80);             /* a number without an end */
    REFUSED(CFI_EXPRESSION, DEF_CFA_EXPRESSION, 3, BREG + SP, 40, DEREF);        /* *(rsp + 40) */
    REFUSED(CFI_EXPRESSION, DEF_CFA_EXPRESSION, 4, BREG + BP, 0, DEREF, DEREF);
    REFUSED(CFI_EXPRESSION, DEF_CFA_EXPRESSION, 5, BREG + BP, 0, DEREF, PLUS_UCONST, 8); /* *(rbp) + 8 */
    REFUSED(CFI_EXPRESSION, DEF_CFA_EXPRESSION, 4, BREG + SP, 8, LIT | 15, AND);         /* rsp & 15 */
    REFUSED(CFI_EXPRESSION, DEF_CFA_EXPRESSION, 9, LIT, LIT, LIT, LIT, LIT, LIT, LIT, LIT, LIT);
    REFUSED(CFI_MALFORMED, DEF_CFA_EXPRESSION, 2, BREG + BP, 16, DEF_CFA_OFFSET, 8);
    REFUSED(CFI_MALFORMED, DEF_CFA_EXPRESSION, 2, BREG + BP, 16, DEF_CFA_REGISTER, BP);
}

Test(cfi_rows, refused_places) {
    REFUSED(CFI_RETURN_ADDRESS, OFFSET | RA, 2);
    REFUSED(CFI_RETURN_ADDRESS, SAME_VALUE, RA);
    REFUSED(CFI_RETURN_ADDRESS, REGISTER, RA, 3);
    REFUSED(CFI_RETURN_ADDRESS, EXPRESSION, RA, 2, BREG + SP, 0);
    REFUSED(CFI_FRAME_POINTER, REGISTER, BP, 3);
    REFUSED(CFI_FRAME_POINTER, VAL_OFFSET, BP, 2);
    REFUSED(CFI_FRAME_POINTER, VAL_OFFSET_SF, BP, 2);
    REFUSED(CFI_FRAME_POINTER, VAL_EXPRESSION, BP, 2, BREG + BP, 0);
    REFUSED(CFI_FRAME_POINTER, EXPRESSION, BP, 2, BREG + SP, 0);
    REFUSED(CFI_FRAME_POINTER, EXPRESSION, BP, 3, BREG + BP, 0, DEREF);
    REFUSED(CFI_FRAME_POINTER, EXPRESSION, BP, 2, LIT, 0xff);
}

Test(cfi_rows, refused_offsets) {
    REFUSED(CFI_OFFSET, DEF_CFA_OFFSET, 12);
    REFUSED(CFI_OFFSET, DEF_CFA_OFFSET, 0); /* the return address would lie below rsp */
    REFUSED(CFI_OFFSET, DEF_CFA_OFFSET_SF, 1);
    REFUSED(CFI_OFFSET, DEF_CFA_OFFSET, 0x88, 0x80, 0x80, 0x80, 0x01); /* 2^28 + 8 */
    RULE(0, CFI_SP, 1 << 28, CFI_SAME, DEF_CFA_OFFSET, 0x80, 0x80, 0x80, 0x80, 0x01);
    REFUSED(CFI_OFFSET, DEF_CFA, BP, 0x88, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01); /* 2^63 + 8 */
    REFUSED(CFI_OFFSET, OFFSET | BP, 0x81, 0x80, 0x80, 0x80, 0x01);
    REFUSED(CFI_OFFSET, EXPRESSION, BP, 2, BREG + BP, 1);
}

Test(cfi_rows, refused_bytes) {
    for (unsigned opcode = 0x17; opcode < 0x40; opcode++)
        if (opcode != ADVANCE8 && opcode != ARGS_SIZE && opcode != NEGATIVE_OFFSET)
            REFUSED(CFI_MALFORMED, (uint8_t)opcode, 0, 0, 0, 0, 0, 0, 0);
    REFUSED(CFI_MALFORMED, NOP, NOP, DEF_CFA_OFFSET); /* after two NOPs, the opcode is the FDE's last byte */
    REFUSED(CFI_MALFORMED, DEF_CFA_EXPRESSION, 200, BREG + BP, 0);
    REFUSED(CFI_MALFORMED, DEF_CFA_OFFSET, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01);
    REFUSED(CFI_MALFORMED, ADVANCE4, 1, 0);
}

/* Bytes beyond the requested row may be anything. */
Test(cfi_rows, later_rows_are_not_read) { RULE(0x7f, CFI_SP, 8, CFI_SAME, ADVANCE1, 0x80, 0x3f, 0x3f); }

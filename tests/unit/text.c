// Numbers with their nouns: one is singular.
#include <criterion/criterion.h>

#include "tools/base/text.h"

Test(text, counts_have_the_right_noun) {
    cr_assert_str_eq(text_block_count(0).s, "0 blocks");
    cr_assert_str_eq(text_block_count(1).s, "1 block");
    cr_assert_str_eq(text_byte_count(1).s, "1 byte");
    cr_assert_str_eq(text_byte_count(12345).s, "12,345 bytes");
    cr_assert_str_eq(text_block_change(1).s, "+1 block");
    cr_assert_str_eq(text_block_change(-1).s, "-1 block");
    cr_assert_str_eq(text_block_change(-2000).s, "-2,000 blocks");
    cr_assert_str_eq(text_block_change(-1234567890123).s, "-1,234,567,890,123 blocks");
}

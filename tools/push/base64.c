/* base64.c — see base64.h. */
#include "tools/push/base64.h"

#include <stdint.h>

void base64_write(char *to, const void *bytes, size_t length) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *from = bytes;
    for (size_t i = 0; i < length; i += 3, to += 4) {
        uint32_t three = (uint32_t)from[i] << 16;
        if (i + 1 < length) three |= (uint32_t)from[i + 1] << 8;
        if (i + 2 < length) three |= from[i + 2];
        to[0] = letters[three >> 18];
        to[1] = letters[three >> 12 & 63];
        to[2] = i + 1 < length ? letters[three >> 6 & 63] : '=';
        to[3] = i + 2 < length ? letters[three & 63] : '=';
    }
}

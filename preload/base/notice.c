/* notice.c — see notice.h. */
#include "preload/base/notice.h"

#include <string.h>
#include <unistd.h>

#include "preload/shared/os.h"

void notice_begin(struct notice *self) {
    self->used = 0;
    notice_put(self, "memstow: ");
}

void notice_put(struct notice *self, const char *text) {
    os_copy(self->text + self->used, sizeof self->text - self->used, text);
    self->used += strlen(self->text + self->used);
}

void notice_number(struct notice *self, uint64_t number) {
    char digits[24];
    os_decimal(digits, number);
    notice_put(self, digits);
}

void notice_write(struct notice *self) {
    if (self->used > sizeof self->text - 2) self->used = sizeof self->text - 2;
    self->text[self->used++] = '\n';
    os_write(STDERR_FILENO, self->text, self->used);
}

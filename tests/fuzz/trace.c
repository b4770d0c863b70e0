/* trace.c — fuzz target: any text that a program passes to memstow_trace is refused, or comes back as one line of JSON
 * with a number and a time. If the text is a JSON object, a walk through everything in the object comes to an end. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "preload/shared/jsontext.h"
#include "preload/ledger/ledger.h"
#include "preload/ledger/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void walk(struct jsontext in) {
    struct jsontext key, value;
    char text[100];
    uint64_t number;
    for (size_t next = 0; jsontext_next(in, &next, &key, &value);) {
        if (key.at && !jsontext_string(key, text, sizeof text)) abort();
        if (*value.at == '{' || *value.at == '[')
            walk(value);
        else if (*value.at == '"' && (!jsontext_string(value, text, 10) || strlen(text) > 9))
            abort();
        jsontext_number(value, &number);
    }
}

static void check_line(uint64_t expected) {
    static uint64_t place;
    char line[SNAP_LINE_MOST];
    uint64_t number, said;
    size_t length = trace_read(&place, line, &number);
    struct jsontext object = {line, length}, value;
    if (!length || number != expected || !jsontext_is_object(line, length) || memchr(line, '\n', length)) abort();
    if (!jsontext_member(object, "n", &value) || !jsontext_number(value, &said) || said != number) abort();
    if (!jsontext_member(object, "t", &value) || !jsontext_number(value, &said)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const struct ledger_identity identity = {.name = "fuzz", .exe = "", .command = ""};
    static uint64_t lines;
    const char *text = (const char *)data;
    if (!ledger_head->pid && !ledger_begin(&identity)) abort();
    bool object = jsontext_is_object(text, size);
    int result = trace_add_foreign(text, size);
    if (object) walk((struct jsontext){text + strcspn(text, "{"), size - strcspn(text, "{")});
    if (result == 0)
        check_line(++lines);
    else if (result != -EINVAL)
        abort();
    if (!object && result == 0) abort();
    return 0;
}

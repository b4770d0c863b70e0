/* site_lines.c — see site_lines.h. */
#include "tools/symbols/site_lines.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

enum { FRAME_INDENT = 3 }; /* "py " */

void site_margin_add(struct margin *margin, const char *format, ...) {
    va_list arguments;
    if (margin->count == sizeof margin->lines / sizeof *margin->lines) return;
    va_start(arguments, format);
    vsnprintf(margin->lines[margin->count++], sizeof margin->lines[0], format, arguments);
    va_end(arguments);
}

int site_width(const struct margin *margin) { return text_width() - margin->width; }

void site_line(struct margin *margin, const char *text) {
    const char *left = margin->next < margin->count ? margin->lines[margin->next++] : "";
    int pad = *text ? margin->width - text_columns(left) : 0;
    bool styled = margin->style && *margin->style;
    printf("%s%s%s%*s%s\n", styled ? margin->style : "", left, styled ? text_style(TEXT_PLAIN) : "", pad > 0 ? pad : 0,
           "", text);
    margin->style = NULL;
}

/* Prints owners, as many on a line as fit. An owner that would be cut there begins a new line, because the name of a
 * model ends with its file, and the file tells it from other models. */
void site_owners(struct margin *margin, const char *model, const char *node, const char *run) {
    const char *const names[] = {model, node, run}, *const kinds[] = {"model", "node", "run"};
    struct text_line line = {""};
    int width = site_width(margin);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct text_line one, both;
        if (!names[i]) continue;
        snprintf(one.s, sizeof one.s, "%s %.500s", kinds[i], names[i]);
        snprintf(both.s, sizeof both.s, "%.500s%s%.500s", line.s, *line.s ? ", " : "", one.s);
        bool fits = text_columns(both.s) <= width;
        if (!fits && *line.s) site_line(margin, text_fit(line.s, width).s);
        line = fits ? both : one;
    }
    if (*line.s) site_line(margin, text_fit(line.s, width).s);
}

static void print_stack(struct margin *margin, const struct innermost *stack) {
    struct text_line left_out = innermost_left_out(stack);
    char text[sizeof left_out + FRAME_INDENT];
    for (size_t i = 0; i < stack->count; i++) site_line(margin, innermost_text(&stack->lines[i], site_width(margin)).s);
    snprintf(text, sizeof text, "%*s%s", FRAME_INDENT, "", left_out.s);
    if (*left_out.s) site_line(margin, text);
}

void site_lines(struct margin *margin, const struct innermost *stack, const char *otherwise) {
    char text[sizeof(struct text_line) + FRAME_INDENT];
    snprintf(text, sizeof text, "%*s%s", FRAME_INDENT, "", text_fit(otherwise, site_width(margin) - FRAME_INDENT).s);
    if (stack->count)
        print_stack(margin, stack);
    else
        site_line(margin, text);
    while (margin->next < margin->count) site_line(margin, "");
}

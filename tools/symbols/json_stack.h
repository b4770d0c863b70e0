/* json_stack.h — call stacks in JSON: function, file, line, module and kind of each frame, innermost first.
 * In: nodes of one image. Out: members of an array. Each frame is named and rendered once, however many stacks it is
 * in. */
#ifndef MEMSTOW_JSON_STACK_H
#define MEMSTOW_JSON_STACK_H

#include "tools/base/json.h"
#include "tools/symbols/symbols.h"

struct json_stacks;

struct json_stacks *json_stacks_begin(const struct image *image, struct symbols *symbols); /* NULL: no memory */
void json_stacks_end(struct json_stacks *stacks);
/* Writes "stack": the frames of a node; or, if there are none, one frame with only a module (1 + id; 0: none). */
void json_stack(struct json *json, struct json_stacks *stacks, uint32_t node, uint32_t module);

#endif

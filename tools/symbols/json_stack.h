/* json_stack.h — call stacks in JSON: function, file, line, module and kind of each frame, innermost first.
 * In: nodes of one image. Out: members "stack", which are arrays of frames. Each frame is named and rendered only once,
 * even if it is in many stacks. */
#ifndef MEMSTOW_JSON_STACK_H
#define MEMSTOW_JSON_STACK_H

#include "tools/base/json.h"
#include "tools/symbols/symbols.h"

struct json_stacks;

struct json_stacks *json_stacks_begin(const struct image *image, struct symbols *symbols); /* NULL: no memory */
void json_stacks_end(struct json_stacks *stacks);
/* Writes the member "stack": the frames of a node. If the node has no frames, writes one frame that has only a module.
 * `module` is 1 + the id of this module, or 0 if there is none. */
void json_stack(struct json *json, struct json_stacks *stacks, uint32_t node, uint32_t module);

#endif

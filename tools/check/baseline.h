/* baseline.h — figures as a text file that lives beside the source: sorted, without addresses, paths of a machine or
 * dates, so that `git diff` shows what changed. In: such a file, of which nothing is believed, or figures. Out: the
 * other one.
 *
 *     memstow-baseline 1
 *     measure live                  or peak
 *     runs 5                        figures are the lowest and the highest of so many
 *     floor 1024                    call sites that held less in each are not listed
 *     total 71200..73010 405..411   bytes, and blocks
 *     owner 65536 1 model "UNET" "wan.safetensors"
 *     site 4096 2 at "make@libx.so" "main@prog" of "model:UNET"
 *
 * Where a program uses CUDA the version is 2, and "cuda-total", "cuda-owner" and "cuda-site" have the same of devices;
 * a file of version 1 says nothing of them. */
#ifndef MEMSTOW_BASELINE_H
#define MEMSTOW_BASELINE_H

#include "tools/symbols/figures.h"
#include "tools/base/scan.h"

#include <stdio.h>

enum { BASELINE_SITES = 500 }; /* that are listed at most */

/* Into figures that have just begun. 0, or -1 and why in scan->error. */
int baseline_read(struct figures *figures, struct scan *scan);
/* Sorts them. */
void baseline_write(struct figures *figures, FILE *to);
/* Puts a file in the place of an earlier one, at once and whole. 0, or -1 and why: it is something else than a
 * baseline, or cannot be written. */
int baseline_save(struct figures *figures, const char *path, char *error, size_t error_size);

#endif

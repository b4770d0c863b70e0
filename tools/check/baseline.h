/* baseline.h — figures as a text file that lives beside the source. It is sorted, and has no addresses, paths of a
 * machine or dates, so `git diff` shows what changed.
 * In: such a file, which is not trusted; or figures. Out: figures; or such a file.
 *
 *     memstow-baseline 1
 *     measure live                  or peak
 *     runs 5                        figures are the lowest and the highest of so many
 *     floor 1024                    call sites that held less in each are not listed
 *     total 71200..73010 405..411   bytes, and blocks
 *     owner 65536 1 model "UNET" "wan.safetensors"
 *     site 4096 2 at "make@libx.so" "main@prog" of "model:UNET"
 *
 * If a program uses CUDA, the version is 2, and "cuda-total", "cuda-owner" and "cuda-site" have the same figures for
 * devices. A file of version 1 has none for devices. */
#ifndef MEMSTOW_BASELINE_H
#define MEMSTOW_BASELINE_H

#include "tools/symbols/figures.h"
#include "tools/base/scan.h"

#include <stdio.h>

enum { BASELINE_SITES = 500 }; /* most sites in the list */

/* Reads into figures that have just begun. Returns 0, or -1 with the reason in scan->error. */
int baseline_read(struct figures *figures, struct scan *scan);
/* Sorts the figures and writes them. */
void baseline_write(struct figures *figures, FILE *to);
/* Replaces a file atomically. Returns 0, or -1 with the reason: the file is not a baseline, or cannot be written. */
int baseline_save(struct figures *figures, const char *path, char *error, size_t error_size);

#endif

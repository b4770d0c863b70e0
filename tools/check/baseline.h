/* baseline.h — the figures of a check as a text file, which is kept with the source. The file is sorted, and has no
 * addresses, paths of a machine or dates, so `git diff` shows what changed.
 * In: such a file, which is not trusted; or figures. Out: figures; or such a file.
 *
 *     memstow-baseline 1
 *     measure live                  or peak
 *     runs 5                        figures are the lowest and the highest value in 5 runs
 *     floor 1024                    call sites that held fewer bytes in every run are not listed
 *     total 71200..73010 405..411   bytes, and blocks
 *     owner 65536 1 model "UNET" "wan.safetensors"
 *     site 4096 2 at "make@libx.so" "main@prog"
 *
 * If a program uses CUDA, the version is 2. Lines "cuda-total", "cuda-owner" and "cuda-site" then have the same figures
 * for devices. A file of version 1 has no figures for devices.
 *
 * If a call site belongs to a model or a custom owner, the version is 3, with or without devices:
 *
 *     site 4096 2 at "make@libx.so" "main@prog" of "model:UNET" from "wan.safetensors" "node:KSampler"
 *
 * In versions 1 and 2, lines of call sites have no origins. So call sites that differ only in the origin of an owner
 * have one line, with their sum. Figures that are compared with such a file are added up in this way, too
 * (figures.without_origins). */
#ifndef MEMSTOW_BASELINE_H
#define MEMSTOW_BASELINE_H

#include "tools/symbols/figures.h"
#include "tools/base/scan.h"

#include <stdbool.h>
#include <stdio.h>

enum { BASELINE_SITES = 500 }; /* the most call sites that a file lists */

/* Reads a baseline into `figures`, which must be empty. Returns 0, or -1 with the reason in scan->error. */
int baseline_read(struct figures *figures, struct scan *scan);
/* Sorts the figures and writes them. */
void baseline_write(struct figures *figures, FILE *to);
/* Whether a baseline may replace the file at `path`: the file does not exist, is empty, or begins with the first word
 * of a baseline. So a damaged baseline, for example after a merge, is replaced, too. False: `error` has the reason. */
bool baseline_may_replace(const char *path, char *error, size_t size);
/* Writes the figures to `path`, and replaces the file there atomically. Returns 0, or -1 with the reason: that file is
 * not a baseline, or the new file cannot be written. */
int baseline_save(struct figures *figures, const char *path, char *error, size_t error_size);

#endif

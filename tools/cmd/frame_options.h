/* frame_options.h — --all-frames and --absolute, which report, diff and leaks have.
 * In: an option of getopt_long. Out: a setting of tools/symbols/, which holds for all call stacks from then on. */
#ifndef MEMSTOW_FRAME_OPTIONS_H
#define MEMSTOW_FRAME_OPTIONS_H

#include "tools/base/complain.h"
#include "tools/symbols/innermost.h"

/* Values for getopt_long. They lie between the characters and a command's own options, which begin at 256. */
enum { OPTION_ALL_FRAMES = 254, OPTION_ABSOLUTE };

/* Two lines for an array of struct option. */
#define FRAME_OPTIONS                                                                                                  \
    {"all-frames", no_argument, NULL, OPTION_ALL_FRAMES}, { "absolute", no_argument, NULL, OPTION_ABSOLUTE }

/* Turns the option on and returns true if it is --all-frames or --absolute. Otherwise returns false. */
static inline bool frame_options_take(int option) {
    if (option == OPTION_ALL_FRAMES) innermost_show_all();
    if (option == OPTION_ABSOLUTE) symbol_text_absolute();
    return option == OPTION_ALL_FRAMES || option == OPTION_ABSOLUTE;
}

/* Refuses the two options if the output is not text. Returns EXIT_FINE, or another exit code after an error message. */
static inline int frame_options_check(const char *command, bool is_text) {
    if (is_text || (!innermost_shows_all() && !symbol_text_is_absolute())) return EXIT_FINE;
    return complain_usage(command, "--all-frames and --absolute go with text");
}

#endif

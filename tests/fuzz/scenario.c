/* scenario.c — fuzz target: any scenario is read or refused, and a scenario that was read is valid. */
#include <stdlib.h>
#include <string.h>

#include "tools/lifecycle/scenario.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct scenario scenario;
    char *text = malloc(size + 1); /* a sanitizer notices each byte beyond the end */
    if (!text) return 0;
    memcpy(text, data, size);
    text[size] = 0;
    int result = scenario_take(&scenario, "fuzz", text, size);
    if ((result < 0) != (scenario.error[0] != 0)) abort();
    if (result == 0 && (!scenario.program || !scenario.repeat)) abort();
    for (size_t i = 0; result == 0 && i < scenario.step_count; i++) {
        const struct step *step = &scenario.steps[i];
        if (step->verb >= VERBS || step->phase >= PHASES || !step->text || !step->within_ns) abort();
        if (step->verb == VERB_SIGNAL && !scenario_signal(step->text)) abort();
    }
    scenario_clear(&scenario);
    return 0;
}

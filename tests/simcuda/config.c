/* config.c — what the environment says about the simulated devices (simcuda.h). It is read once, at the first call. */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>

struct config sim_config;

static uint64_t number(const char *key, uint64_t otherwise) {
    const char *text = getenv(key);
    char *end;
    if (!text || !*text) return otherwise;
    uint64_t value = strtoull(text, &end, 10);
    return *end == 'K' ? value * KB : *end == 'M' ? value * MB : *end == 'G' ? value * GB : value;
}

void config_read(void) {
    sim_config.devices = (int)number("SIMCUDA_DEVICES", 1);
    if (sim_config.devices > MAX_DEVICES) sim_config.devices = MAX_DEVICES;
    sim_config.capacity = number("SIMCUDA_CAPACITY", GB);
    sim_config.context = number("SIMCUDA_CONTEXT", 8 * MB);
    sim_config.fragmented = number("SIMCUDA_FRAGMENTED", 0);
    sim_config.version = (int)number("SIMCUDA_VERSION", 13000);
    sim_config.latency_ns = number("SIMCUDA_LATENCY_US", 0) * 1000;
    sim_config.peers = number("SIMCUDA_PEERS", 1);
    sim_config.pageable = number("SIMCUDA_PAGEABLE", 0);
    sim_config.instances = number("SIMCUDA_MIG", 0);
    sim_config.served = number("SIMCUDA_MPS", 0);
    sim_config.multicast = number("SIMCUDA_MULTICAST", 0);
    sim_config.fill = number("SIMCUDA_FILL", 1);
    sim_config.vmm_us = number("SIMCUDA_VMM_US", 0);
    sim_config.copy_mib_s = number("SIMCUDA_COPY_MIB_S", 0);
    sim_config.pin_us_mib = number("SIMCUDA_PIN_US_MIB", 0);
    sim_config.drains = number("SIMCUDA_DRAINS", 0);
    sim_config.first = number("SIMCUDA_FIRST", 0);
    const char *fail = getenv("SIMCUDA_FAIL"), *log = getenv("SIMCUDA_LOG"), *asked = getenv("SIMCUDA_ASKED");
    if (fail) inject_parse(fail);
    if (log) journal_open(log);
    if (asked) journal_open_requests(asked);
}

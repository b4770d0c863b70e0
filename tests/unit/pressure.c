// The tests check when memory counts as short: how the settings and the kernel's texts (of cgroups and /proc) are read,
// and how much memory is missing.
#include <criterion/criterion.h>
#include <string.h>

#include "preload/shared/pressure.h"

static const uint64_t KIB = 1024, GIB = (uint64_t)1 << 30;

Test(pressure, settings) {
    static const struct {
        const char *text;
        struct pressure_wishes wishes;
    } good[] = {
        {"90%", {.any = true, .most_used = 90}},
        {"100%", {.any = true, .most_used = 100}},
        {"4096", {.any = true, .least_left = 4096}},
        {"512K", {.any = true, .least_left = 512 << 10}},
        {"4G", {.any = true, .least_left = (uint64_t)4 << 30}},
        {"1T", {.any = true, .least_left = (uint64_t)1 << 40}},
        {"psi:20%", {.any = true, .most_stalled = 2000}},
        {"90%,kept", {.any = true, .most_used = 90, .take_kept = true}},
        {"kept,psi:5%,2G,80%",
         {.any = true, .most_used = 80, .least_left = (uint64_t)2 << 30, .most_stalled = 500, .take_kept = true}},
    };
    static const char *const bad[] = {"",
                                      "kept",
                                      "0",
                                      "0%",
                                      "101%",
                                      "%",
                                      "G",
                                      "-1",
                                      "1.5G",
                                      "4GB",
                                      "4 G",
                                      "90%,",
                                      ",90%",
                                      "90%,,4G",
                                      "psi:",
                                      "psi:20",
                                      "psi:0%",
                                      "keep",
                                      "90%kept",
                                      "18446744073709551616",
                                      "99999999999T",
                                      "nonsense"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct pressure_wishes found = {0};
        cr_expect(pressure_parse(good[i].text, &found), "%s", good[i].text);
        cr_expect(found.any && found.most_used == good[i].wishes.most_used &&
                      found.least_left == good[i].wishes.least_left &&
                      found.most_stalled == good[i].wishes.most_stalled && found.take_kept == good[i].wishes.take_kept,
                  "%s", good[i].text);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct pressure_wishes found = {.any = true, .most_used = 1, .take_kept = true, .idle_ns = 5};
        cr_expect_not(pressure_parse(bad[i], &found), "%s", bad[i]);
        cr_expect(!found.any && !found.most_used && !found.take_kept && found.idle_ns == 5, "%s sets nothing", bad[i]);
    }
}

Test(pressure, idle_time) {
    static const char *const bad[] = {"", "0", "-1", "1.5", "5m", "18446744073709551615", "99999999999999999999999"};
    struct pressure_wishes found = {.any = true};
    cr_expect(pressure_parse_idle("300", &found) && found.idle_ns == 300000000000 && found.any);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_expect(!pressure_parse_idle(bad[i], &found) && !found.idle_ns, "%s", bad[i]);
}

Test(pressure, numbers_of_a_cgroup) {
    uint64_t number;
    cr_expect(pressure_number("17179869184\n", &number) && number == 16 * GIB);
    cr_expect(pressure_number("0\n", &number) && number == 0);
    cr_expect(pressure_number("max\n", &number) && number == PRESSURE_NO_LIMIT);
    cr_expect(pressure_number("9223372036854771712\n", &number) && number == PRESSURE_NO_LIMIT, "version 1's no limit");
    static const char *const bad[] = {"", "\n", "maximum", "12x", "-1\n", "99999999999999999999\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) cr_expect_not(pressure_number(bad[i], &number), "%s", bad[i]);
}

Test(pressure, fields) {
    static const char meminfo[] =
        "MemTotal:       16384256 kB\nMemFree:          214748 kB\nMemAvailable:   12058624 kB\n"
        "HugePages_Total:       3\n";
    static const char stat[] = "anon 1056768\nfile 4096000\nkernel 1\ninactive_anon 7\ninactive_file 2048000\n"
                               "total_inactive_file 5\n";
    uint64_t bytes = 7;
    cr_expect(pressure_field(meminfo, "MemTotal", &bytes) && bytes == 16384256 * KIB);
    cr_expect(pressure_field(meminfo, "MemAvailable", &bytes) && bytes == 12058624 * KIB);
    cr_expect(pressure_field(meminfo, "HugePages_Total", &bytes) && bytes == 3);
    cr_expect(pressure_field(stat, "inactive_file", &bytes) && bytes == 2048000);
    cr_expect(pressure_field(stat, "total_inactive_file", &bytes) && bytes == 5);
    cr_expect_not(pressure_field(stat, "inactive", &bytes), "a name is whole");
    cr_expect_not(pressure_field(meminfo, "SwapFree", &bytes));
    cr_expect_not(pressure_field("", "MemTotal", &bytes));
    cr_expect_not(pressure_field("MemTotal: lots", "MemTotal", &bytes));
    cr_expect(pressure_field("a 1\nMemTotal: 18446744073709551615 kB", "MemTotal", &bytes) && bytes == UINT64_MAX);
}

Test(pressure, tasks_that_wait) {
    cr_expect_eq(
        pressure_stalled("some avg10=12.34 avg60=5.60 avg300=1.23 total=123456\nfull avg10=99.99 avg60=0.00\n"), 1234);
    cr_expect_eq(pressure_stalled("some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"), 0);
    cr_expect_eq(pressure_stalled("some avg10=100.00 avg60"), 10000);
    cr_expect_eq(pressure_stalled("some avg10=7.05 "), 705);
    static const char *const none[] = {"", "full avg10=5.00", "some avg60=5.00", "some avg10=", "some avg10=999.00"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) cr_expect_eq(pressure_stalled(none[i]), 0, "%s", none[i]);
}

static void expect_cgroup(const char *text, const char *path, bool version1) {
    char found[64] = "";
    bool old = !version1;
    cr_expect_eq(pressure_cgroup(text, found, sizeof found, &old), path != NULL, "%s", text);
    if (path) cr_expect(strcmp(found, path) == 0 && old == version1, "%s: %s", text, found);
}

Test(pressure, the_cgroup_of_a_process) {
    expect_cgroup("0::/\n", "/", false);
    expect_cgroup("0::/user.slice/user-1000.slice/session-2.scope\n", "/user.slice/user-1000.slice/session-2.scope",
                  false);
    expect_cgroup("12:cpu,cpuacct:/docker/ab\n5:memory:/docker/cd\n0::/system.slice\n", "/docker/cd", true);
    expect_cgroup("0::/unified\n5:hugetlb,memory:/old\n", "/old", true);
    expect_cgroup("3:memoryless,xmemory:/no\n1:name=systemd:/init\n0::/yes:with:colons\n", "/yes:with:colons", false);
    expect_cgroup("0::/../../outside\n", "/../../outside", false);
    expect_cgroup("3:cpu:/only\n", NULL, false);
    expect_cgroup("", NULL, false);
    expect_cgroup("nonsense\n::\n", NULL, false);
    expect_cgroup("0::/123456789012345678901234567890123456789012345678901234567890123\n", NULL, false);
}

Test(pressure, what_is_missing) {
    struct pressure_wishes percent = {.any = true, .most_used = 90}, left = {.any = true, .least_left = GIB};
    struct pressure_wishes both = {.any = true, .most_used = 90, .least_left = 2 * GIB};
    cr_expect_eq(pressure_missing(&percent, 1000, 900), 0);
    cr_expect_eq(pressure_missing(&percent, 1000, 901), 1);
    cr_expect_eq(pressure_missing(&percent, 1000, 2000), 1100);
    cr_expect_eq(pressure_missing(&left, 4 * GIB, 3 * GIB), 0);
    cr_expect_eq(pressure_missing(&left, 4 * GIB, 3 * GIB + 5), 5);
    cr_expect_eq(pressure_missing(&left, 4 * GIB, 5 * GIB), GIB);
    cr_expect_eq(pressure_missing(&both, 10 * GIB, 9 * GIB), GIB, "the tighter one counts");
    cr_expect_eq(pressure_missing(&both, PRESSURE_NO_LIMIT, UINT64_MAX), 0);
    cr_expect_eq(pressure_missing(&(struct pressure_wishes){0}, 1, UINT64_MAX), 0);
    cr_expect_eq(pressure_missing(&percent, 0, UINT64_MAX), UINT64_MAX);
}

/* On this machine: without a wish nothing is missing. If the wish is to leave more memory than the machine has, most of
 * the wished memory is missing. */
Test(pressure, of_this_machine) {
    const char *text;
    cr_expect_eq(pressure_wish("", ""), 0);
    cr_expect_eq(pressure_needed(&text), 0);
    cr_expect_eq(pressure_wish("1000000G", "7"), 0);
    cr_expect_gt(pressure_needed(&text), 900000 * GIB);
    cr_expect_str_eq(text, "too much memory is in use");
    cr_expect_eq(pressure_wishes()->idle_ns, 7000000000);
    cr_expect_eq(pressure_wish("lots", "7"), PRESSURE_UNREADABLE);
    cr_expect(!pressure_wishes()->any && pressure_wishes()->idle_ns);
    cr_expect_eq(pressure_wish("1%", "nonsense"), PRESSURE_IDLE_UNREADABLE);
    cr_expect_gt(pressure_needed(&text), 0, "less than 1 %% of a machine is in use");
    cr_expect_eq(pressure_wishes()->idle_ns, 0);
    uint64_t left = pressure_left();
    cr_expect(left > 0 && left < 900000 * GIB);
}

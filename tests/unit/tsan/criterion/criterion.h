/* criterion.h — the part of Criterion that our unit tests use, for the preset tsan only, because Criterion maps memory
 * at fixed addresses where ThreadSanitizer keeps its shadow. Each test runs in a forked child, one after the other. In:
 * Test() and cr_*, as in Criterion. Out: a line for each failure; exit status 1 if there is one. */
#ifndef MEMSTOW_TSAN_CRITERION_H
#define MEMSTOW_TSAN_CRITERION_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct small_test {
    const char *suite, *name;
    void (*body)(void);
    void (*init)(void), (*fini)(void);
    int signal, exit_code, disabled;
    double timeout;
    const char *description;
    struct small_test *next;
};

struct small_suite {
    const char *name;
    void (*init)(void);
    struct small_suite *next;
};

static struct small_test *small_tests;
static struct small_suite *small_suites;
static int small_failures;

#define Test(suite_name, test_name, ...)                                                                               \
    static void suite_name##_##test_name##_body(void);                                                                 \
    static struct small_test suite_name##_##test_name = {                                                              \
        .suite = #suite_name, .name = #test_name, .body = suite_name##_##test_name##_body, ##__VA_ARGS__};             \
    __attribute__((constructor)) static void suite_name##_##test_name##_register(void) {                               \
        suite_name##_##test_name.next = small_tests;                                                                   \
        small_tests = &suite_name##_##test_name;                                                                       \
    }                                                                                                                  \
    static void suite_name##_##test_name##_body(void)

#define TestSuite(suite_name, ...)                                                                                     \
    static struct small_suite suite_name##_suite = {.name = #suite_name, ##__VA_ARGS__};                               \
    __attribute__((constructor)) static void suite_name##_suite_register(void) {                                       \
        suite_name##_suite.next = small_suites;                                                                        \
        small_suites = &suite_name##_suite;                                                                            \
    }                                                                                                                  \
    struct small_suite

__attribute__((format(printf, 5, 6))) static inline void small_check(int holds, int fatal, const char *where,
                                                                     const char *what, const char *format, ...) {
    if (holds) return;
    small_failures++;
    fprintf(stderr, "%s: not so: %s ", where, what);
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    if (fatal) exit(1);
}

#define SMALL_TEXT_(x) #x
#define SMALL_TEXT(x) SMALL_TEXT_(x)
#define SMALL_CHECK(fatal, holds, what, ...)                                                                           \
    small_check(!!(holds), fatal, __FILE__ ":" SMALL_TEXT(__LINE__), what, " " __VA_ARGS__)

#define cr_assert(c, ...) SMALL_CHECK(1, c, #c, __VA_ARGS__)
#define cr_assert_not(c, ...) SMALL_CHECK(1, !(c), "!" #c, __VA_ARGS__)
#define cr_assert_eq(a, b, ...) SMALL_CHECK(1, (a) == (b), #a " == " #b, __VA_ARGS__)
#define cr_assert_neq(a, b, ...) SMALL_CHECK(1, (a) != (b), #a " != " #b, __VA_ARGS__)
#define cr_assert_lt(a, b, ...) SMALL_CHECK(1, (a) < (b), #a " < " #b, __VA_ARGS__)
#define cr_assert_leq(a, b, ...) SMALL_CHECK(1, (a) <= (b), #a " <= " #b, __VA_ARGS__)
#define cr_assert_gt(a, b, ...) SMALL_CHECK(1, (a) > (b), #a " > " #b, __VA_ARGS__)
#define cr_assert_geq(a, b, ...) SMALL_CHECK(1, (a) >= (b), #a " >= " #b, __VA_ARGS__)
#define cr_assert_null(p, ...) SMALL_CHECK(1, !(p), #p " is NULL", __VA_ARGS__)
#define cr_assert_not_null(p, ...) SMALL_CHECK(1, (p) != NULL, #p " is not NULL", __VA_ARGS__)
#define cr_assert_str_eq(a, b, ...) SMALL_CHECK(1, !strcmp(a, b), #a " is " #b, __VA_ARGS__)
#define cr_expect(c, ...) SMALL_CHECK(0, c, #c, __VA_ARGS__)
#define cr_expect_not(c, ...) SMALL_CHECK(0, !(c), "!" #c, __VA_ARGS__)
#define cr_expect_eq(a, b, ...) SMALL_CHECK(0, (a) == (b), #a " == " #b, __VA_ARGS__)
#define cr_expect_neq(a, b, ...) SMALL_CHECK(0, (a) != (b), #a " != " #b, __VA_ARGS__)
#define cr_expect_lt(a, b, ...) SMALL_CHECK(0, (a) < (b), #a " < " #b, __VA_ARGS__)
#define cr_expect_leq(a, b, ...) SMALL_CHECK(0, (a) <= (b), #a " <= " #b, __VA_ARGS__)
#define cr_expect_gt(a, b, ...) SMALL_CHECK(0, (a) > (b), #a " > " #b, __VA_ARGS__)
#define cr_expect_geq(a, b, ...) SMALL_CHECK(0, (a) >= (b), #a " >= " #b, __VA_ARGS__)
#define cr_expect_null(p, ...) SMALL_CHECK(0, !(p), #p " is NULL", __VA_ARGS__)
#define cr_expect_float_eq(a, b, e, ...) SMALL_CHECK(0, (a) - (b) <= (e) && (b) - (a) <= (e), #a " == " #b, __VA_ARGS__)
#define cr_expect_arr_eq(a, b, n, ...) SMALL_CHECK(0, !memcmp(a, b, n), #a " == " #b, __VA_ARGS__)
#define cr_expect_str_empty(a, ...) SMALL_CHECK(0, !*(a), #a " is empty", __VA_ARGS__)
#define cr_expect_str_eq(a, b, ...) SMALL_CHECK(0, !strcmp(a, b), #a " is " #b, __VA_ARGS__)

#define cr_skip cr_skip_test
#define cr_skip_test(...) (fprintf(stderr, "skipped: " __VA_ARGS__), fputc('\n', stderr), exit(0))

static inline void small_child(const struct small_test *test) {
    for (const struct small_suite *suite = small_suites; suite; suite = suite->next)
        if (!strcmp(suite->name, test->suite) && suite->init) suite->init();
    if (test->init) test->init();
    test->body();
    if (test->fini) test->fini();
    exit(small_failures ? 1 : 0);
}

/* Whether the test ended as expected: by itself with its exit code, or by its signal. */
static inline int small_run(const struct small_test *test) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) small_child(test);
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child) return 0;
    if (test->signal) return WIFSIGNALED(status) && WTERMSIG(status) == test->signal;
    return WIFEXITED(status) && WEXITSTATUS(status) == test->exit_code;
}

int main(void) {
    int failed = 0;
    for (const struct small_test *test = small_tests; test; test = test->next) {
        if (test->disabled || small_run(test)) continue;
        printf("failed: %s::%s\n", test->suite, test->name);
        failed = 1;
    }
    return failed;
}

#endif

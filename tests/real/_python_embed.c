/* A program that opens two libpythons, each with RTLD_LOCAL. Python in one calls Python in the other, which calls the
 * first again. With one libpython only, the program opens and closes it three times. argv: path and home of the first
 * libpython, then path and home of the second. Prints the frames that are seen. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <wchar.h>

long probe_chain(char *to, size_t room);
unsigned long probe_lost(void);
void probe_code_moved(void);

struct method {
    const char *name;
    void *(*function)(void *, void *);
    int flags;
    const char *documentation;
};
enum { NO_ARGUMENTS = 4 };

static struct python {
    void *handle;
    int (*run)(const char *);
    void *(*integer)(long);
} pythons[2];

static int depth, count;

static void *step(int from) {
    if (depth++ < 3) {
        pythons[(from + 1) % count].run("outer()");
    } else {
        static char text[1 << 16];
        printf("%ld frames\n", probe_chain(text, sizeof text));
        printf("%s", text);
    }
    return pythons[from].integer(0);
}
static void *step_0(void *self, void *none) { return (void)self, (void)none, step(0); }
static void *step_1(void *self, void *none) { return (void)self, (void)none, step(1); }
static struct method methods[2] = {{"step", step_0, NO_ARGUMENTS, NULL}, {"step", step_1, NO_ARGUMENTS, NULL}};

static void open_python(int i, const char *library, const char *home) {
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    pythons[i].handle = handle;
    static wchar_t wide[2][1000];
    mbstowcs(wide[i], home, 999);
    *(int *)dlsym(handle, "Py_NoSiteFlag") = 1;
    ((void (*)(const wchar_t *))dlsym(handle, "Py_SetPythonHome"))(wide[i]);
    ((void (*)(int))dlsym(handle, "Py_InitializeEx"))(0);
    pythons[i].run = (int (*)(const char *))dlsym(handle, "PyRun_SimpleString");
    pythons[i].integer = (void *(*)(long))dlsym(handle, "PyLong_FromLong");
    void *(*new_function)(void *, void *, void *) =
        (void *(*)(void *, void *, void *))dlsym(handle, "PyCFunction_NewEx");
    void *(*module)(const char *) = (void *(*)(const char *))dlsym(handle, "PyImport_AddModule");
    int (*set)(void *, const char *, void *) =
        (int (*)(void *, const char *, void *))dlsym(handle, "PyObject_SetAttrString");
    set(module("__main__"), "step", new_function(&methods[i], NULL, NULL));
    char text[200];
    snprintf(text, sizeof text, "def inner%d(): step()\ndef outer(): list(map(lambda _: inner%d(), [1]))\n", i, i);
    pythons[i].run(text);
}

static void close_python(int i) {
    ((int (*)(void))dlsym(pythons[i].handle, "Py_FinalizeEx"))();
    dlclose(pythons[i].handle);
    probe_code_moved();
}

int main(int argc, char **argv) {
    count = (argc - 1) / 2;
    if (count < 1 || count > 2) return 2;
    for (int round = 0; round < (count == 1 ? 3 : 1); round++) {
        for (int i = 0; i < count; i++) open_python(i, argv[1 + 2 * i], argv[2 + 2 * i]);
        depth = 0;
        pythons[0].run("outer()");
        printf("lost %lu\n", probe_lost());
        if (count == 1) close_python(0);
    }
    return 0;
}

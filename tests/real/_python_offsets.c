/* A program that is compiled with the headers of one Python. It compares offsetof() with
 * preload/stacks/python_layout.c, and prints each difference. argv: the libpython of this Python. */
#define Py_BUILD_CORE 1
#include <Python.h>
#include <dlfcn.h>
#include <stdio.h>

#include "internal/pycore_frame.h"
#include "internal/pycore_interp.h"
#include "internal/pycore_runtime.h"
#include "preload/stacks/python_layout.h"
#if PY_VERSION_HEX >= 0x030e0000
#include "internal/pycore_interpframe_structs.h"
#endif

static int differences;

static void check(const char *what, size_t is, size_t should_be) {
    if (is == should_be) return;
    printf("%s: %zu, by the headers %zu\n", what, is, should_be);
    differences++;
}
#define CHECK(field, type, member) check(#field, layout.field, offsetof(type, member))

int main(int argc, char **argv) {
    struct python_layout layout;
    void *handle = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    void *runtime = handle ? dlsym(handle, "_PyRuntime") : NULL;
    unsigned long *version = handle ? dlsym(handle, "Py_Version") : NULL;
    if (!version || !python_layout((uint32_t)*version, runtime, &layout)) {
        printf("no layout\n");
        return 1;
    }
#if PY_VERSION_HEX < 0x030d0000
    CHECK(thread_head, PyThreadState, cframe);
    CHECK(cframe_frame, _PyCFrame, current_frame);
    CHECK(cframe_previous, _PyCFrame, previous);
    CHECK(frame_code, _PyInterpreterFrame, f_code);
    CHECK(frame_instruction, _PyInterpreterFrame, prev_instr);
#else
    CHECK(thread_head, PyThreadState, current_frame);
    CHECK(frame_code, _PyInterpreterFrame, f_executable);
    CHECK(frame_instruction, _PyInterpreterFrame, instr_ptr);
    check("cframe_previous", layout.cframe_previous, 0);
#endif
#if PY_VERSION_HEX < 0x030c0000
    CHECK(frame_is_entry, _PyInterpreterFrame, is_entry);
#else
    check("frame_is_entry", layout.frame_is_entry, 0);
#endif
#if PY_VERSION_HEX >= 0x030e0000
    check("entry_owner", layout.entry_owner, FRAME_OWNED_BY_INTERPRETER);
#elif PY_VERSION_HEX >= 0x030c0000
    check("entry_owner", layout.entry_owner, FRAME_OWNED_BY_CSTACK);
#endif
    CHECK(thread_id, PyThreadState, thread_id);
    CHECK(frame_previous, _PyInterpreterFrame, previous);
    CHECK(frame_owner, _PyInterpreterFrame, owner);
    CHECK(code_file, PyCodeObject, co_filename);
    CHECK(code_name, PyCodeObject, co_qualname);
    CHECK(code_first_line, PyCodeObject, co_firstlineno);
    CHECK(code_lines, PyCodeObject, co_linetable);
    CHECK(code_first_traceable, PyCodeObject, _co_firsttraceable);
    CHECK(code_start, PyCodeObject, co_code_adaptive);
    CHECK(object_type, PyObject, ob_type);
    CHECK(object_size, PyVarObject, ob_size);
    CHECK(type_dealloc, PyTypeObject, tp_dealloc);
    CHECK(bytes_start, PyBytesObject, ob_sval);
    CHECK(text_length, PyASCIIObject, length);
    CHECK(text_state, PyASCIIObject, state);
    CHECK(runtime_finalizing, _PyRuntimeState, _finalizing);
    check("text_ascii", layout.text_ascii, sizeof(PyASCIIObject));
    check("text_other", layout.text_other, sizeof(PyCompactUnicodeObject));
    check("PYTHON_GENERATOR_OWNER", PYTHON_GENERATOR_OWNER, FRAME_OWNED_BY_GENERATOR);
    PyASCIIObject text = {0};
    text.state.kind = 4;
    text.state.ascii = 1;
    text.state.compact = 1;
    check("text_kind_shift", *(uint32_t *)((char *)&text + layout.text_state) >> layout.text_kind_shift & 31,
          4 | 8 | 16);
    return differences != 0;
}

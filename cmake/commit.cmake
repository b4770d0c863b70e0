# cmake -D OUT=FILE -P commit.cmake: writes the commit of this tree as a C header, when it is another than before. A
# tree without git says so.
set(failed TRUE)
if(EXISTS ${CMAKE_CURRENT_LIST_DIR}/../.git) # git looks further up, where another tree's may be
    execute_process(COMMAND git -C ${CMAKE_CURRENT_LIST_DIR} describe --always --abbrev=12 --dirty --exclude=*
        OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
endif()
if(failed)
    set(commit "unknown: not built from a git checkout")
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT "#define MEMSTOW_COMMIT \"@commit@\"\n" @ONLY)

# cmake -D OUT=FILE -P commit.cmake: writes the commit of this tree as a C header, unless FILE has this commit already.
# For a tree without git, the header says so.
set(failed TRUE)
if(EXISTS ${CMAKE_CURRENT_LIST_DIR}/../.git) # git also looks in the folders above, which may be another repository's
    execute_process(COMMAND git -C ${CMAKE_CURRENT_LIST_DIR} describe --always --abbrev=12 --dirty --exclude=*
        OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
endif()
if(failed)
    set(commit "unknown: not built from a git checkout")
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT "#define MEMSTOW_COMMIT \"@commit@\"\n" @ONLY)

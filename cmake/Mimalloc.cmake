# mimalloc 3.4 is linked into libmemstow.so as one object. Only its mi_* names are global, because its malloc, free and
# operator new must not meet ours; memstow.map keeps the mi_* names inside the library. The object's constructors are
# removed, so that a process that does not use mimalloc does not pay for it. Before memstow uses mimalloc, it calls
# _mi_auto_process_init, as the constructors would. Without that call each page of mimalloc's would be a mapping of its
# own. If mimalloc is not found, the build goes on, and the library says that it has none.
foreach(folder IN LISTS CMAKE_PREFIX_PATH) # for a wheel, pip has put mimalloc beside the build's tools
    if(SKBUILD AND EXISTS ${folder}/cmeel.prefix)
        set(MIMALLOC_ROOT ${folder}/cmeel.prefix)
    endif()
endforeach()
file(GLOB mimalloc_archive ${MIMALLOC_ROOT}/lib/mimalloc-3.*/libmimalloc.a)
file(GLOB mimalloc_include ${MIMALLOC_ROOT}/include/mimalloc-3.*)
set(MEMSTOW_HAVE_MIMALLOC OFF)
if(mimalloc_archive AND mimalloc_include)
    set(MEMSTOW_HAVE_MIMALLOC ON)
    set(mimalloc_object ${CMAKE_BINARY_DIR}/mimalloc.o)
    set(mimalloc_calls "")
    foreach(name abort clock clock_gettime fputs getenv getrusage madvise mmap mprotect munmap pathconf prctl
            pthread_key_create pthread_key_delete pthread_mutex_destroy pthread_mutex_lock pthread_mutex_unlock
            pthread_setspecific realpath sleep strtol syscall sysconf sysinfo)
        list(APPEND mimalloc_calls --redefine-sym ${name}=mimalloc_${name})
    endforeach()
    add_custom_command(OUTPUT ${mimalloc_object}
        COMMAND ${CMAKE_LINKER} -r --whole-archive ${mimalloc_archive} -o ${mimalloc_object}
        COMMAND ${CMAKE_OBJCOPY} --wildcard --keep-global-symbol=mi_* --keep-global-symbol=_mi_auto_process_init
            --remove-section=.init_array --remove-section=.fini_array ${mimalloc_calls} ${mimalloc_object}
        DEPENDS ${mimalloc_archive} VERBATIM COMMENT "One object of mimalloc, only mi_* global")
    message(STATUS "mimalloc: ${mimalloc_archive}")
else()
    message(STATUS "mimalloc: not in ${MIMALLOC_ROOT}; building without --allocator=mimalloc")
endif()

function(memstow_link_mimalloc target)
    if(MEMSTOW_HAVE_MIMALLOC)
        target_sources(${target} PRIVATE ${mimalloc_object})
        set_source_files_properties(${mimalloc_object} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
        target_include_directories(${target} SYSTEM PRIVATE ${mimalloc_include})
        target_compile_definitions(${target} PRIVATE MEMSTOW_MIMALLOC=1)
    endif()
endfunction()

# The command with private copies of the libraries that it is linked with, so that it runs where they are not installed.
# They lie in lib/memstow, each with its licence where Debian's package has it, and find one another there.
find_program(PATCHELF patchelf REQUIRED)
set(bundle ${CMAKE_INSTALL_LIBDIR}/memstow)
# In a wheel, bin and lib are not side by side until it is installed; auditwheel looks before.
set_target_properties(memstow PROPERTIES INSTALL_RPATH "$ORIGIN/../lib/memstow;$ORIGIN/../data/lib/memstow")
install(TARGETS memstow RUNTIME_DEPENDENCY_SET memstow_needs RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(RUNTIME_DEPENDENCY_SET memstow_needs DESTINATION ${bundle}
    PRE_EXCLUDE_REGEXES "^lib(c|m|dl|rt|pthread)\\.so" "^ld-linux")
install(CODE "
    set(bundle \"\$ENV{DESTDIR}${bundle}\")
    file(GLOB links \"\${bundle}/*.so*\")
    foreach(link IN LISTS links) # one file each, by the name that is asked for: a wheel holds no links
        if(IS_SYMLINK \${link})
            file(REAL_PATH \${link} library)
            file(RENAME \${library} \${link})
        endif()
    endforeach()
    file(GLOB libraries \"\${bundle}/*.so*\")
    foreach(library IN LISTS libraries)
        execute_process(COMMAND ${PATCHELF} --set-rpath \$ORIGIN \${library} COMMAND_ERROR_IS_FATAL ANY)
        get_filename_component(name \${library} NAME)
        execute_process(COMMAND dpkg-query --search */\${name} OUTPUT_VARIABLE owner RESULT_VARIABLE failed ERROR_QUIET)
        string(REGEX REPLACE \"^([^:]+):.*\" \"\\\\1\" package \"\${owner}\")
        set(copyright /usr/share/doc/\${package}/copyright)
        if(failed OR NOT EXISTS \${copyright})
            message(WARNING \"the licence of \${name} was not found\")
        else()
            file(COPY_FILE \${copyright} \"\${bundle}/\${package}.copyright\")
        endif()
    endforeach()")

# Installs the command with private copies of the libraries that it is linked with, so that the command runs where these
# libraries are not installed. The copies lie in lib/memstow and find one another there. Beside each copy lies its
# copyright file, if Debian's package of the library has one. The copyright file of libiberty lies there, too, because
# libiberty is linked into the command itself. Some of these files only name a licence, such as the LGPL; the text of
# that licence is then in common-licenses.
find_program(PATCHELF patchelf REQUIRED)
set(bundle ${CMAKE_INSTALL_LIBDIR}/memstow)
# The second path is for auditwheel: in a wheel that is not installed yet, lib is in the folder data beside the
# command's folder.
set_target_properties(memstow PROPERTIES INSTALL_RPATH "$ORIGIN/../lib/memstow;$ORIGIN/../data/lib/memstow")
install(TARGETS memstow RUNTIME_DEPENDENCY_SET memstow_needs RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(RUNTIME_DEPENDENCY_SET memstow_needs DESTINATION ${bundle}
    PRE_EXCLUDE_REGEXES "^lib(c|m|dl|rt|pthread)\\.so" "^ld-linux")
install(CODE "
    set(bundle \"${bundle}\")
    cmake_path(ABSOLUTE_PATH bundle BASE_DIRECTORY \"\${CMAKE_INSTALL_PREFIX}\")
    set(bundle \"\$ENV{DESTDIR}\${bundle}\")
    file(GLOB links \"\${bundle}/*.so*\")
    foreach(link IN LISTS links) # one file each, by the name that is asked for: a wheel holds no links
        if(IS_SYMLINK \${link})
            file(REAL_PATH \${link} library)
            file(RENAME \${library} \${link})
        endif()
    endforeach()
    file(GLOB libraries \"\${bundle}/*.so*\")
    if(NOT libraries)
        message(FATAL_ERROR \"no library of the command is in \${bundle}\")
    endif()
    foreach(library IN LISTS libraries)
        execute_process(COMMAND ${PATCHELF} --set-rpath \$ORIGIN \${library} COMMAND_ERROR_IS_FATAL ANY)
    endforeach()
    foreach(library IN LISTS libraries ITEMS ${IBERTY})
        get_filename_component(name \${library} NAME)
        execute_process(COMMAND dpkg-query --search */\${name} OUTPUT_VARIABLE owner RESULT_VARIABLE failed ERROR_QUIET)
        string(REGEX REPLACE \"^([^:]+):.*\" \"\\\\1\" package \"\${owner}\")
        set(copyright /usr/share/doc/\${package}/copyright)
        if(failed OR NOT EXISTS \${copyright})
            message(WARNING \"the licence of \${name} was not found\")
            continue()
        endif()
        file(COPY_FILE \${copyright} \"\${bundle}/\${name}.copyright\")
        file(READ \${copyright} text)
        string(REGEX MATCHALL \"/usr/share/common-licenses/[A-Za-z0-9.-]*[A-Za-z0-9]\" licences \"\${text}\")
        foreach(licence IN LISTS licences)
            get_filename_component(name \${licence} NAME)
            file(MAKE_DIRECTORY \"\${bundle}/common-licenses\")
            file(COPY_FILE \${licence} \"\${bundle}/common-licenses/\${name}\")
        endforeach()
    endforeach()")

# Adds to the package what Debian asks for and CMakeLists.txt does not install: copyright, changelog, man pages in
# compressed form, and reasons for what lintian would warn of. CPack runs this before it makes a package.
if(NOT CPACK_GENERATOR STREQUAL "DEB")
    return()
endif()
set(root ${CPACK_TEMPORARY_DIRECTORY}${CPACK_PACKAGING_INSTALL_PREFIX})
set(documents ${root}/share/doc/${CPACK_PACKAGE_NAME})
file(MAKE_DIRECTORY ${documents} ${root}/share/lintian/overrides)
file(COPY_FILE ${CMAKE_CURRENT_LIST_DIR}/debian.copyright ${documents}/copyright)
file(COPY_FILE ${CMAKE_CURRENT_LIST_DIR}/debian.overrides ${root}/share/lintian/overrides/${CPACK_PACKAGE_NAME})
file(COPY_FILE ${CMAKE_CURRENT_LIST_DIR}/../CHANGELOG.md ${documents}/CHANGELOG.md)
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC) # of SOURCE_DATE_EPOCH, if that is set
file(WRITE ${documents}/changelog "${CPACK_PACKAGE_NAME} (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium

  * /usr/share/doc/${CPACK_PACKAGE_NAME}/CHANGELOG.md.gz has the changes of each version.

 -- ${CPACK_PACKAGE_CONTACT} <>  ${date}
")
file(GLOB pages ${root}/share/man/man1/*.1)
foreach(page IN LISTS pages)
    if(IS_SYMLINK ${page})
        file(READ_SYMLINK ${page} other)
        file(CREATE_LINK ${other}.gz ${page}.gz SYMBOLIC)
        file(REMOVE ${page})
    endif()
endforeach()
file(GLOB pages ${root}/share/man/man1/*.1)
execute_process(COMMAND gzip -9n ${documents}/changelog ${documents}/CHANGELOG.md ${pages} COMMAND_ERROR_IS_FATAL ANY)

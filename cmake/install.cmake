# Programs, libraries, headers, a CMake package and a pkg-config file. All of it
# is found relative to itself, so that an installed tree may be moved.
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/gradc)
install(FILES runtime/gradc.h runtime/abi.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/gradc)
install(TARGETS gradc runtime-static runtime-shared EXPORT gradcTargets
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT gradcTargets NAMESPACE gradc:: DESTINATION ${package})

configure_package_config_file(cmake/gradcConfig.cmake.in ${generated}/gradcConfig.cmake
    INSTALL_DESTINATION ${package})
write_basic_package_version_file(${generated}/gradcConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${generated}/gradcConfig.cmake ${generated}/gradcConfigVersion.cmake
    cmake/gradc_add_model.cmake DESTINATION ${package})

file(RELATIVE_PATH pc_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" pc_prefix "${pc_prefix}")
configure_file(cmake/gradc.pc.in ${generated}/gradc.pc @ONLY)
install(FILES ${generated}/gradc.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

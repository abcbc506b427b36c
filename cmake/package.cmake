# `cmake --install`: a package for find_package(blockcanary CONFIG) and for pkg-config, which may be moved as a whole.
#
#   BLOCKCANARY_INSTALL   install rules; ON when the project is built by itself.

option(BLOCKCANARY_INSTALL "Generate install rules" ${BLOCKCANARY_IS_TOP_LEVEL})
if(NOT BLOCKCANARY_INSTALL)
  return()
endif()
include(CMakePackageConfigHelpers)

set(folder "${CMAKE_INSTALL_LIBDIR}/cmake/blockcanary")
install(FILES include/blockcanary.h include/blockcanary.hpp DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(TARGETS blockcanary_noop EXPORT blockcanaryTargets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
if(BLOCKCANARY_WANTED)
  install(FILES "${BLOCKCANARY_ARCHIVE}" DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  install(TARGETS blockcanary_live EXPORT blockcanaryTargets)
endif()
install(EXPORT blockcanaryTargets NAMESPACE blockcanary:: DESTINATION "${folder}")
install(FILES cmake/choice.cmake cmake/interpose.cmake DESTINATION "${folder}")
install(FILES c/interpose/looper.c DESTINATION "${folder}" RENAME interpose_looper.c)

configure_package_config_file(cmake/blockcanaryConfig.cmake.in blockcanaryConfig.cmake INSTALL_DESTINATION "${folder}")
# Before 1.0 a new minor version may change the interface.
write_basic_package_version_file(blockcanaryConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/blockcanaryConfig.cmake"
  "${CMAKE_CURRENT_BINARY_DIR}/blockcanaryConfigVersion.cmake" DESTINATION "${folder}")

# pkg-config finds everything from where its own file lies.
function(pkg_config NAME DESCRIPTION LIBRARY LIBRARIES ENABLED)
  file(RELATIVE_PATH PREFIX_FOLDER "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
  file(RELATIVE_PATH LIB_FOLDER "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_FULL_LIBDIR}")
  file(RELATIVE_PATH INCLUDE_FOLDER "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_FULL_INCLUDEDIR}")
  configure_file(cmake/blockcanary.pc.in "${NAME}.pc" @ONLY)
  install(FILES "${CMAKE_CURRENT_BINARY_DIR}/${NAME}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endfunction()
if(BLOCKCANARY_WANTED)
  set(libraries "")
  if(NOT ANDROID)
    set(libraries "-pthread -Wl,--eh-frame-hdr")
    foreach(library IN LISTS CMAKE_DL_LIBS)
      string(APPEND libraries " -l${library}")
    endforeach()
  endif()
  pkg_config(blockcanary "Finds out why a game froze" blockcanary "${libraries}" 1)
endif()
pkg_config(blockcanary-noop "The interface of blockcanary, which does nothing" blockcanary_noop "" 0)

# blockcanary::live: the archive and what it is linked with. An INTERFACE library over the archive's path works from every
# directory, however the project was brought in, and in an installed package.

add_library(blockcanary_live INTERFACE)
add_library(blockcanary::live ALIAS blockcanary_live)
add_dependencies(blockcanary_live blockcanary_archive)
target_include_directories(blockcanary_live INTERFACE
  "$<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>" "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(installed "${CMAKE_INSTALL_LIBDIR}")
else()
  set(installed "$<INSTALL_PREFIX>/${CMAKE_INSTALL_LIBDIR}")
endif()
target_link_libraries(blockcanary_live INTERFACE
  "$<BUILD_INTERFACE:${BLOCKCANARY_ARCHIVE}>" "$<INSTALL_INTERFACE:${installed}/libblockcanary.a>")
target_compile_definitions(blockcanary_live INTERFACE BLOCKCANARY_ENABLED=1)
set_target_properties(blockcanary_live PROPERTIES
  EXPORT_NAME live INTERFACE_BLOCKCANARY_KIND live COMPATIBLE_INTERFACE_STRING BLOCKCANARY_KIND)
if(NOT ANDROID)
  set(THREADS_PREFER_PTHREAD_FLAG ON)
  find_package(Threads REQUIRED)
  target_link_libraries(blockcanary_live INTERFACE Threads::Threads ${CMAKE_DL_LIBS})
  # The table that stacks are unwound by. GCC asks for none with -static.
  target_link_options(blockcanary_live INTERFACE "LINKER:--eh-frame-hdr")
endif()

# blockcanary::noop: the interface, and nothing behind it. It needs no cargo.

add_library(blockcanary_noop STATIC c/noop/noop.c c/noop/looper.c)
add_library(blockcanary::noop ALIAS blockcanary_noop)
target_include_directories(blockcanary_noop PUBLIC
  "$<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>" "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
target_compile_definitions(blockcanary_noop
  INTERFACE BLOCKCANARY_ENABLED=0 PRIVATE "BLOCKCANARY_VERSION=\"${PROJECT_VERSION}\"")
set_target_properties(blockcanary_noop PROPERTIES
  EXPORT_NAME noop C_STANDARD 11 POSITION_INDEPENDENT_CODE ON
  INTERFACE_BLOCKCANARY_KIND noop COMPATIBLE_INTERFACE_STRING BLOCKCANARY_KIND)

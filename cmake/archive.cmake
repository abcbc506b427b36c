# The archive: built by cargo in release whatever the configuration of the program, then localised.
#
#   BLOCKCANARY_CARGO        the cargo to use; when not set, the first on PATH, in $CARGO_HOME/bin, in ~/.cargo/bin, or where
#                            the system has programs.
#   BLOCKCANARY_CARGO_ARGS   more arguments for `cargo rustc`, as one would type them.
#   BLOCKCANARY_LOCALISE     ON (default): only bc_* stay global in the archive, so that it links beside other Rust
#                            libraries. Takes ld.lld with llvm-objcopy, or GNU ld with any objcopy; where neither
#                            pair is found the archive stays as cargo leaves it, and CMake says so.
#
# Gives BLOCKCANARY_IS_LOCALISED and BLOCKCANARY_ARCHIVE, made by the target blockcanary_archive.

option(BLOCKCANARY_LOCALISE "Keep only bc_* global in the archive" ON)
if(NOT DEFINED BLOCKCANARY_CARGO_ARGS)
  set(BLOCKCANARY_CARGO_ARGS "" CACHE STRING "More arguments for cargo rustc")
endif()
# A toolchain file for another system must not hide the tools of this one.
set(places "")
if(NOT "$ENV{CARGO_HOME}" STREQUAL "")
  list(APPEND places "$ENV{CARGO_HOME}/bin")
endif()
find_program(BLOCKCANARY_CARGO cargo PATHS ${places} "$ENV{HOME}/.cargo/bin" NO_CMAKE_SYSTEM_PATH NO_CMAKE_FIND_ROOT_PATH)
find_program(BLOCKCANARY_CARGO cargo NO_CMAKE_FIND_ROOT_PATH)
if(NOT BLOCKCANARY_CARGO)
  message(FATAL_ERROR "blockcanary: no cargo found; install Rust (https://rustup.rs), set BLOCKCANARY_CARGO to it, or "
    "build without the library: BLOCKCANARY_ENABLED=OFF")
elseif(NOT EXISTS "${BLOCKCANARY_CARGO}")
  message(FATAL_ERROR "blockcanary: BLOCKCANARY_CARGO is ${BLOCKCANARY_CARGO}, where nothing is")
endif()

set(pair "")
if(BLOCKCANARY_LOCALISE)
  foreach(tool IN ITEMS ld.bfd objcopy ar ld.lld llvm-objcopy llvm-ar)
    string(MAKE_C_IDENTIFIER "BLOCKCANARY_TOOL_${tool}" variable)
    find_program(${variable} ${tool} NO_CMAKE_FIND_ROOT_PATH)
    mark_as_advanced(${variable})
  endforeach()
  # GNU ld where it will do, because it leaves out what is not needed (see build-archive.cmake).
  if(NOT CMAKE_CROSSCOMPILING AND BLOCKCANARY_TOOL_ld_bfd AND BLOCKCANARY_TOOL_objcopy AND BLOCKCANARY_TOOL_ar)
    set(pair "-DLINKER=${BLOCKCANARY_TOOL_ld_bfd}" "-DLINKER_FLAGS=--force-group-allocation"
      "-DOBJCOPY=${BLOCKCANARY_TOOL_objcopy}" "-DAR=${BLOCKCANARY_TOOL_ar}")
  elseif(BLOCKCANARY_TOOL_ld_lld AND BLOCKCANARY_TOOL_llvm_objcopy AND BLOCKCANARY_TOOL_llvm_ar)
    set(pair "-DLINKER=${BLOCKCANARY_TOOL_ld_lld}" "-DOBJCOPY=${BLOCKCANARY_TOOL_llvm_objcopy}"
      "-DAR=${BLOCKCANARY_TOOL_llvm_ar}")
  else()
    message(NOTICE "blockcanary: neither ld.lld with llvm-objcopy nor GNU ld with objcopy found: "
      "the archive is not localised and may not link beside another Rust library")
  endif()
endif()

if(pair)
  set(BLOCKCANARY_IS_LOCALISED ON)
else()
  set(BLOCKCANARY_IS_LOCALISED OFF)
endif()
set(BLOCKCANARY_ARCHIVE "${CMAKE_CURRENT_BINARY_DIR}/${BLOCKCANARY_TRIPLE}/libblockcanary.a")
# cargo alone knows what is stale, so it is asked at every build. The archive is touched only when cargo's has changed,
# so nothing links again without need.
add_custom_target(blockcanary_archive ALL
  COMMAND ${CMAKE_COMMAND}
    "-DCARGO=${BLOCKCANARY_CARGO}" "-DCARGO_ARGS=${BLOCKCANARY_CARGO_ARGS}" "-DTRIPLE=${BLOCKCANARY_TRIPLE}"
    "-DMANIFEST=${CMAKE_CURRENT_SOURCE_DIR}/Cargo.toml" "-DHEADER=${CMAKE_CURRENT_SOURCE_DIR}/include/blockcanary.h"
    "-DTARGET_DIR=${CMAKE_CURRENT_BINARY_DIR}/cargo"
    "-DARCHIVE=${BLOCKCANARY_ARCHIVE}" "-DEMULATION=${BLOCKCANARY_EMULATION}" ${pair}
    -P "${CMAKE_CURRENT_SOURCE_DIR}/cmake/build-archive.cmake"
  BYPRODUCTS "${BLOCKCANARY_ARCHIVE}"
  COMMENT "Building libblockcanary.a (${BLOCKCANARY_TRIPLE})"
  USES_TERMINAL VERBATIM)

# Run by the target blockcanary_archive: cargo build, then localise what it made if it is new.
#
# In:  CARGO CARGO_ARGS TRIPLE MANIFEST HEADER TARGET_DIR EMULATION; LINKER LINKER_FLAGS OBJCOPY AR (none: leave it raw)
# Out: ARCHIVE
cmake_minimum_required(VERSION 3.19)

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    list(GET ARGN 0 program)
    message(FATAL_ERROR "blockcanary: ${program} failed (${result})")
  endif()
endfunction()

# make's job server is not handed down to here, which cargo would complain about.
unset(ENV{MAKEFLAGS})
unset(ENV{MFLAGS})
separate_arguments(arguments UNIX_COMMAND "${CARGO_ARGS}")
# Of a library that is made for Rust programs, too, cargo leaves out what links the whole at once, which makes the archive a
# fifth smaller: so this kind of library is named.
execute_process(COMMAND "${CARGO}" rustc --quiet --release --lib --crate-type staticlib --package blockcanary
  --manifest-path "${MANIFEST}" --target "${TRIPLE}" --target-dir "${TARGET_DIR}" ${arguments} RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  # The commonest reason, which compilers that are not rustup's do not tell.
  get_filename_component(folder "${CARGO}" DIRECTORY)
  execute_process(COMMAND "${folder}/rustc" --print target-libdir --target "${TRIPLE}" OUTPUT_VARIABLE libraries
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE known)
  if(known EQUAL 0 AND NOT EXISTS "${libraries}")
    message(FATAL_ERROR "blockcanary: this Rust cannot build for ${TRIPLE}: install that target, by rustup target add ${TRIPLE}")
  endif()
  message(FATAL_ERROR "blockcanary: ${CARGO} failed (${result})")
endif()
set(raw "${TARGET_DIR}/${TRIPLE}/release/libblockcanary.a")

# What the archive was made of and how; the same again gives the same.
file(SHA256 "${raw}" stamp)
file(SHA256 "${CMAKE_CURRENT_LIST_FILE}" script)
file(SHA256 "${HEADER}" interface)
string(APPEND stamp " ${interface} ${script} ${LINKER} ${LINKER_FLAGS} ${OBJCOPY}")
if(EXISTS "${ARCHIVE}" AND EXISTS "${ARCHIVE}.stamp")
  file(READ "${ARCHIVE}.stamp" previous)
  if(previous STREQUAL stamp)
    return()
  endif()
endif()

get_filename_component(folder "${ARCHIVE}" DIRECTORY)
file(MAKE_DIRECTORY "${folder}")
if(NOT LINKER)
  run("${CMAKE_COMMAND}" -E copy "${raw}" "${ARCHIVE}")
  file(WRITE "${ARCHIVE}.stamp" "${stamp}")
  return()
endif()

# The functions of the interface are those that the header declares. (Asking nm would not do: with LLVM's plugin for
# binutils installed it sees the bitcode that Rust's objects carry instead of their symbols.)
file(READ "${HEADER}" header)
string(REGEX REPLACE "/[*]([^*]|[*]+[^*/])*[*]+/" "" header "${header}")
string(REGEX MATCHALL "[ *]bc_[a-z0-9_]+[(]" symbols "${header}")
list(TRANSFORM symbols REPLACE "[ *(]" "")
list(SORT symbols)
list(REMOVE_DUPLICATES symbols)
if(NOT symbols)
  message(FATAL_ERROR "blockcanary: ${HEADER} declares no bc_* function")
endif()
list(JOIN symbols "\n" lines)
file(WRITE "${folder}/exports.txt" "${lines}\n")
list(TRANSFORM symbols PREPEND "--undefined=" OUTPUT_VARIABLE roots)

# One object of all that the interface needs, in which everything else is local. GNU ld also leaves out what none of it
# needs, so that a program which is linked without --gc-sections is no larger for it; lld's relocatable output would be
# broken by that. The bitcode that precompiled parts of Rust carry would make older tools refuse the object.
set(sections "")
if("${LINKER_FLAGS}" MATCHES "force-group-allocation")
  set(sections --gc-sections)
endif()
set(object "${folder}/blockcanary.o")
run("${LINKER}" -m "${EMULATION}" -r ${LINKER_FLAGS} ${sections} ${roots} "${raw}" -o "${object}")
run("${OBJCOPY}" --remove-section=.llvmbc --remove-section=.llvmcmd
  "--keep-global-symbols=${folder}/exports.txt" "${object}")
file(REMOVE "${ARCHIVE}")
run("${AR}" rcsD "${ARCHIVE}" "${object}")
file(WRITE "${ARCHIVE}.stamp" "${stamp}")

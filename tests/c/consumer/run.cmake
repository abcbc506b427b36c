# Builds a program that uses the library; again: nothing is linked; with a changed Rust source: the program has it.
# In: SOURCE, the repository; WORK, a folder to work in; FETCH
cmake_minimum_required(VERSION 3.19)

# A copy, because its source is changed. Speed of the machine code is not the question here.
set(copy "${WORK}/blockcanary")
file(REMOVE_RECURSE "${copy}" "${WORK}/build")
file(COPY "${SOURCE}/" DESTINATION "${copy}"
  PATTERN ".git" EXCLUDE PATTERN "target" EXCLUDE PATTERN "build" EXCLUDE)
set(ENV{CARGO_PROFILE_RELEASE_LTO} off)
set(ENV{CARGO_PROFILE_RELEASE_OPT_LEVEL} 0)

function(build)
  execute_process(COMMAND "${CMAKE_COMMAND}" --build "${WORK}/build" RESULT_VARIABLE result OUTPUT_VARIABLE output
    ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "building failed:\n${output}")
  endif()
endfunction()

function(expect_version expected)
  execute_process(COMMAND "${WORK}/build/consumer" OUTPUT_VARIABLE version RESULT_VARIABLE result
    OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT result EQUAL 0 OR NOT version STREQUAL expected)
    message(FATAL_ERROR "the program says ${version} (${result}), not ${expected}")
  endif()
endfunction()

execute_process(COMMAND "${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}" -B "${WORK}/build"
  "-DBLOCKCANARY_SOURCE=${copy}" "-DFETCH=${FETCH}" RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "configuring failed:\n${output}")
endif()
build()
file(READ "${copy}/Cargo.toml" manifest)
string(REGEX MATCH "version = \"([0-9.]+)\"" found "${manifest}")
expect_version("${CMAKE_MATCH_1}")

file(TIMESTAMP "${WORK}/build/consumer" linked "%s")
execute_process(COMMAND "${CMAKE_COMMAND}" -E sleep 1.1)
build()
file(TIMESTAMP "${WORK}/build/consumer" linked_again "%s")
if(NOT linked STREQUAL linked_again)
  message(FATAL_ERROR "a build without changes linked the program again")
endif()

string(REPLACE "${found}" "version = \"0.99.7\"" manifest "${manifest}")
file(WRITE "${copy}/Cargo.toml" "${manifest}")
build()
expect_version("0.99.7")

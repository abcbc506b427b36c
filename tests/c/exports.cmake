# The localised archive defines exactly the functions that the header declares, and no other global symbol.
# In: NM ARCHIVE HEADER
cmake_minimum_required(VERSION 3.19)

execute_process(COMMAND "${NM}" --extern-only --defined-only "${ARCHIVE}" OUTPUT_VARIABLE symbols RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${NM} failed on ${ARCHIVE}")
endif()
string(REGEX MATCHALL " [A-Zuvw] [^\n]+" defined "${symbols}")
list(TRANSFORM defined REPLACE " [A-Zuvw] " "")
list(SORT defined)

# A declaration stands at the begin of its line; comments begin with blanks or a slash there.
file(STRINGS "${HEADER}" lines REGEX "^[a-z][^#/]*[ *]bc_[a-z0-9_]+[(]")
set(declared "")
foreach(line IN LISTS lines)
  if(NOT line MATCHES "^typedef" AND line MATCHES "[ *](bc_[a-z0-9_]+)[(]")
    list(APPEND declared "${CMAKE_MATCH_1}")
  endif()
endforeach()
list(SORT declared)

if(NOT declared)
  message(FATAL_ERROR "no function found in ${HEADER}")
endif()
if(NOT "${declared}" STREQUAL "${defined}")
  message(FATAL_ERROR "declared: ${declared}\ndefined:  ${defined}")
endif()

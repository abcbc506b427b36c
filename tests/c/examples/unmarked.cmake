# An example without what its marks say was added compiles, and knows nothing of the library.
# In: SOURCE, WORK, CC, CXX, FLAGS with | between them
cmake_minimum_required(VERSION 3.19)
file(READ "${SOURCE}" text)
get_filename_component(name "${SOURCE}" NAME)
# The comment at the top speaks of the marks.
string(REGEX REPLACE "^(//[^\n]*\n)+" "" text "${text}")
string(REGEX REPLACE "^/[*]([^*]|[*]+[^*/])*[*]+/" "" text "${text}")
# A list would be cut at semicolons.
string(REGEX REPLACE "[^\n]*\\[[+]\\][^\n]*\n" "" text "${text}")
string(REPLACE "// [-] " "" text "${text}")
if(text MATCHES "bc_|blockcanary|telling")
  message(FATAL_ERROR "what is not marked: ${CMAKE_MATCH_0}\n${text}")
endif()
file(WRITE "${WORK}/${name}" "${text}")
if(name MATCHES "cpp$")
  set(compiler "${CXX}" -std=c++14)
else()
  set(compiler "${CC}" -std=c11)
endif()
string(REPLACE "|" ";" flags "${FLAGS}")
execute_process(COMMAND ${compiler} -D_GNU_SOURCE -Wall -Wextra -Werror -fsyntax-only ${flags} "${WORK}/${name}"
  RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "it does not compile without the marked lines")
endif()

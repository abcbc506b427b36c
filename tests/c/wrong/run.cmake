# A project that is wrong is refused with a message that says so. In: SOURCE BUILD CONFIG WORK CASE; MESSAGE, none if all
# must go well; ARGUMENTS of the project's; PACKAGE, ON: uses it installed
cmake_minimum_required(VERSION 3.19)

file(REMOVE_RECURSE "${WORK}")
if(PACKAGE)
  execute_process(COMMAND "${CMAKE_COMMAND}" --install "${BUILD}" --config "${CONFIG}" --prefix "${WORK}/prefix"
    RESULT_VARIABLE result OUTPUT_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "installing failed:\n${output}")
  endif()
  list(APPEND ARGUMENTS "-DPACKAGE=${WORK}/prefix")
endif()
execute_process(COMMAND "${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}" -B "${WORK}/build" "-DCASE=${CASE}"
  "-DBLOCKCANARY_SOURCE=${SOURCE}" ${ARGUMENTS} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(result EQUAL 0)
  execute_process(COMMAND "${CMAKE_COMMAND}" --build "${WORK}/build" RESULT_VARIABLE result OUTPUT_VARIABLE output
    ERROR_VARIABLE output)
endif()
# CMake breaks its lines.
string(REGEX REPLACE "[ \n]+" " " text "${output}")
string(FIND "${text}" "${MESSAGE}" found)
if(MESSAGE AND (result EQUAL 0 OR found EQUAL -1))
  message(FATAL_ERROR "should be refused with \"${MESSAGE}\" (${result}):\n${output}")
elseif(NOT MESSAGE AND NOT result EQUAL 0)
  message(FATAL_ERROR "should be well (${result}):\n${output}")
endif()

# What `cmake --install` gives, wherever it is moved.
# In: BUILD, the folder that is installed, and its CONFIG; SOURCE, the repository; WORK, a folder to work in; CASE:
# chosen   BLOCKCANARY_ENABLED, for each configuration and as a whole
# hooks    a looper's calls are interposed with the package's own files
# old      a project of old times, whose policies are others, chooses by a variable
# whole    a project that is optimised as a whole and has strict rules for its own code, linked by gold
# pkg_config   a compiler called by hand; PKG_CONFIG CXX
# without   a package that was made without the library
cmake_minimum_required(VERSION 3.19)

file(REMOVE_RECURSE "${WORK}")
function(run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${what} failed (${result}):\n${output}")
  endif()
endfunction()

function(expect program expected)
  execute_process(COMMAND "${program}" RESULT_VARIABLE result OUTPUT_VARIABLE output OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT result EQUAL 0 OR NOT output STREQUAL expected)
    message(FATAL_ERROR "${program} says \"${output}\" (${result}), not \"${expected}\"")
  endif()
endfunction()

# package(<build folder>): installs it and moves it away from there.
set(moved "${WORK}/moved here")
function(package build)
  run(installing "${CMAKE_COMMAND}" --install "${build}" --config "${CONFIG}" --prefix "${WORK}/prefix")
  file(RENAME "${WORK}/prefix" "${moved}")
  file(GLOB_RECURSE files "${moved}/*.cmake" "${moved}/*.pc" "${moved}/*.h" "${moved}/*.hpp" "${moved}/*.c")
  if(NOT files)
    message(FATAL_ERROR "nothing is installed")
  endif()
  foreach(file IN LISTS files)
    file(READ "${file}" text)
    foreach(place IN ITEMS "${WORK}" "${SOURCE}" "${BUILD}")
      string(FIND "${text}" "${place}" found)
      if(NOT found EQUAL -1)
        message(FATAL_ERROR "${file} refers to ${place}")
      endif()
    endforeach()
  endforeach()
endfunction()

# consume(<name> <arguments>...): configures and builds the program; what CMake says of it is in `said`.
function(consume name)
  run("configuring ${name}" "${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}" -B "${WORK}/${name}"
    "-DCMAKE_PREFIX_PATH=${moved}" ${ARGN})
  run("building ${name}" "${CMAKE_COMMAND}" --build "${WORK}/${name}")
endfunction()

if(CASE STREQUAL "chosen")
  package("${BUILD}")
  consume(default)
  expect("${WORK}/default/polls" "live, 0 dispatches")
  expect("${WORK}/default/polls_noop" "noop, 0 dispatches")
  consume(off -DBLOCKCANARY_ENABLED=OFF)
  expect("${WORK}/off/polls" "noop, 0 dispatches")
  foreach(type IN ITEMS Debug Release)
    consume(${type} "-DBLOCKCANARY_ENABLED=$<NOT:$<CONFIG:Release>>" -DCMAKE_BUILD_TYPE=${type})
  endforeach()
  expect("${WORK}/Debug/polls" "live, 0 dispatches")
  expect("${WORK}/Release/polls" "noop, 0 dispatches")
elseif(CASE STREQUAL "hooks")
  package("${BUILD}")
  foreach(type IN ITEMS Debug Release)
    consume(${type} "-DBLOCKCANARY_ENABLED=$<NOT:$<CONFIG:Release>>" -DCMAKE_BUILD_TYPE=${type} -DHOOKS=ON)
    expect("${WORK}/${type}/polls_noop" "noop, 0 dispatches")
  endforeach()
  expect("${WORK}/Debug/polls" "live, 5 dispatches")
  expect("${WORK}/Debug/polls_inside" "live, 0 dispatches")
  expect("${WORK}/Release/polls" "noop, 0 dispatches")
elseif(CASE STREQUAL "old")
  package("${BUILD}")
  foreach(minimum IN ITEMS 3.1 3.5 3.20)
    foreach(choice IN ITEMS ON OFF)
      consume(${choice}-${minimum} -Wno-dev -DMINIMUM=${minimum} -DCHOICE=${choice} -DHOOKS=ON)
    endforeach()
    expect("${WORK}/ON-${minimum}/polls" "live, 5 dispatches")
    expect("${WORK}/OFF-${minimum}/polls" "noop, 0 dispatches")
  endforeach()
elseif(CASE STREQUAL "whole")
  package("${BUILD}")
  consume(whole -DHOOKS=ON -DCMAKE_BUILD_TYPE=Release -DCMAKE_INTERPROCEDURAL_OPTIMIZATION=ON
    "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wzero-as-null-pointer-constant -Wredundant-decls -Wuseless-cast -Werror"
    -DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=gold)
  expect("${WORK}/whole/polls" "live, 5 dispatches")
elseif(CASE STREQUAL "pkg_config")
  package("${BUILD}")
  file(GLOB_RECURSE found "${moved}/*/blockcanary.pc")
  get_filename_component(folder "${found}" DIRECTORY)
  # By the shell, which undoes the quoting of blanks.
  file(WRITE "${WORK}/build.sh" [[
set -e
for package in blockcanary blockcanary-noop; do
  flags=$("$PKG_CONFIG" --cflags --libs $package)
  eval "$CXX -shared -fPIC '$SOURCES/looper.cpp' -o '$WORK/libandroid.so'"
  eval "$CXX '$SOURCES/polls.cpp' -o '$WORK/$package' -Wl,-rpath,'$WORK' -L'$WORK' -landroid $flags"
done
]])
  set(ENV{PKG_CONFIG_PATH} "${folder}")
  set(ENV{PKG_CONFIG} "${PKG_CONFIG}")
  set(ENV{CXX} "${CXX}")
  set(ENV{WORK} "${WORK}")
  set(ENV{SOURCES} "${CMAKE_CURRENT_LIST_DIR}")
  run("building" sh "${WORK}/build.sh")
  expect("${WORK}/blockcanary" "live, 0 dispatches")
  expect("${WORK}/blockcanary-noop" "noop, 0 dispatches")
elseif(CASE STREQUAL "without")
  run(configuring "${CMAKE_COMMAND}" -S "${SOURCE}" -B "${WORK}/build" -DBLOCKCANARY_ENABLED=OFF)
  run(building "${CMAKE_COMMAND}" --build "${WORK}/build")
  package("${WORK}/build")
  consume(default)
  expect("${WORK}/default/polls" "noop, 0 dispatches")
  execute_process(COMMAND "${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}" -B "${WORK}/on"
    "-DCMAKE_PREFIX_PATH=${moved}" -DBLOCKCANARY_ENABLED=ON RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  string(REGEX REPLACE "[ \n]+" " " output "${output}")
  if(result EQUAL 0 OR NOT output MATCHES "made with BLOCKCANARY_ENABLED=OFF and has only the no-op")
    message(FATAL_ERROR "a package without the library is taken for one with it:\n${output}")
  endif()
else()
  message(FATAL_ERROR "no case ${CASE}")
endif()

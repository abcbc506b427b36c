# blockcanary_interpose_looper(<target>)
#
# Sends the target's own calls of ALooper_addFd, ALooper_removeFd, ALooper_pollOnce and ALooper_pollAll through the
# library, without a change of its source. Each callback is then a dispatch, and so is the time from one poll to the next.
# The target is what is linked: a program, a shared library or a module, with all the archives that go into it. It links
# blockcanary::blockcanary. Calls inside other shared libraries stay as they are, and so do addresses from dlsym. With
# blockcanary::noop nothing is interposed.
function(blockcanary_interpose_looper target)
  if(NOT TARGET "${target}")
    message(FATAL_ERROR "blockcanary_interpose_looper(${target}): there is no target of this name")
  endif()
  get_target_property(type "${target}" TYPE)
  if(NOT type MATCHES "^(EXECUTABLE|SHARED_LIBRARY|MODULE_LIBRARY)$")
    message(FATAL_ERROR "blockcanary_interpose_looper(${target}): ${target} is a ${type}, which is not linked; "
      "name the program or shared library that it becomes a part of")
  endif()

  # Beside this file in an installed package.
  set(hooks "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/interpose_looper.c")
  if(NOT EXISTS "${hooks}")
    get_filename_component(hooks "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../c/interpose/looper.c" ABSOLUTE)
  endif()
  target_sources("${target}" PRIVATE "${hooks}")
  # Optimised with the program as a whole, they would be taken for unused by a linker that does not tell of --wrap (gold).
  # The program's own rules for warnings are not about them.
  set_source_files_properties("${hooks}" TARGET_DIRECTORY "${target}"
    PROPERTIES SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON COMPILE_OPTIONS "-fno-lto;-w")
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  if(NOT "C" IN_LIST languages)
    set_source_files_properties("${hooks}" TARGET_DIRECTORY "${target}" PROPERTIES LANGUAGE CXX)
  endif()
  foreach(function IN ITEMS addFd removeFd pollOnce pollAll)
    target_link_options("${target}" PRIVATE
      "$<$<NOT:$<STREQUAL:$<TARGET_PROPERTY:BLOCKCANARY_KIND>,noop>>:LINKER:--wrap=ALooper_${function}>")
  endforeach()
endfunction()

# How the project's own programs are compiled. Nothing of this reaches programs that use the library.

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_CXX_STANDARD 14)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)

# The genuine Looper of Android, as Debian and Ubuntu package it.
find_path(BLOCKCANARY_LOOPER_INCLUDE utils/Looper.h PATH_SUFFIXES android)
find_path(BLOCKCANARY_NDK_INCLUDE android/looper.h PATH_SUFFIXES android)
find_library(BLOCKCANARY_LIBUTILS utils
  PATHS "/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/android" /usr/lib/x86_64-linux-gnu/android NO_DEFAULT_PATH)
if(NOT BLOCKCANARY_LOOPER_INCLUDE OR NOT BLOCKCANARY_NDK_INCLUDE OR NOT BLOCKCANARY_LIBUTILS)
  message(FATAL_ERROR "blockcanary: tests and examples need the packages android-libutils-dev and "
    "android-platform-frameworks-native-headers")
endif()

# blockcanary_program(name sources...): warnings are errors, functions are in .dynsym so that stacks can name them.
function(blockcanary_program name)
  add_executable(${name} ${ARGN})
  target_compile_options(${name} PRIVATE -Wall -Wextra -Werror)
  target_compile_definitions(${name} PRIVATE _GNU_SOURCE)
  target_link_libraries(${name} PRIVATE blockcanary::live)
  set_target_properties(${name} PROPERTIES ENABLE_EXPORTS ON)
endfunction()

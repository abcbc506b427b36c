# Which Rust target belongs to what CMake builds for.
#
#   BLOCKCANARY_TARGET   Rust target triple; derived from the system, processor or Android ABI when empty.
#
# Gives BLOCKCANARY_TRIPLE and BLOCKCANARY_EMULATION, the linker's name for the machine.

if(NOT DEFINED BLOCKCANARY_TARGET)
  set(BLOCKCANARY_TARGET "" CACHE STRING "Rust target triple; derived when empty")
endif()

set(BLOCKCANARY_TRIPLE "${BLOCKCANARY_TARGET}")
if(NOT BLOCKCANARY_TRIPLE AND ANDROID)
  set(abi "${ANDROID_ABI}")
  if(NOT abi)
    set(abi "${CMAKE_ANDROID_ARCH_ABI}")
  endif()
  set(triple_of_arm64-v8a aarch64-linux-android)
  set(triple_of_armeabi-v7a armv7-linux-androideabi)
  set(triple_of_x86_64 x86_64-linux-android)
  set(triple_of_x86 i686-linux-android)
  # Known, and refused below.
  set(triple_of_riscv64 riscv64-linux-android)
  set(BLOCKCANARY_TRIPLE "${triple_of_${abi}}")
elseif(NOT BLOCKCANARY_TRIPLE AND CMAKE_SYSTEM_NAME STREQUAL "Linux")
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    if(CMAKE_SIZEOF_VOID_P EQUAL 4)
      set(BLOCKCANARY_TRIPLE i686-unknown-linux-gnu)
    else()
      set(BLOCKCANARY_TRIPLE x86_64-unknown-linux-gnu)
    endif()
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    set(BLOCKCANARY_TRIPLE aarch64-unknown-linux-gnu)
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^armv7")
    set(BLOCKCANARY_TRIPLE armv7-unknown-linux-gnueabihf)
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^i[3-6]86$")
    set(BLOCKCANARY_TRIPLE i686-unknown-linux-gnu)
  endif()
endif()
if(NOT BLOCKCANARY_TRIPLE)
  message(FATAL_ERROR "blockcanary: no Rust target known for ${CMAKE_SYSTEM_NAME} ${CMAKE_SYSTEM_PROCESSOR} ${ANDROID_ABI}; "
    "set BLOCKCANARY_TARGET to one, or build without the library: BLOCKCANARY_ENABLED=OFF")
endif()

if(BLOCKCANARY_TRIPLE MATCHES "^aarch64")
  set(BLOCKCANARY_EMULATION aarch64linux)
elseif(BLOCKCANARY_TRIPLE MATCHES "^arm")
  set(BLOCKCANARY_EMULATION armelf_linux_eabi)
elseif(BLOCKCANARY_TRIPLE MATCHES "^i.86")
  set(BLOCKCANARY_EMULATION elf_i386)
elseif(BLOCKCANARY_TRIPLE MATCHES "^x86_64")
  set(BLOCKCANARY_EMULATION elf_x86_64)
else()
  set(BLOCKCANARY_EMULATION "")
endif()
if(NOT BLOCKCANARY_EMULATION OR NOT BLOCKCANARY_TRIPLE MATCHES "-linux-")
  message(FATAL_ERROR "blockcanary: there is no library for ${BLOCKCANARY_TRIPLE}: it is built for Linux and Android on "
    "aarch64, armv7, x86_64 and i686; build without it: BLOCKCANARY_ENABLED=OFF")
endif()

# blockcanary::blockcanary: the library or the no-op, for each configuration.
#
#   BLOCKCANARY_ENABLED   ON (default): blockcanary::blockcanary is the library. OFF: it is blockcanary::noop, and no cargo
#                         is looked for. A generator expression decides for each configuration:
#                         "$<NOT:$<CONFIG:Release>>" gives the no-op to Release alone.
#
# Programs may also link one of the two themselves: blockcanary::live or blockcanary::noop. One that would get both is
# refused by CMake, because the property BLOCKCANARY_KIND does not agree then.

# Not over a variable of the program's, which an older CMake would take away.
if(NOT DEFINED BLOCKCANARY_ENABLED)
  set(BLOCKCANARY_ENABLED ON CACHE STRING "Is blockcanary::blockcanary the library? May be a generator expression")
endif()

# Is the library needed in any configuration? CMake would take a word that it does not know for ON.
set(BLOCKCANARY_WANTED ON)
if(NOT BLOCKCANARY_ENABLED MATCHES "\\$<")
  string(TOUPPER "${BLOCKCANARY_ENABLED}" blockcanary_word)
  if(NOT blockcanary_word MATCHES "^(ON|OFF|TRUE|FALSE|YES|NO|1|0)$")
    message(FATAL_ERROR "blockcanary: BLOCKCANARY_ENABLED is \"${BLOCKCANARY_ENABLED}\", which is neither ON nor OFF nor a "
      "generator expression")
  endif()
  set(BLOCKCANARY_WANTED "${BLOCKCANARY_ENABLED}")
endif()

# blockcanary_choose(<target>): an INTERFACE target becomes what BLOCKCANARY_ENABLED says.
function(blockcanary_choose target)
  if(BLOCKCANARY_WANTED)
    target_link_libraries("${target}" INTERFACE
      "$<IF:$<BOOL:${BLOCKCANARY_ENABLED}>,blockcanary::live,blockcanary::noop>")
  else()
    target_link_libraries("${target}" INTERFACE blockcanary::noop)
  endif()
endfunction()

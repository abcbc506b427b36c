# With the no-op a function with guards is the same machine code as one without; with the library it is not, and calls it.
# In: OBJDUMP; objects: PLAIN NOOP LIVE
cmake_minimum_required(VERSION 3.19)

function(disassemble object result)
  execute_process(COMMAND "${OBJDUMP}" --disassemble --reloc --no-show-raw-insn "${object}" OUTPUT_VARIABLE text
    RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${OBJDUMP} failed on ${object}")
  endif()
  # Without the line that names the file.
  string(FIND "${text}" "<frame>:" begin)
  if(begin EQUAL -1)
    message(FATAL_ERROR "no function in ${object}:\n${text}")
  endif()
  string(SUBSTRING "${text}" ${begin} -1 text)
  if(NOT text MATCHES "run_frame" OR NOT text MATCHES "load_level")
    message(FATAL_ERROR "the function of ${object} does nothing:\n${text}")
  endif()
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

disassemble("${PLAIN}" plain)
disassemble("${NOOP}" noop)
disassemble("${LIVE}" live)
foreach(function IN ITEMS bc_dispatch_begin bc_dispatch_end bc_allow_begin bc_allow_end)
  if(NOT live MATCHES "${function}")
    message(FATAL_ERROR "${function} is not called with the library either:\n${live}")
  endif()
endforeach()
if(NOT noop STREQUAL plain)
  message(FATAL_ERROR "with guards:\n${noop}\nwithout:\n${plain}")
endif()

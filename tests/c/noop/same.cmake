# Two programs say the same, and say something. In: FIRST SECOND
cmake_minimum_required(VERSION 3.19)

foreach(program IN ITEMS FIRST SECOND)
  execute_process(COMMAND "${${program}}" RESULT_VARIABLE result OUTPUT_VARIABLE ${program}_says)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${${program}}: ${result}")
  endif()
endforeach()
if(FIRST_says STREQUAL "" OR NOT FIRST_says STREQUAL SECOND_says)
  message(FATAL_ERROR "one says\n${FIRST_says}the other\n${SECOND_says}")
endif()

# A copy of SOURCE with PATCH, in OUT.
get_filename_component(folder ${OUT} DIRECTORY)
file(MAKE_DIRECTORY ${folder})
execute_process(COMMAND patch --quiet --fuzz=0 --output=${OUT} ${SOURCE} ${PATCH}
  RESULT_VARIABLE result OUTPUT_VARIABLE said ERROR_VARIABLE said)
if(NOT result EQUAL 0)
  file(REMOVE ${OUT})
  message(FATAL_ERROR "${PATCH} does not apply to ${SOURCE} any more: put the same fault into the code as it is now\n${said}")
endif()

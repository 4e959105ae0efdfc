# Runs while installing: `outbox_program` is the one that was built. (Names that are also components would be taken for them.)
set(share $ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/share)

function(outbox_says file)
  get_filename_component(folder ${file} DIRECTORY)
  file(MAKE_DIRECTORY ${folder})
  execute_process(COMMAND ${outbox_program} ${ARGN} OUTPUT_FILE ${file} COMMAND_ERROR_IS_FATAL ANY)
  message(STATUS "Installing: ${file}")
endfunction()

outbox_says(${share}/bash-completion/completions/outbox completion bash)
# Debian's zsh looks below /usr in a folder of its own.
set(zsh site-functions)
if(CMAKE_INSTALL_PREFIX STREQUAL /usr)
  set(zsh vendor-completions)
endif()
outbox_says(${share}/zsh/${zsh}/_outbox completion zsh)
outbox_says(${share}/fish/vendor_completions.d/outbox.fish completion fish)

execute_process(COMMAND ${outbox_program} man ${share}/man/man1 COMMAND_ERROR_IS_FATAL ANY)
file(GLOB pages ${share}/man/man1/outbox*.1)
execute_process(COMMAND gzip -9nf ${pages} COMMAND_ERROR_IS_FATAL ANY)

# Which `expected` carries results, in outbox/expected.hpp of the build folder, which is installed with the library: a user
# cannot see another type than the library was compiled with, whatever compiler and standard the user has.
set(header tl)
if(OUTBOX_STD_EXPECTED)
  set(header std)
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/expected_${header}.hpp.in ${PROJECT_BINARY_DIR}/include/outbox/expected.hpp COPYONLY)

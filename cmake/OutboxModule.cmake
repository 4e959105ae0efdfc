# The headers that almost every file includes. All modules use one precompiled form of them, which the first module makes. ccache keeps
# nothing that is compiled with it.
set(outbox_common_headers <algorithm> <chrono> <condition_variable> <functional> <map> <memory> <optional> <span> <string> <string_view>
  <thread> <unordered_map> <utility> <variant> <vector> <fmt/format.h>)

# outbox_module(NAME SOURCES ... [DEPENDS ...]): one folder under src/ as a static library.
# DEPENDS names what the folder's own arrow in DESIGN's layering allows; nothing else is linked.
function(outbox_module name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(outbox_${name} STATIC ${ARG_SOURCES})
  add_library(outbox::${name} ALIAS outbox_${name})
  target_include_directories(outbox_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include)
  # A library of the application that links this one does not pass our symbols on.
  set_target_properties(outbox_${name} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_link_libraries(outbox_${name} PRIVATE outbox_internal PUBLIC outbox_flags ${ARG_DEPENDS})
  # Where it does not fit, it is left out without a word.
  set_target_properties(outbox_${name} PROPERTIES PCH_WARN_INVALID OFF)
  if(OUTBOX_PCH AND name STREQUAL "base")
    target_precompile_headers(outbox_base PRIVATE ${outbox_common_headers})
  elseif(OUTBOX_PCH)
    target_precompile_headers(outbox_${name} REUSE_FROM outbox_base)
  endif()
endfunction()

# outbox_test(NAME LABEL unit|sim|integration|fault|cli ... SOURCES ... [DEPENDS ...] [SERIAL] [LOCK name])
# one GoogleTest program; each program is one ctest entry, so that fixtures are shared.
function(outbox_test name)
  cmake_parse_arguments(ARG "SERIAL" "LABEL;LOCK" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE outbox_internal ${ARG_DEPENDS} GTest::gmock GTest::gtest GTest::gtest_main)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests OUTBOX_IS_TEST ON)
  # Unit tests start no program, so a sanitizer build for them need not have it.
  if(NOT ARG_LABEL MATCHES "^(unit|sim)$")
    add_dependencies(${name} outbox_cli outbox_test_relay)
  elseif(ARG_LABEL STREQUAL "unit" AND NOT OUTBOX_UNIT_TESTS)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
  add_test(NAME ${name} COMMAND ${name})
  # It ends a test that hangs, and no other one, however busy the machine is.
  set(timeout 900)
  if(OUTBOX_SANITIZE)
    set(timeout 1800)
  endif()
  # A test that skips itself prints the reason; 77 tells ctest.
  set_tests_properties(${name} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${timeout} SKIP_RETURN_CODE 77)
  if(ARG_SERIAL)
    set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
  endif()
  if(ARG_LOCK)  # one at a time of those with the same lock
    set_tests_properties(${name} PROPERTIES RESOURCE_LOCK ${ARG_LOCK})
  endif()
endfunction()

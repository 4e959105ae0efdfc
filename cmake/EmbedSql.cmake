# outbox_embed_sql(OUT NAMESPACE ns DIRECTORY dir): the migrations NNNN_name.sql of a store, in order, as a source
# file. It defines `std::span<const outbox::store::Migration> migrations()` in the namespace; the store declares it.
# OUT gets the path of the file. Configuring runs again when a migration changes or appears.
function(outbox_embed_sql out)
  cmake_parse_arguments(ARG "" "NAMESPACE;DIRECTORY" "" ${ARGN})
  file(GLOB files CONFIGURE_DEPENDS ${ARG_DIRECTORY}/*.sql)
  list(SORT files)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
  set(entries "")
  set(expected 1)
  foreach(file IN LISTS files)
    get_filename_component(name ${file} NAME_WE)
    if(NOT name MATCHES "^([0-9][0-9][0-9][0-9])_[a-z0-9_]+$")
      message(FATAL_ERROR "${file}: a migration is named NNNN_name.sql")
    endif()
    math(EXPR version "1${CMAKE_MATCH_1} - 10000")
    if(NOT version EQUAL expected)
      message(FATAL_ERROR "${file}: expected number ${expected}; the numbers have no gaps")
    endif()
    math(EXPR expected "${expected} + 1")
    file(READ ${file} sql)
    file(SHA256 ${file} checksum)
    # String literals have a limit of 64 KiB on some compilers; ours stay far below it.
    string(APPEND entries
      "    Migration{.version = ${version},\n              .name = \"${name}\",\n"
      "              .sql = R\"outbox_sql(${sql})outbox_sql\",\n              .checksum = \"${checksum}\"},\n")
  endforeach()
  string(CONCAT source
    "// Made by cmake/EmbedSql.cmake from the migrations.\n"
    "#include <array>\n#include <span>\n\n#include \"store/migrations.hpp\"\n\n"
    "namespace ${ARG_NAMESPACE} {\n\n"
    "std::span<const Migration> migrations();\n\n"
    "std::span<const Migration> migrations() {\n"
    "  static constexpr std::array all{\n${entries}  };\n  return all;\n}\n\n"
    "}  // namespace ${ARG_NAMESPACE}\n")
  set(path ${CMAKE_CURRENT_BINARY_DIR}/migrations.cpp)
  # Written only when it differs, so that nothing is compiled again for nothing.
  set(old "")
  if(EXISTS ${path})
    file(READ ${path} old)
  endif()
  if(NOT old STREQUAL source)
    file(WRITE ${path} "${source}")
  endif()
  set(${out} ${path} PARENT_SCOPE)
endfunction()

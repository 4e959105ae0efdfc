# What a folder of src/sink says of itself. The rest follows: the option, the library, the registry, what the installed library and
# its package need.

# outbox_client_library(PREFIX MODULE PACKAGE): PkgConfig::PREFIX, found by pkg-config as MODULE. Debian's package with its headers
# is what whoever links the installed library needs, too.
function(outbox_client_library prefix module package)
  if(NOT TARGET PkgConfig::${prefix})
    pkg_check_modules(${prefix} REQUIRED IMPORTED_TARGET GLOBAL ${module})
    set_property(GLOBAL APPEND PROPERTY OUTBOX_CLIENT_LIBRARIES ${prefix}/${module}/${package})
  endif()
endfunction()

# outbox_folder(FOLDER): a folder below src/ that several others need, and nobody else.
function(outbox_folder folder)
  get_property(added GLOBAL PROPERTY OUTBOX_FOLDERS)
  if(NOT folder IN_LIST added)
    set_property(GLOBAL APPEND PROPERTY OUTBOX_FOLDERS ${folder})
    add_subdirectory(${PROJECT_SOURCE_DIR}/src/${folder} ${PROJECT_BINARY_DIR}/src/${folder})
  endif()
endfunction()

# outbox_sink(NAME [OPTION help [SWITCH name] [DEFAULT value] [NEEDS text]] [LIBRARIES prefix/module/package ...] [FOLDERS ...]
#             SOURCES ... [DEPENDS ...] [KIND function])
# One sink as the module sink_NAME, in the registry. With OPTION it can be left out: -DOUTBOX_WITH_<NAME>=OFF, or what SWITCH says in
# place of the name; NEEDS is what the program tells whoever misses it to build it with.
function(outbox_sink name)
  cmake_parse_arguments(ARG "" "OPTION;SWITCH;DEFAULT;NEEDS;KIND" "LIBRARIES;FOLDERS;SOURCES;DEPENDS" ${ARGN})
  if(ARG_OPTION)
    if(NOT ARG_SWITCH)
      string(TOUPPER ${name} ARG_SWITCH)
    endif()
    if(NOT DEFINED ARG_DEFAULT)
      set(ARG_DEFAULT ON)
    endif()
    option(OUTBOX_WITH_${ARG_SWITCH} "${ARG_OPTION}" ${ARG_DEFAULT})
    if(NOT OUTBOX_WITH_${ARG_SWITCH})
      set_property(GLOBAL APPEND_STRING PROPERTY OUTBOX_SINKS_NOT_BUILT
        "      {\"${name}\", \"build with -DOUTBOX_WITH_${ARG_SWITCH}=ON${ARG_NEEDS}\"},\n")
      return()
    endif()
  endif()
  foreach(folder IN LISTS ARG_FOLDERS)
    outbox_folder(${folder})
  endforeach()
  outbox_module(sink_${name} SOURCES ${ARG_SOURCES} DEPENDS ${ARG_DEPENDS})
  foreach(library IN LISTS ARG_LIBRARIES)
    string(REPLACE "/" ";" library ${library})
    outbox_client_library(${library})
    list(GET library 0 prefix)
    target_link_libraries(outbox_sink_${name} PRIVATE PkgConfig::${prefix})
  endforeach()
  set_property(GLOBAL APPEND PROPERTY OUTBOX_SINKS outbox::sink_${name})
  if(ARG_KIND)
    set(declaration "SinkKind ${ARG_KIND}();")
  else()
    set(ARG_KIND ${name}::kind)
    set(declaration "namespace ${name} { SinkKind kind(); }")
  endif()
  set_property(GLOBAL APPEND_STRING PROPERTY OUTBOX_SINK_DECLARATIONS "${declaration}\n")
  set_property(GLOBAL APPEND_STRING PROPERTY OUTBOX_SINK_KINDS "      ${ARG_KIND}(),\n")
endfunction()

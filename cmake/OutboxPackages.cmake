# Debian packages, made by CPack from a build folder (scripts/package): outbox is the program and its services, outbox-dev the
# library, outbox-tools the programs that measure and show it.
include(GNUInstallDirs)
set(deploy ${PROJECT_SOURCE_DIR}/deploy)

install(TARGETS outbox_cli RUNTIME COMPONENT program)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR}
  COMPONENT program)
# What the program says of itself: manual pages, and the completions of shells.
if(NOT CMAKE_CROSSCOMPILING)
  install(CODE "set(outbox_program \"$<TARGET_FILE:outbox_cli>\")" COMPONENT program)
  install(SCRIPT ${PROJECT_SOURCE_DIR}/cmake/InstallPages.cmake COMPONENT program)
endif()
# For those who watch it: what Prometheus and Grafana read.
install(FILES ${deploy}/prometheus/alerts.yaml DESTINATION ${CMAKE_INSTALL_DATADIR}/outbox/prometheus COMPONENT program)
install(FILES ${deploy}/grafana/outbox.json DESTINATION ${CMAKE_INSTALL_DATADIR}/outbox/grafana COMPONENT program)
# Only into packages, and where they are asked for by name: nobody needs them to run outbox.
set(tools outbox-demo)
if(TARGET outbox-bench)
  list(APPEND tools outbox-bench)
endif()
install(TARGETS ${tools} RUNTIME COMPONENT tools EXCLUDE_FROM_ALL)
install(FILES ${deploy}/debian/copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/outbox-tools
  COMPONENT tools EXCLUDE_FROM_ALL)
# What belongs to a system and not to a prefix is installed only into packages.
install(FILES ${deploy}/debian/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program EXCLUDE_FROM_ALL)
install(FILES ${deploy}/debian/copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/outbox-dev
  COMPONENT development EXCLUDE_FROM_ALL)
install(FILES ${deploy}/outbox.service ${deploy}/outbox-work.service ${deploy}/outbox-consume.service ${deploy}/outbox-console.service DESTINATION lib/systemd/system
  COMPONENT program EXCLUDE_FROM_ALL)
install(FILES ${deploy}/outbox.toml DESTINATION /etc/outbox COMPONENT program EXCLUDE_FROM_ALL)

# What a user of the library compiles and links with. The client libraries of sinks can be left out where only outbox::core
# and an adapter are used.
set(needs "libexpected-dev, libfmt-dev, libspdlog-dev, pkg-config")
set(recommends "")
if(OUTBOX_WITH_POSTGRES)
  string(APPEND needs ", libpq-dev")
endif()
if(OUTBOX_WITH_SQLITE)
  string(APPEND needs ", libsqlite3-dev")
endif()
foreach(library IN LISTS client_libraries)
  string(REPLACE "/" ";" library ${library})
  list(GET library 1 pkg_module)
  if(pkg_module IN_LIST linked_pkg_modules)
    list(GET library 2 package)
    list(APPEND recommends ${package})
  endif()
endforeach()
list(JOIN recommends ", " recommends)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME outbox)
set(CPACK_PACKAGE_VENDOR outbox)
set(CPACK_PACKAGE_CONTACT "outbox <outbox@localhost>")
set(CPACK_SET_DESTDIR ON)  # for /etc
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
  WORLD_EXECUTE)
set(CPACK_COMPONENTS_ALL program development tools)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME outbox)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION database)
set(CPACK_DEBIAN_PROGRAM_DESCRIPTION "transactional outbox for PostgreSQL and SQLite: delivers committed events
A service writes an event in the same transaction as its data. outbox delivers it from there: to brokers, queues, webhooks,
mail, another database or a file. It also runs tasks.")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS adduser)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS "ca-certificates, tzdata")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_CONTROL_EXTRA ${deploy}/debian/postinst ${deploy}/debian/prerm ${deploy}/debian/postrm
  ${deploy}/debian/conffiles)

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME outbox-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "transactional outbox for PostgreSQL and SQLite: C++ library
Headers, static libraries, and files for CMake and pkg-config, to enqueue, to relay and to run tasks in a program.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS ${needs})
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_RECOMMENDS ${recommends})

set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME outbox-tools)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION database)
set(CPACK_DEBIAN_TOOLS_DESCRIPTION "transactional outbox for PostgreSQL and SQLite: demo and benchmarks
outbox-demo is a shop whose relay is killed again and again, and a count of what arrived. outbox-bench measures the figures
of the project, each beside its limit.")
set(CPACK_DEBIAN_TOOLS_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS "outbox (= ${PROJECT_VERSION})")
include(CPack)

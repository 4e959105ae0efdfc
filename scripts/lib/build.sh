# The build folders: one per type, made by CMake. Needs say.sh.

: "${root:?the script that reads this file sets it}"

build_folder() { # TYPE
  case $1 in
    release) printf '%s/build\n' "$root" ;;
    debug | asan | tsan | fuzz | tidy) printf '%s/build-%s\n' "$root" "$1" ;;
    *) die "no such type: $1; hint: release, debug, asan or tsan" ;;
  esac
}

build_cached() { # FOLDER NAME: prints the value that CMake remembers, nothing if it has none
  sed -n "s/^$2:[A-Z]*=//p" "$1/CMakeCache.txt" 2>/dev/null || true
}

# Sanitizer builds keep assertions and use -O1: readable stacks, fast enough. -g1 has what a stack needs, the lines, and compiles a fifth
# faster than -g.
build_options() { # TYPE: CMake's options, one per line
  case $1 in
    release) printf '%s\n' CMAKE_BUILD_TYPE=Release OUTBOX_SANITIZE= ;;
    debug) printf '%s\n' CMAKE_BUILD_TYPE=Debug OUTBOX_SANITIZE= ;;
    asan) printf '%s\n' CMAKE_BUILD_TYPE=RelWithDebInfo OUTBOX_SANITIZE=address ;;
    tsan) printf '%s\n' CMAKE_BUILD_TYPE=RelWithDebInfo OUTBOX_SANITIZE=thread ;;
    tidy) printf '%s\n' CMAKE_BUILD_TYPE=Release OUTBOX_SANITIZE= ;;
    fuzz)
      printf '%s\n' CMAKE_BUILD_TYPE=RelWithDebInfo OUTBOX_SANITIZE=address OUTBOX_FUZZ=ON \
        CMAKE_CXX_COMPILER="$(command -v clang++-14)"
      ;;
  esac
  case $1 in
    asan | tsan | fuzz) printf '%s\n' 'CMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -g1' ;;
  esac
}

# A folder that builds the tests continues to do so: it is not reconfigured back and forth. A new one
# builds them if possible, unless specified.
build_with_tests() { # FOLDER WANTED(ON|-)
  if [ "$2" = ON ]; then
    echo ON
  elif [ -f "$1/CMakeCache.txt" ]; then
    build_cached "$1" OUTBOX_TESTS
  elif dpkg-query -W -f '${db:Status-Status}' libgmock-dev 2>/dev/null | grep -qx installed; then
    echo ON
  else
    echo OFF
  fi
}

# Warnings are errors where a caller says so (OUTBOX_WERROR=ON: scripts/lint and CI), and then stay so in that folder: another
# option would compile everything again. A user's compiler may warn of what ours does not.
build_with_werror() { # FOLDER
  werror=${OUTBOX_WERROR:-$(build_cached "$1" OUTBOX_WERROR)}
  echo "${werror:-OFF}"
}

# The files of a module are compiled together, which makes a whole build fast and one after a small change slow: a folder for daily work is
# better made with OUTBOX_UNITY=OFF, and then stays so. clang, which reads single files, gets them.
build_with_unity() { # TYPE FOLDER
  case $1 in
    fuzz | tidy) echo OFF ;;
    *)
      unity=${OUTBOX_UNITY:-$(build_cached "$2" OUTBOX_UNITY)}
      echo "${unity:-ON}"
      ;;
  esac
}

# Whether a folder has this, if no caller says so: as before, or the default.
build_as_before() { # FOLDER OPTION DEFAULT
  known=$(build_cached "$1" "$2")
  echo "${known:-$3}"
}

# Configures only if an option differs: the build itself notices a changed CMakeLists.txt.
build_configure() ( # TYPE TESTS(ON|-)
  folder=$(build_folder "$1")
  fresh=
  for name in CMAKE_HOME_DIRECTORY:$root CMAKE_CACHEFILE_DIR:$folder; do
    cached=$(build_cached "$folder" "${name%%:*}")
    if [ -n "$cached" ] && [ "$cached" != "${name#*:}" ]; then fresh=--fresh; fi
  done
  tests=$(build_with_tests "$folder" "$2")
  options=$(build_options "$1" && printf 'OUTBOX_TESTS=%s\nOUTBOX_WERROR=%s\nOUTBOX_UNITY=%s\nOUTBOX_UNIT_TESTS=%s\nOUTBOX_MUTATIONS=%s\nOUTBOX_PCH=%s\n' "$tests" \
    "$(build_with_werror "$folder")" "$(build_with_unity "$1" "$folder")" \
    "${OUTBOX_UNIT_TESTS:-$(build_as_before "$folder" OUTBOX_UNIT_TESTS ON)}" \
    "${OUTBOX_MUTATIONS:-$(build_as_before "$folder" OUTBOX_MUTATIONS OFF)}" \
    "${OUTBOX_PCH:-$(build_as_before "$folder" OUTBOX_PCH OFF)}")
  if command -v ccache >/dev/null; then
    options=$(printf '%s\nCMAKE_CXX_COMPILER_LAUNCHER=ccache' "$options")
  fi

  generator=$(build_cached "$folder" CMAKE_GENERATOR)
  same=yes
  set --
  while IFS= read -r option; do
    set -- "$@" "-D$option"
    [ "$(build_cached "$folder" "${option%%=*}")" = "${option#*=}" ] || same=no
  done <<EOF
$options
EOF
  if [ $same = yes ] && [ -z "$fresh" ] && [ -f "$folder/build.ninja" ]; then exit 0; fi

  say "build: configuring ${folder#"$root"/} (tests: $tests)"
  mkdir -p "$folder"
  if ! cmake $fresh -S "$root" -B "$folder" -G "${generator:-Ninja}" "$@" -Wno-dev \
    >"$folder/configure.log" 2>&1; then
    cat "$folder/configure.log" >&2
    die "CMake could not configure ${folder#"$root"/}"
  fi
)

# One job per core, and at most one per gigabyte of memory.
build_jobs() {
  cores=$(nproc)
  gigabytes=$(awk '/^MemTotal:/ { print int($2 / 1000000) }' /proc/meminfo)
  if [ "$gigabytes" -lt "$cores" ]; then cores=$((gigabytes > 0 ? gigabytes : 1)); fi
  echo "${CMAKE_BUILD_PARALLEL_LEVEL:-$cores}"
}

build_run() ( # TYPE [TARGET...]
  folder=$(build_folder "$1")
  shift
  [ $# -eq 0 ] || set -- --target "$@"
  # One cache for all checkouts: paths below this one are hashed as relative ones.
  export CCACHE_BASEDIR="$root" CCACHE_NOHASHDIR=1
  cmake --build "$folder" --parallel "$(build_jobs)" "$@" >&2
)

# Prints the targets that the tests of these labels need: a test is named like its program.
build_targets_of_tests() ( # TYPE LABEL-REGEX
  folder=$(build_folder "$1")
  targets=$(cmake --build "$folder" --target help | sed -n 's/^\([A-Za-z0-9_]*\): .*/\1/p')
  ctest --test-dir "$folder" --show-only --label-regex "$2" 2>/dev/null |
    sed -n 's/^ *Test *#[0-9]*: //p' |
    while IFS= read -r test; do printf '%s\n' "$targets" | grep -x -F -e "$test" || true; done
)

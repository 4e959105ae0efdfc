# The portable tarballs: the program with the libraries that it needs beside it, but not glibc; and the tools, which are unpacked into the
# same folder. Needs say.sh, and Debian, whose packages say where a library is from and under which licence it is.

: "${root:?the script that reads this file sets it}"

# The Debian package that a library is from. Some packages still name the path of before the merge of /lib and /usr/lib.
tarball_package_of() { # PATH
  for path in "$1" "$(readlink -f "$1")" "/usr$1" "${1#/usr}"; do
    if found=$(dpkg-query -S "$path" 2>/dev/null); then
      printf '%s\n' "${found%%:*}"
      return
    fi
  done
  die "no package has $1: its licence is not known"
}

tarball_libraries() { # PROGRAM: the paths of all libraries that it loads, one per line
  if LC_ALL=C ldd "$1" | grep 'not found'; then die "$1 lacks libraries"; fi
  LC_ALL=C ldd "$1" | sed -n 's/.* => \(\/[^ ]*\) (.*/\1/p' | sort
}

tarball_install() { # BUILD-FOLDER COMPONENT STAGE LOG
  if ! DESTDIR=$3 cmake --install "$1" --prefix /usr --component "$2" --strip >"$4" 2>&1; then
    cat "$4" >&2
    die "CMake could not install the component $2"
  fi
}

tarball_add_library() { # PATH TREE: with its licence
  package=$(tarball_package_of "$1")
  [ "$package" != libc6 ] || return 0
  cp -L "$1" "$2/lib/"
  cp -L "/usr/share/doc/$package/copyright" "$2/licenses/$package"
}

tarball_pack() { # PARENT FOLDER FILE
  tar -C "$1" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -cf - "$2" | gzip -n >"$1.tar.gz"
  mv -f "$1.tar.gz" "$3"
  printf '%s\n' "$3"
}

# DT_RPATH, not DT_RUNPATH: also for the libraries that these libraries need.
tarball_set_path() { # PROGRAM
  # shellcheck disable=SC2016 # The dynamic linker expands it.
  patchelf --force-rpath --set-rpath '$ORIGIN/../lib' "$1"
}

tarball_make() { # BUILD-FOLDER VERSION TEMPORARY OUTPUT
  system=$2-linux-$(uname -m)
  name=outbox-$system
  stage=$3/stage tree=$3/tar/$name
  mkdir -p "$tree/bin" "$tree/lib" "$tree/licenses"
  tarball_install "$1" program "$stage" "$3/install.log"
  mv "$stage/usr/bin/outbox" "$tree/bin/"
  if [ -d "$stage/usr/share" ]; then mv "$stage/usr/share" "$tree/"; fi
  rm -rf "$tree/share/doc"
  cp "$root/LICENSE" "$root/CHANGELOG.md" "$root/deploy/outbox.service" "$root/deploy/outbox-work.service" \
    "$root/deploy/outbox-consume.service" "$root/deploy/outbox-console.service" "$root/deploy/outbox.toml" "$tree/"
  cp "$root/deploy/debian/copyright" "$tree/licenses/outbox"
  tarball_libraries "$tree/bin/outbox" >"$3/libraries"
  while IFS= read -r library; do tarball_add_library "$library" "$tree"; done <"$3/libraries"
  chmod 644 "$tree"/lib/*
  tarball_set_path "$tree/bin/outbox"
  tarball_pack "$3/tar" "$name" "$4/$name.tar.gz"

  # The tools: their programs only, since they need no library that the program does not.
  tools=$3/tools/$name
  mkdir -p "$tools/bin"
  tarball_install "$1" tools "$3/tools-stage" "$3/install.log"
  for program in "$3"/tools-stage/usr/bin/*; do
    tarball_libraries "$program" >"$3/needed"
    grep -vxF -f "$3/libraries" "$3/needed" >"$3/more" || true
    [ ! -s "$3/more" ] || die "${program##*/} needs libraries that outbox does not: $(tr '\n' ' ' <"$3/more")"
    mv "$program" "$tools/bin/"
    tarball_set_path "$tools/bin/${program##*/}"
  done
  tarball_pack "$3/tools" "$name" "$4/outbox-tools-$system.tar.gz"
}

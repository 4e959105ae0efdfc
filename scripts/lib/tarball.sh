# The portable tarball: the program with the libraries that it needs beside it, but not glibc. Needs say.sh, and Debian, whose
# packages say where a library is from and under which licence it is.

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

tarball_make() { # BUILD-FOLDER VERSION TEMPORARY OUTPUT
  name=outbox-$2-linux-$(uname -m)
  stage=$3/stage tree=$3/tar/$name
  mkdir -p "$tree/bin" "$tree/lib" "$tree/licenses"
  if ! DESTDIR=$stage cmake --install "$1" --prefix /usr --component program --strip >"$3/install.log" 2>&1; then
    cat "$3/install.log" >&2
    die 'CMake could not install the program'
  fi
  mv "$stage/usr/bin/outbox" "$tree/bin/"
  if [ -d "$stage/usr/share" ]; then mv "$stage/usr/share" "$tree/"; fi
  rm -rf "$tree/share/doc"
  cp "$root/LICENSE" "$root/CHANGELOG.md" "$root/deploy/outbox.service" "$root/deploy/outbox-work.service" \
    "$root/deploy/outbox.toml" "$tree/"

  tarball_libraries "$tree/bin/outbox" >"$3/libraries"
  while IFS= read -r library; do
    package=$(tarball_package_of "$library")
    [ "$package" != libc6 ] || continue
    cp -L "$library" "$tree/lib/"
    cp -L "/usr/share/doc/$package/copyright" "$tree/licenses/$package"
  done <"$3/libraries"
  chmod 644 "$tree"/lib/*
  # DT_RPATH, not DT_RUNPATH: also for the libraries that these libraries need.
  # shellcheck disable=SC2016 # The dynamic linker expands it.
  patchelf --force-rpath --set-rpath '$ORIGIN/../lib' "$tree/bin/outbox"

  tar -C "$3/tar" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -cf - "$name" |
    gzip -n >"$3/$name.tar.gz"
  mv -f "$3/$name.tar.gz" "$4/"
  printf '%s\n' "$4/$name.tar.gz"
}

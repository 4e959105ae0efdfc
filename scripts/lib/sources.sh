# The C++ files of the project. Needs $root.

: "${root:?the script that reads this file sets it}"

sources_cxx() { # paths from the root, one per line: tracked ones, and new ones not ignored
  git -C "$root" ls-files --cached --others --exclude-standard -- '*.cpp' '*.hpp' |
    while IFS= read -r file; do if [ -f "$root/$file" ]; then printf '%s\n' "$file"; fi; done
}

# Those that differ from the main branch; all of them if there is no history.
sources_cxx_changed() (
  cd "$root" || exit
  base=$(git merge-base HEAD origin/main 2>/dev/null || git merge-base HEAD main 2>/dev/null || true)
  if [ -z "$base" ]; then
    sources_cxx
    exit 0
  fi
  {
    git diff --name-only --diff-filter=d "$base" -- '*.cpp' '*.hpp'
    git ls-files --others --exclude-standard -- '*.cpp' '*.hpp'
  } | sort -u
)

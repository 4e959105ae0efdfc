# The environment of programs built with a sanitizer. Needs $root.

: "${root:?the script that reads this file sets it}"

# The sanitizers of this compiler need their shadow memory at fixed addresses. A kernel that
# randomizes more than 28 bits of an address may use them, and programs crash at start.
steady_addresses_prefix() { # RUN
  case $1 in asan | tsan) ;; *) return 0 ;; esac
  if [ "$(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null || echo 28)" -gt 28 ] &&
    setarch --addr-no-randomize true 2>/dev/null; then
    echo 'setarch --addr-no-randomize'
  fi
}

sanitizer_options() { # RUN
  case $1 in
    asan)
      export ASAN_OPTIONS="strict_string_checks=1:check_initialization_order=1:detect_stack_use_after_return=1:${ASAN_OPTIONS-}"
      export LSAN_OPTIONS="print_suppressions=0:suppressions=$root/scripts/lib/lsan.suppressions:${LSAN_OPTIONS-}"
      export UBSAN_OPTIONS="print_stacktrace=1:${UBSAN_OPTIONS-}"
      ;;
    tsan)
      # A program that a test makes die of a signal dies of that signal.
      export TSAN_OPTIONS="second_deadlock_stack=1:handle_segv=0:handle_abort=0:suppressions=$root/scripts/lib/tsan.suppressions:${TSAN_OPTIONS-}"
      ;;
  esac
}

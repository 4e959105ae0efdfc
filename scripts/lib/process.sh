# Processes that outlive the script which started them. A pid may be reused by the time it is
# used, so a process is identified by its pid, its start time and the boot of the machine.

# Prints "PID START BOOT"; fails when there is no such process, or only its zombie.
process_identity() (
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || exit 1
  pid=$1
  # The name, in parentheses, may contain anything; the fields after it are numbers.
  # shellcheck disable=SC2086 # Split into fields on purpose.
  set -- ${stat##*) }
  # A process whose first thread has ended is a zombie too, while others of it still run.
  case ${1-Z} in
    Z | X) [ "$(find "/proc/$pid/task" -mindepth 1 -maxdepth 1 2>/dev/null | wc -l)" -gt 1 ] || exit 1 ;;
  esac
  shift 19
  printf '%s %s %s\n' "$pid" "$1" "$(cat /proc/sys/kernel/random/boot_id)"
)

# process_record FILE PID
process_record() (
  identity=$(process_identity "$2") || exit 1
  printf '%s\n' "$identity" >"$1.new"
  mv -f "$1.new" "$1"
)

# Prints the pid in FILE if that process still runs.
process_running() (
  [ -f "$1" ] || exit 1
  recorded=$(cat "$1")
  pid=${recorded%% *}
  identity=$(process_identity "$pid") || exit 1
  [ "$identity" = "$recorded" ] || exit 1
  printf '%s\n' "$pid"
)

# process_signal FILE SIGNAL
process_signal() (
  pid=$(process_running "$1") || exit 0
  kill -s "$2" "$pid" 2>/dev/null || true
)

# process_wait_gone FILE SECONDS
process_wait_gone() (
  left=$(($2 * 20))
  while process_running "$1" >/dev/null; do
    left=$((left - 1))
    [ $left -gt 0 ] || exit 1
    sleep 0.05
  done
)

# process_spawn FILE LOG COMMAND...: starts a daemon, records it in FILE. It gets its own
# session, no input, and none of the caller's open descriptors (locks!).
process_spawn() {
  process_spawn_file=$1
  process_spawn_log=$2
  shift 2
  # The shell ignores these two signals in what it puts into the background; a server needs them.
  setsid env --default-signal=INT,QUIT "$@" </dev/null >>"$process_spawn_log" 2>&1 \
    3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&- &
  process_record "$process_spawn_file" $!
}

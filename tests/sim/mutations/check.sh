#!/bin/sh
# Each planted fault must still apply to the code, also where nobody builds it (OUTBOX_MUTATIONS).
set -eu
cd -- "$(dirname -- "$0")/../../.."
failed=0
for patch in tests/sim/mutations/*.patch; do
  file=$(sed -n 's/^# file: //p' "$patch")
  if ! said=$(patch --dry-run --quiet --fuzz=0 "$file" "$patch" 2>&1); then
    printf '%s does not apply to %s any more: put the same fault into the code as it is now\n%s\n' \
      "$patch" "$file" "$said"
    failed=1
  fi
done
exit $failed

# Free loopback ports.

# Prints every TCP port in use, in decimal.
ports_in_use() {
  cat /proc/net/tcp /proc/net/tcp6 2>/dev/null |
    awk 'function decimal(hex,   i, n) {
           for (i = 1; i <= length(hex); i++)
             n = n * 16 + index("0123456789ABCDEF", substr(hex, i, 1)) - 1
           return n
         }
         $2 ~ /:/ { split($2, address, ":"); print decimal(address[2]) }'
}

# Prints a free port between 20000 and 29999. The range lies below the one the kernel gives to
# outgoing connections: a server that is killed and restarted finds its port still free.
port_free() (
  in_use=" $(ports_in_use | tr '\n' ' ') "
  while :; do
    random=$(od -An -N4 -tu4 /dev/urandom)
    port=$((20000 + random % 10000))
    case $in_use in
      *" $port "*) ;;
      *) break ;;
    esac
  done
  printf '%s\n' "$port"
)

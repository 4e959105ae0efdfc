// What our own warnings would refuse.
#include <outbox/relay.hpp>
#include <outbox/sqlite.hpp>

int narrowed(long number, int unused) {
  int shorter = number;
  return shorter;
}

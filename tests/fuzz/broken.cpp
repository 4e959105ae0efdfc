#include <cstdio>
#include <cstdlib>

#include "fuzz/fuzz.hpp"

namespace outbox::fuzz {

void broken(const char* file, int line, const char* property) {
  std::fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, property);
  std::abort();
}

}  // namespace outbox::fuzz

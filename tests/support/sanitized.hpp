// Whether the tests run with a sanitizer, which makes them some ten times slower and keeps memory
// that was freed. Then those that repeat something with many seeds take fewer, and nobody looks at
// the memory of the process.
#pragma once

namespace outbox::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace outbox::test

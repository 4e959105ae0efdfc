// What the interfaces of a store have in common.
#pragma once

namespace outbox::store {

/// Owned through a pointer, never copied or moved.
class Part {
 public:
  Part() = default;
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
  Part(Part&&) = delete;
  Part& operator=(Part&&) = delete;
  virtual ~Part() = default;
};

}  // namespace outbox::store

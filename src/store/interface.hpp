// What the interfaces of a store have in common.
#pragma once

namespace outbox::store {

/// An object is owned through a pointer, and never copied or moved.
class Interface {
 public:
  Interface() = default;
  Interface(const Interface&) = delete;
  Interface& operator=(const Interface&) = delete;
  Interface(Interface&&) = delete;
  Interface& operator=(Interface&&) = delete;
  virtual ~Interface() = default;
};

}  // namespace outbox::store

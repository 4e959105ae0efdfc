// Owners of what a C library makes:
//
//   using Addresses = Owned<addrinfo, freeaddrinfo>;
#pragma once

#include <memory>

namespace outbox {

template <auto destroy>
struct Destroy {
  template <class T>
  void operator()(T* thing) const noexcept {
    destroy(thing);
  }
};

template <class T, auto destroy>
using Owned = std::unique_ptr<T, Destroy<destroy>>;

}  // namespace outbox

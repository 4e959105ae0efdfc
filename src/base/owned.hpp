// Owners of what a C library makes:
//
//   using Queue = Owned<rd_kafka_queue_t, rd_kafka_queue_destroy>;
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

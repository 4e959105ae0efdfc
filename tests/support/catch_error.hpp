// The error that a call throws.
#pragma once

#include <gtest/gtest.h>

#include <outbox/error.hpp>

namespace outbox::test {

template <class F>
[[nodiscard]] Error catch_error(const F& call) {
  try {
    call();
  } catch (const Exception& thrown) {
    return thrown.error();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

}  // namespace outbox::test

// Makes our tl::expected std::expected (-DOUTBOX_STD_EXPECTED=ON). This file is not installed.
#pragma once

#include <expected>

namespace tl {

using std::expected;

/// Has the name of tl's accessor, too.
template <class E>
class unexpected : public std::unexpected<E> {
 public:
  using std::unexpected<E>::unexpected;

  [[nodiscard]] constexpr E&& value() && noexcept { return std::move(*this).error(); }
};
template <class E>
unexpected(E) -> unexpected<E>;

}  // namespace tl

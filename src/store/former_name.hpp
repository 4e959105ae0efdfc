// Names that a subscription had before it was renamed (docs/design/subscriptions.md). Catalog::apply() refuses them.
#pragma once

#include <outbox/error.hpp>
#include <string>
#include <string_view>

namespace outbox::store {

/// `name` is now the subscription `now`.
[[nodiscard]] Error renamed(std::string_view name, std::string_view now);
[[nodiscard]] bool is_renamed(const Error& error) noexcept;

}  // namespace outbox::store

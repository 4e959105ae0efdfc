// What a destination answered, fit for an error. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace outbox::sink {

/// The beginning of a text as one line, without the secrets; empty: nothing to show.
[[nodiscard]] std::string excerpt(std::string_view text, const std::vector<std::string>& secrets);

}  // namespace outbox::sink

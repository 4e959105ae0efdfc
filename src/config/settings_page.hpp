// The tables of settings as text: the page of the reference, and lines for `--help`.
#pragma once

#include <string>
#include <string_view>

namespace outbox::config {

/// The page docs/reference/settings.md.
[[nodiscard]] std::string settings_page();

/// The settings of one section, two lines each, for the end of a verb's `--help`.
[[nodiscard]] std::string settings_help(std::string_view section);

}  // namespace outbox::config

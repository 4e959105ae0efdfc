// The URL of a store before anything is opened: which store it names, whether it is valid, and
// which parts may be shown. No other code shows a URL.
#pragma once

#include <cstdint>
#include <outbox/error.hpp>
#include <string>
#include <string_view>

namespace outbox::store {

enum class StoreKind : std::uint8_t { postgres, sqlite, unknown };

/// A URL of PostgreSQL is postgresql://, postgres:// or a conninfo string with '='. A URL of SQLite
/// is sqlite:PATH, or a path that ends in .db, .sqlite or .sqlite3.
[[nodiscard]] StoreKind store_kind(std::string_view url) noexcept;

/// Whether the URL is valid for a store that this program was built with. The message follows the
/// name of the setting ("has a blank") and shows nothing that may be a part of a password.
[[nodiscard]] Status check_url(const std::string& url);

/// Whether the place that a valid URL names on this machine can be used: for SQLite the directory
/// and, if it exists, the file. Opens nothing.
[[nodiscard]] Status check_place(const std::string& url);

/// For SQLite the path as it is written; otherwise empty.
[[nodiscard]] std::string find_file(const std::string& url);

/// The URL as it may be shown to people and in logs; a fixed text if check_url() refuses it.
[[nodiscard]] std::string shown_url(const std::string& url);

/// `value` encoded so that it is taken literally between `before` and `after` in a URL: a user, a
/// password or a parameter is percent-encoded in a URL and escaped in a conninfo string, and quoted
/// there when it is the `whole` value.
[[nodiscard]] std::string fitted(std::string_view before, std::string_view after,
                                 std::string_view value, bool whole);

}  // namespace outbox::store

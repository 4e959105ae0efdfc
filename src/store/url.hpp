// The URL of a store before anything is opened: of which store it is, whether it can be understood, and what of it may be shown.
// The one place that decides about showing.
#pragma once

#include <cstdint>
#include <outbox/error.hpp>
#include <string>
#include <string_view>

namespace outbox::store {

enum class StoreKind : std::uint8_t { postgres, sqlite, unknown };

/// postgresql://, postgres:// or a conninfo string with '='; sqlite:PATH, or a path that ends in .db, .sqlite or .sqlite3.
[[nodiscard]] StoreKind kind_of(std::string_view url) noexcept;

/// Whether a store that this program has understands the URL. The message goes on from the name of the setting ("has a blank")
/// and shows nothing that may be a part of a password.
[[nodiscard]] Status check_url(const std::string& url);

/// Whether what it names on this machine can be used: of SQLite the directory and, if it exists, the file. Opens nothing. Of what
/// check_url() accepts.
[[nodiscard]] Status check_place(const std::string& url);

/// Of SQLite the path as it is written; else empty.
[[nodiscard]] std::string file_of(const std::string& url);

/// For people and logs. What check_url() refuses becomes a fixed text.
[[nodiscard]] std::string shown_url(const std::string& url);

/// `value` encoded so that it is taken literally between `before` and `after` in a URL: a user, a password or a parameter is
/// percent-encoded in a URL and escaped in a conninfo string, and quoted there when it is the `whole` value.
[[nodiscard]] std::string fitted(std::string_view before, std::string_view after,
                                 std::string_view value, bool whole);

}  // namespace outbox::store

// The file of a SQLite store: its path from the URL, and whether it can be used.
#pragma once

#include <outbox/error.hpp>
#include <string>
#include <string_view>

namespace outbox::store::sqlite {

/// The absolute path of the file, which need not exist. The URL is sqlite:PATH,
/// sqlite:///absolute/path, or a bare path. The message of an error follows the name of the
/// setting: "has no path".
[[nodiscard]] Result<std::string> parse_path(std::string_view url);

/// The path as it is written in the URL.
[[nodiscard]] std::string written_path(std::string_view url);

/// Whether the file can be opened for writing or, if `create`, be created. It does not open the
/// file: closing a descriptor of ours would drop the POSIX locks that SQLite holds on the same file
/// in this process. It refuses network file systems, on which the shared memory of the WAL does not
/// work.
[[nodiscard]] Status check_path(const std::string& path, bool create);

}  // namespace outbox::store::sqlite

// Reads back what the file and stdout sinks wrote, with a JSON library that the sinks do not use. A
// line that is not JSON fails the test.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "conformance/sink/suite.hpp"

namespace outbox::test {

[[nodiscard]] std::vector<Arrived> read_json_lines(std::istream& from);
[[nodiscard]] std::vector<Arrived> read_json_lines(const std::string& path);
[[nodiscard]] std::string read_file(const std::string& path);

}  // namespace outbox::test

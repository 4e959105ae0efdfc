#include "cli/exit.hpp"

#include <cstdio>

namespace outbox::cli {

void print_error(const std::string& line) {
  std::string text = "outbox: ";
  for (const char c : line) {
    const auto byte = static_cast<unsigned char>(c);
    const bool blank = byte < 0x20U || byte == 0x7fU;
    if (blank && text.ends_with(' ')) continue;
    text += blank ? ' ' : c;
  }
  while (text.ends_with(' ')) text.pop_back();
  text += '\n';
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace outbox::cli

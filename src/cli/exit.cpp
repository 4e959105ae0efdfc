#include "cli/exit.hpp"

#include "cli/output.hpp"

namespace outbox::cli {

void print_error(const std::string& line) {
  std::string text = plain("outbox: " + line);
  while (text.ends_with(' ')) text.pop_back();
  write_err(text + "\n");
}

}  // namespace outbox::cli

// A table for people: columns as wide as their widest cell.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace outbox::cli {

class Table {
 public:
  explicit Table(std::vector<std::string> head) { add(std::move(head)); }
  /// As many cells as the head has.
  void add(std::vector<std::string> cells);
  /// A line between the rows, not split into columns.
  void note(std::string text) { add({std::move(text)}); }
  /// To stdout.
  void print() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace outbox::cli

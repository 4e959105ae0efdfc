// A table for people: columns as wide as their widest cell.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace outbox::cli {

class Table {
 public:
  explicit Table(std::vector<std::string> head) { add(std::move(head)); }
  /// Adds a row, with as many cells as the head has.
  void add(std::vector<std::string> cells);
  /// Adds a line between the rows, which is not split into columns.
  void note(std::string text) { add({std::move(text)}); }
  /// Prints the table to stdout.
  void print() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace outbox::cli

#include "support/destination.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "demo/order.hpp"
#include "support/temp_dir.hpp"

namespace outbox::demo {
namespace {

using test::make_destination;

class FileDestinationTest : public testing::Test {
 protected:
  void append(const std::string& text) { std::ofstream(path_, std::ios::app) << text; }

  static std::string line(const std::string& reference) {
    return R"({"topic":"customer.events","key":"7","headers":{},"body":)" +
           to_event({.reference = reference, .customer = 7, .version = 1, .cents = 5}).payload +
           "}";
  }

  std::vector<std::string> next(test::Destination& destination) {
    std::vector<std::string> references;
    const auto take = [&](std::string_view text) {
      const test::Delivery message = delivered(text);
      references.push_back(message.id.empty() ? "unreadable" : message.id);
    };
    destination.read(take, std::chrono::milliseconds(0));
    return references;
  }

  using References = std::vector<std::string>;
  const test::TempDir folder_;
  const std::string path_ = folder_.file("delivered.jsonl");
};

TEST_F(FileDestinationTest, is_empty_before_there_is_a_file) {
  const auto destination = make_destination("file:" + path_);
  EXPECT_EQ(next(*destination), References{});
}

TEST_F(FileDestinationTest, is_read_on_from_where_the_last_call_ended) {
  const auto destination = make_destination("file:" + path_);
  append(line("a") + "\n" + line("b") + "\n");
  EXPECT_EQ(next(*destination), (References{"a", "b"}));
  EXPECT_EQ(next(*destination), References{});
  append(line("c") + "\n");
  EXPECT_EQ(next(*destination), References{"c"});
}

TEST_F(FileDestinationTest, a_line_counts_once_it_is_whole) {
  const auto destination = make_destination("file:" + path_);
  const std::string whole = line("a") + "\n";
  append(whole.substr(0, 20));
  EXPECT_EQ(next(*destination), References{});
  append(whole.substr(20));
  EXPECT_EQ(next(*destination), References{"a"});
}

TEST_F(FileDestinationTest, a_line_that_was_cut_off_and_written_anew_is_read) {
  const auto destination = make_destination("file:" + path_);
  append(line("a") + "\n" + line("torn").substr(0, 20));
  EXPECT_EQ(next(*destination), References{"a"});
  std::filesystem::resize_file(path_, line("a").size() + 1);
  append(line("b") + "\n");
  EXPECT_EQ(next(*destination), References{"b"});
}

TEST_F(FileDestinationTest, what_is_no_order_is_reported_as_such) {
  const auto destination = make_destination("file:" + path_);
  append(line("a") + "\nwhat?\n" + line("b") + "\n");
  EXPECT_EQ(next(*destination), (References{"a", "unreadable", "b"}));
}

}  // namespace
}  // namespace outbox::demo

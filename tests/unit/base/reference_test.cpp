// ${env:NAME} and ${file:PATH}.
#include "base/reference.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "support/temp_dir.hpp"

namespace outbox {
namespace {

using ::testing::HasSubstr;

std::string resolved(const std::string& text, const std::string& directory = {}) {
  const auto value = resolve(text, directory);
  return value ? *value : "error: " + value.error().text();
}

TEST(Reference, to_a_variable) {
  setenv("OUTBOX_TEST_WORD", "word", 1);
  EXPECT_EQ(resolved("a ${env:OUTBOX_TEST_WORD} b"), "a word b");
  EXPECT_EQ(resolved("$${env:OUTBOX_TEST_WORD}"), "${env:OUTBOX_TEST_WORD}");
  unsetenv("OUTBOX_TEST_WORD");
  EXPECT_THAT(resolved("${env:OUTBOX_TEST_WORD}"),
              HasSubstr("the environment variable is not set"));
}

TEST(Reference, to_a_file_that_only_its_owner_may_read) {
  const test::TempDir folder;
  std::ofstream(folder.file("password")) << "hush\r\n";
  const auto allow = [&](std::filesystem::perms more) {
    std::filesystem::permissions(folder.file("password"),
                                 std::filesystem::perms::owner_read | more);
  };
  allow(std::filesystem::perms::none);
  EXPECT_EQ(resolved("${file:password}", folder.path()), "hush");
  EXPECT_EQ(resolved("${file:" + folder.file("password") + "}"), "hush");
  allow(std::filesystem::perms::others_read);
  EXPECT_THAT(resolved("${file:password}", folder.path()), HasSubstr("(hint: chmod 600 "));
  EXPECT_THAT(resolved("${file:nope}", folder.path()), HasSubstr("No such file"));
  EXPECT_THAT(resolved("${file:~/x}"), HasSubstr("begins with ~"));
}

TEST(Reference, a_literal_has_none) {
  for (const char* text : {"", "plain", "${env:HOME}", "$${x}", "a$b${", "${${"})
    EXPECT_EQ(resolved(literal(text)), text);
}

TEST(Reference, is_anchored_once) {
  const std::string text = "a${file:x/y}b${file:/z}$${file:literal}${env:HOME}";
  const std::string anchored = anchored_references(text, "/etc/shop");
  EXPECT_EQ(anchored, "a${file:/etc/shop/x/y}b${file:/z}$${file:literal}${env:HOME}");
  EXPECT_EQ(anchored_references(anchored, "/other"), anchored);
}

TEST(Reference, that_is_none) {
  EXPECT_THAT(resolved("${vault:x}"), HasSubstr("use ${env:NAME} or ${file:PATH}"));
  EXPECT_THAT(resolved("${env:X"), HasSubstr("write ${env:NAME} or ${file:PATH}"));
  EXPECT_FALSE(has_references("$100 {x}"));
  EXPECT_EQ(without_references("a${env:X}b${file:y}"), "ab");
}

}  // namespace
}  // namespace outbox

// Tests keys that are not in the settings.
#include <cstdlib>
#include <fstream>

#include "integration/sqs/fixture.hpp"

namespace outbox::test {
namespace {

class SqsCredentials : public SqsSink {
 protected:
  void SetUp() override {
    for (const char* name : kNames) ::unsetenv(name);
  }
  void TearDown() override { SetUp(); }
  [[nodiscard]] std::unique_ptr<Sink> make_without() const { return make({{"access_key", ""}}); }
  void set_url(const char* name, const std::string& path = "") const {
    ::setenv(name, (server_.origin() + path).c_str(), 1);
  }
  /// The error of open(); empty if the sink opens.
  [[nodiscard]] std::string complaint() const {
    const auto sink = make_without();
    const Status opened = sink->open();
    return opened ? "" : opened.error().text();
  }

  static constexpr const char* kNames[] = {"AWS_ACCESS_KEY_ID",
                                           "AWS_SECRET_ACCESS_KEY",
                                           "AWS_SESSION_TOKEN",
                                           "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
                                           "AWS_CONTAINER_CREDENTIALS_FULL_URI",
                                           "AWS_CONTAINER_AUTHORIZATION_TOKEN",
                                           "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
                                           "AWS_EC2_METADATA_SERVICE_ENDPOINT",
                                           "AWS_EC2_METADATA_DISABLED"};
};

TEST_F(SqsCredentials, are_those_of_the_environment) {
  ::setenv("AWS_ACCESS_KEY_ID", "ASIATEST", 1);
  ::setenv("AWS_SECRET_ACCESS_KEY", "another/secret", 1);
  ::setenv("AWS_SESSION_TOKEN", "the+session/token==", 1);
  EXPECT_EQ(complaint(), "");
  ::setenv("AWS_SESSION_TOKEN", "other", 1);
  EXPECT_TRUE(contains(complaint(), "UnrecognizedClientException"));
}

TEST_F(SqsCredentials, are_those_of_the_container) {
  set_url("AWS_CONTAINER_CREDENTIALS_FULL_URI", "/container");
  EXPECT_TRUE(contains(complaint(), "404")) << "it wants a token";
  ::setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "container token", 1);
  EXPECT_EQ(complaint(), "");
  const TempDir folder;
  const auto write = [&](const char* token) { std::ofstream(folder.file("token")) << token; };
  write("wrong token\n");
  ::setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", folder.file("token").c_str(), 1);
  EXPECT_TRUE(contains(complaint(), "404")) << "the file comes first, and may change";
  write("container token\n");
  EXPECT_EQ(complaint(), "");
}

TEST_F(SqsCredentials, are_those_of_the_instance) {
  set_url("AWS_EC2_METADATA_SERVICE_ENDPOINT", "/");
  EXPECT_EQ(complaint(), "");
}

TEST_F(SqsCredentials, that_have_expired_are_fetched_again) {
  set_url("AWS_CONTAINER_CREDENTIALS_FULL_URI", "/rotating");
  const std::string text = complaint();
  EXPECT_TRUE(contains(text, "ExpiredTokenException")) << text;
  EXPECT_TRUE(contains(text, "fetched again")) << text;
  EXPECT_EQ(complaint(), "");
}

TEST_F(SqsCredentials, are_not_asked_for_anywhere) {
  ::setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://192.0.2.1/container", 1);
  EXPECT_TRUE(contains(complaint(), "neither https:// nor on this machine"));
}

TEST_F(SqsCredentials, without_any_it_says_where_it_has_looked) {
  ::setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
  const std::string text = complaint();
  EXPECT_TRUE(contains(text, "there are no credentials")) << text;
  EXPECT_TRUE(contains(text, "AWS_ACCESS_KEY_ID")) << text;
}

}  // namespace
}  // namespace outbox::test

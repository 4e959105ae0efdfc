// Tests where a listener may listen, and which hosts are this machine.
#include "http/address.hpp"

#include <gtest/gtest.h>

namespace outbox::http {
namespace {

TEST(HttpAddress, has_a_host_and_a_port) {
  const auto address = parse_address("127.0.0.1:9464");
  ASSERT_TRUE(address);
  EXPECT_EQ(address->host, "127.0.0.1");
  EXPECT_EQ(address->port, 9464);
  EXPECT_TRUE(address->is_loopback());
  EXPECT_EQ(parse_address("[::1]:0")->text(), "[::1]:0");
  EXPECT_EQ(parse_address("localhost:80")->text(), "localhost:80");
  EXPECT_FALSE(parse_address("0.0.0.0:9464")->is_loopback());
  EXPECT_FALSE(parse_address("[::]:9464")->is_loopback());
}

TEST(HttpAddress, what_is_wrong_is_said) {
  for (const char* const wrong :
       {"", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:80x", "::1:80",
        ":80", "example.com:80", "300.0.0.1:80"}) {
    const auto address = parse_address(wrong);
    ASSERT_FALSE(address) << wrong;
    EXPECT_NE(address.error().hint.find("127.0.0.1:9464"), std::string::npos) << wrong;
  }
}

TEST(HttpAddress, a_name_that_was_made_to_resolve_to_this_machine_is_not_this_machine) {
  for (const char* const own :
       {"localhost", "localhost:9464", "127.0.0.1:1", "[::1]:9464", "[::1]"})
    EXPECT_TRUE(is_loopback_host(own)) << own;
  for (const char* const foreign :
       {"", "evil.example", "evil.example:9464", "127.0.0.1.evil.example",
        "localhost.evil.example:9464", "10.0.0.1:9464"})
    EXPECT_FALSE(is_loopback_host(foreign)) << foreign;
}

}  // namespace
}  // namespace outbox::http

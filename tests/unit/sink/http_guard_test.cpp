// Which addresses may be connected to.
#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <cstring>

#include "sink/curl/guard.hpp"

namespace outbox::test {
namespace {

using sink::curl::Address;
using sink::curl::Guard;
using sink::curl::Network;

Address address(const std::string& text) {
  const auto parsed = Address::parse(text);
  EXPECT_TRUE(parsed.has_value()) << text;
  return parsed.value_or(Address());
}

/// Why the address is refused; empty if it may be connected to.
std::string refusal(const std::string& text, std::vector<Network> allowed = {}) {
  return std::string(Guard(std::move(allowed)).refuses(address(text)).value_or(""));
}

TEST(Guard, refuses_what_is_no_host_of_the_public_internet) {
  for (const char* inside : {"0.0.0.0",
                             "0.1.2.3",
                             "10.0.0.1",
                             "10.255.255.255",
                             "100.64.0.1",
                             "100.127.255.255",
                             "127.0.0.1",
                             "127.1.2.3",
                             "169.254.169.254",
                             "172.16.0.1",
                             "172.31.255.255",
                             "192.0.0.1",
                             "192.0.2.1",
                             "192.88.99.1",
                             "192.168.1.1",
                             "198.18.0.1",
                             "198.19.255.255",
                             "198.51.100.1",
                             "203.0.113.1",
                             "224.0.0.1",
                             "239.255.255.250",
                             "240.0.0.1",
                             "255.255.255.255",
                             "168.63.129.16",
                             "::",
                             "::1",
                             "fe80::1",
                             "febf::1",
                             "fc00::1",
                             "fd00:ec2::254",
                             "ff02::1",
                             "2001::1",
                             "2001:db8::1",
                             "2002:7f00:1::",
                             "3fff::1",
                             "100::1",
                             "4000::1",
                             "64:ff9b:1::a00:1"}) {
    EXPECT_NE(refusal(inside), "") << inside;
  }
}

TEST(Guard, lets_pass_what_is_just_beside_them) {
  for (const char* outside :
       {"1.1.1.1",         "9.255.255.255",   "11.0.0.0",       "100.63.255.255",
        "100.128.0.0",     "126.255.255.255", "128.0.0.0",      "169.253.255.255",
        "169.255.0.0",     "172.15.255.255",  "172.32.0.0",     "192.0.1.0",
        "192.167.255.255", "192.169.0.0",     "198.17.255.255", "198.20.0.0",
        "223.255.255.255", "168.63.129.15",   "2001:200::1",    "2606:4700::1111",
        "2003::1",         "3ffe::1"}) {
    EXPECT_EQ(refusal(outside), "") << outside;
  }
}

TEST(Guard, judges_an_ipv4_address_in_an_ipv6_one_as_itself) {
  EXPECT_EQ(refusal("::ffff:127.0.0.1"), refusal("127.0.0.1"));
  EXPECT_EQ(refusal("::ffff:10.1.2.3"), "a private network");
  EXPECT_EQ(refusal("64:ff9b::a00:1"), "a private network") << "10.0.0.1 behind NAT64";
  EXPECT_EQ(refusal("64:ff9b::a9fe:a9fe"), refusal("169.254.169.254"));
  EXPECT_EQ(refusal("::ffff:1.1.1.1"), "");
  EXPECT_EQ(refusal("64:ff9b::101:101"), "") << "1.1.1.1 behind NAT64";
  EXPECT_NE(refusal("::127.0.0.1"), "") << "IPv4-compatible";
}

TEST(Guard, lets_pass_what_the_settings_allow) {
  const std::vector<Network> allowed{Network::parse("10.1.0.0/16").value(),
                                     Network::parse("fd00:1::/32").value(),
                                     Network::parse("127.0.0.1").value()};
  for (const char* named : {"10.1.0.0", "10.1.255.255", "fd00:1::5", "127.0.0.1", "::ffff:10.1.2.3",
                            "64:ff9b::a01:203"})
    EXPECT_EQ(refusal(named, allowed), "") << named;
  for (const char* other : {"10.0.255.255", "10.2.0.0", "fd00:2::5", "127.0.0.2", "::1"})
    EXPECT_NE(refusal(other, allowed), "") << other;
}

TEST(Guard, networks_are_written_as_prefixes) {
  for (const char* good : {"0.0.0.0/0", "::/0", "10.0.0.0/8", "10.1.2.3/32", "10.1.2.3", "fd00::/8",
                           "::1/128", "::ffff:10.0.0.0/104", "10.1.2.128/25"})
    EXPECT_TRUE(Network::parse(good).has_value()) << good;
  for (const char* bad : {"", "10.0.0.0/33", "::/129", "10.0.0.1/8", "10.1.2.129/25", "10.0.0/8",
                          "0x7f.1", "2130706433", "010.0.0.1", "localhost", "10.0.0.0/",
                          "10.0.0.0/-1", "10.0.0.0/8x", "/8", "fd00::1/8"})
    EXPECT_FALSE(Network::parse(bad).has_value()) << bad;
}

TEST(Guard, reads_addresses_of_sockets) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  ASSERT_EQ(inet_pton(AF_INET, "192.168.1.2", &v4.sin_addr), 1);
  EXPECT_EQ(Address::of(reinterpret_cast<const sockaddr&>(v4)).value().text(), "192.168.1.2");
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  ASSERT_EQ(inet_pton(AF_INET6, "fe80::12", &v6.sin6_addr), 1);
  EXPECT_EQ(Address::of(reinterpret_cast<const sockaddr&>(v6)).value().text(), "fe80::12");
  v6.sin6_family = AF_UNIX;
  EXPECT_FALSE(Address::of(reinterpret_cast<const sockaddr&>(v6)).has_value());
}

}  // namespace
}  // namespace outbox::test

#include "http/address.hpp"

#include <arpa/inet.h>

#include <charconv>

#include "base/error.hpp"

namespace outbox::http {
namespace {

bool is_loopback_address(const std::string& host) {
  if (host == "localhost") return true;
  in_addr four{};
  if (inet_pton(AF_INET, host.c_str(), &four) == 1) return (ntohl(four.s_addr) >> 24U) == 127;
  in6_addr six{};
  return inet_pton(AF_INET6, host.c_str(), &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

bool is_address(const std::string& host) {
  in_addr four{};
  in6_addr six{};
  return host == "localhost" || inet_pton(AF_INET, host.c_str(), &four) == 1 ||
         inet_pton(AF_INET6, host.c_str(), &six) == 1;
}

tl::unexpected<Error> refused(std::string_view text, const char* what) {
  return fail(Errc::invalid_argument, Remedy::fix, "\"" + std::string(text) + "\" " + what,
              "an address of this machine and a port, such as 127.0.0.1:9464 or [::1]:9464");
}

/// Splits at the last colon, which is behind the brackets of an IPv6 address.
struct Parts {
  std::string_view host;
  std::string_view port;
};
Parts split_port(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return {.host = text, .port = {}};
  return {.host = text.substr(0, colon), .port = text.substr(colon + 1)};
}

std::string without_brackets(std::string_view host) {
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    return std::string(host.substr(1, host.size() - 2));
  return std::string(host);
}

}  // namespace

bool Address::is_loopback() const { return is_loopback_address(host); }

std::string Address::text() const {
  const bool six = host.find(':') != std::string::npos;
  return (six ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Result<Address> parse_address(std::string_view text) {
  const auto [host, port] = split_port(text);
  if (port.empty()) return refused(text, "has no port");
  Address address{.host = without_brackets(host), .port = 0};
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (error != std::errc{} || end != port.data() + port.size() || address.port < 0 ||
      address.port > 65535)
    return refused(text, "has a port that is not a number from 0 to 65535");
  if (host.find(':') != std::string_view::npos && host.front() != '[')
    return refused(text, "has an IPv6 address without brackets");
  if (!is_address(address.host)) return refused(text, "does not begin with an IP address");
  return address;
}

bool is_loopback_host(std::string_view host) {
  // A port is optional here, and "::1" has colons of its own.
  const bool has_port = host.ends_with(']') ? false : host.rfind(':') != std::string_view::npos;
  return is_loopback_address(without_brackets(has_port ? split_port(host).host : host));
}

}  // namespace outbox::http

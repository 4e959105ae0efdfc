#include "sink/curl/guard.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "sink/curl/handles.hpp"

namespace outbox::sink::curl {
namespace {

constexpr std::size_t kBits = 128;
/// The number of bits before an IPv4 address in its mapped form, ::ffff:0:0/96.
constexpr std::size_t kMappedBits = 96;

struct Special {
  const char* network;
  std::string_view what;
};

/// Networks that are not hosts of the public internet: the special-purpose address registries of
/// IANA (RFC 6890), multicast, and one public address to which a cloud gave a meaning of its own.
constexpr Special kSpecials[] = {
    {"0.0.0.0/8", "this host"},
    {"10.0.0.0/8", "a private network"},
    {"100.64.0.0/10", "the network between a provider and its customers"},
    {"127.0.0.0/8", "this host"},
    {"168.63.129.16", "the host of a virtual machine in Azure"},
    {"169.254.0.0/16", "the local link, where clouds have their metadata"},
    {"172.16.0.0/12", "a private network"},
    {"192.0.0.0/24", "a network for protocols"},
    {"192.0.2.0/24", "a network for documentation"},
    {"192.88.99.0/24", "a relay of 6to4"},
    {"192.168.0.0/16", "a private network"},
    {"198.18.0.0/15", "a network for benchmarks"},
    {"198.51.100.0/24", "a network for documentation"},
    {"203.0.113.0/24", "a network for documentation"},
    {"224.0.0.0/4", "a multicast group"},
    {"240.0.0.0/4", "a reserved address"},
    {"::", "this host"},
    {"::1", "this host"},
    {"64:ff9b:1::/48", "a private network behind NAT64"},
    {"fc00::/7", "a private network"},
    {"fe80::/10", "the local link"},
    {"ff00::/8", "a multicast group"},
    // This includes Teredo, which carries IPv4 addresses.
    {"2001::/23", "a network for protocols"},
    {"2001:db8::/32", "a network for documentation"},
    {"2002::/16", "an IPv4 address in 6to4"},
    {"3fff::/20", "a network for documentation"},
};

struct KnownNetwork {
  Network network;
  std::string_view what;
};

const std::vector<KnownNetwork>& specials() {
  static const std::vector<KnownNetwork> all = [] {
    std::vector<KnownNetwork> parsed;
    for (const Special& one : kSpecials)
      parsed.push_back({.network = Network::parse(one.network).value(), .what = one.what});
    return parsed;
  }();
  return all;
}

/// The IPv4 address behind an address of NAT64 with the well-known prefix (RFC 6052, 2.1).
Address behind_nat64(const Address& address) {
  static const Network prefix = Network::parse("64:ff9b::/96").value();
  if (!prefix.contains(address)) return address;
  Address inner = Address::parse("0.0.0.0").value();
  std::copy(address.bytes.begin() + 12, address.bytes.end(), inner.bytes.begin() + 12);
  return inner;
}

Address mapped(const void* four_bytes) {
  Address address;
  address.bytes[10] = address.bytes[11] = 0xff;
  std::memcpy(address.bytes.data() + 12, four_bytes, 4);
  return address;
}

}  // namespace

std::optional<Address> Address::of(const sockaddr& socket_address) {
  if (socket_address.sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &socket_address, sizeof v4);
    return mapped(&v4.sin_addr);
  }
  if (socket_address.sa_family != AF_INET6) return std::nullopt;
  sockaddr_in6 v6{};
  std::memcpy(&v6, &socket_address, sizeof v6);
  Address address;
  std::memcpy(address.bytes.data(), &v6.sin6_addr, address.bytes.size());
  return address;
}

std::optional<Address> Address::parse(const std::string& text) {
  in_addr v4{};
  if (::inet_pton(AF_INET, text.c_str(), &v4) == 1) return mapped(&v4);
  Address address;
  if (::inet_pton(AF_INET6, text.c_str(), address.bytes.data()) == 1) return address;
  return std::nullopt;
}

bool Address::is_ipv4() const {
  return Network{.address = mapped("\0\0\0\0"), .bits = kMappedBits}.contains(*this);
}

std::string Address::text() const {
  char text[INET6_ADDRSTRLEN] = "";
  const bool v4 = is_ipv4();
  (void)::inet_ntop(v4 ? AF_INET : AF_INET6, bytes.data() + (v4 ? 12 : 0), text, sizeof text);
  return text;
}

std::optional<Network> Network::parse(std::string_view text) {
  const std::size_t slash = std::min(text.find('/'), text.size());
  const auto address = Address::parse(std::string(text.substr(0, slash)));
  if (!address) return std::nullopt;
  // 10.0.0.0/8 counts the bits of an IPv4 address, ::ffff:10.0.0.0/104 those of an IPv6 address.
  const bool v4 = text.substr(0, slash).find(':') == std::string_view::npos;
  const std::size_t before = v4 ? kMappedBits : 0;
  Network network{.address = *address, .bits = kBits};
  if (slash < text.size()) {
    const char* const end = text.data() + text.size();
    std::size_t length = 0;
    const auto [stop, error] = std::from_chars(text.data() + slash + 1, end, length);
    if (error != std::errc() || stop != end || before + length > kBits) return std::nullopt;
    network.bits = before + length;
  }
  for (std::size_t bit = network.bits; bit < kBits; ++bit) {
    if ((address->bytes[bit / 8] & (0x80U >> (bit % 8))) != 0) return std::nullopt;
  }
  return network;
}

bool Network::contains(const Address& other) const {
  const std::size_t whole = bits / 8;
  if (!std::equal(address.bytes.begin(), address.bytes.begin() + static_cast<std::ptrdiff_t>(whole),
                  other.bytes.begin())) {
    return false;
  }
  if (bits % 8 == 0) return true;
  const unsigned mask = 0xffU << (8 - bits % 8) & 0xffU;
  return ((address.bytes[whole] ^ other.bytes[whole]) & mask) == 0;
}

std::optional<std::string_view> Guard::refuses(const Address& address) const {
  static const Network global = Network::parse("2000::/3").value();  // RFC 4291, 2.4
  const Address inner = behind_nat64(address);
  const auto has = [&](const Network& network) {
    return network.contains(address) || network.contains(inner);
  };
  if (std::any_of(allowed_.begin(), allowed_.end(), has)) return std::nullopt;
  for (const KnownNetwork& special : specials()) {
    if (special.network.contains(inner)) return special.what;
  }
  if (inner.is_ipv4() || global.contains(inner)) return std::nullopt;
  return "no address of the public internet";
}

namespace {

/// Why the address must not be connected to; empty if it may be.
std::string describe_refusal(const Guard& guard, const sockaddr& socket_address) {
  const auto address = Address::of(socket_address);
  if (!address) return "an address that is not of the internet";
  const auto what = guard.refuses(*address);
  return what ? address->text() + ", " + std::string(*what) : "";
}

curl_socket_t open_socket(void* data, curlsocktype /*purpose*/, curl_sockaddr* address) {
  auto& connect = *static_cast<GuardedConnect*>(data);
  if (connect.guard != nullptr) {
    std::string refusal = describe_refusal(*connect.guard, address->addr);
    if (!refusal.empty()) {
      if (connect.refused.empty()) connect.refused = std::move(refusal);
      return CURL_SOCKET_BAD;  // libcurl tries the next address of the name
    }
  }
  return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

}  // namespace

void guard(CURL* easy, GuardedConnect& connect) {
  set(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
  set(easy, CURLOPT_OPENSOCKETDATA, static_cast<void*>(&connect));
}

}  // namespace outbox::sink::curl

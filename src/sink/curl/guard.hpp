// Which addresses a sink may connect to: those of the public internet, and the networks that its
// settings name. A name in a URL may resolve to an address inside the relay's own network, today or
// after a change in DNS. So the decision is about the address, after the name was resolved and
// before a connection is made (OWASP: server-side request forgery). Pure.
#pragma once

#include <curl/curl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace outbox::sink::curl {

/// An IPv6 address, or an IPv4 one in its mapped form (::ffff:192.0.2.1).
struct Address {
  std::array<std::uint8_t, 16> bytes{};

  /// Returns nullopt for an address that is neither IPv4 nor IPv6.
  [[nodiscard]] static std::optional<Address> of(const sockaddr& socket_address);
  /// Parses 192.0.2.1 or 2001:db8::1, and no other spelling.
  [[nodiscard]] static std::optional<Address> parse(const std::string& text);
  [[nodiscard]] bool is_ipv4() const;
  [[nodiscard]] std::string text() const;
};

struct Network {
  Address address;
  std::size_t bits{0};  ///< How many of the 128 bits are fixed.

  /// Parses 10.1.0.0/16, fd00::/8 or a single address. Returns nullopt for other text and for a
  /// network with bits set behind its prefix.
  [[nodiscard]] static std::optional<Network> parse(std::string_view text);
  [[nodiscard]] bool contains(const Address& other) const;
};

class Guard {
 public:
  explicit Guard(std::vector<Network> allowed = {}) : allowed_(std::move(allowed)) {}

  /// What a forbidden address is ("a private network"); nullopt if it may be connected to.
  [[nodiscard]] std::optional<std::string_view> refuses(const Address& address) const;

 private:
  std::vector<Network> allowed_;
};

// ---- Lets a transfer of libcurl connect only where a Guard allows it.

/// The data of one transfer. It must stay in place until the transfer is done.
struct GuardedConnect {
  const Guard* guard{nullptr};  ///< Null lets the transfer connect anywhere.
  std::string refused{};  ///< The first address that was refused: "10.0.0.7, a private network".
};

/// Makes the guard decide at each connection of the transfer, when its address is known
/// (CURLOPT_OPENSOCKETFUNCTION). A reused connection was made by a transfer with the same guard, if
/// all transfers that share the connections have that guard.
void guard(CURL* easy, GuardedConnect& connect);

}  // namespace outbox::sink::curl

// What a destination was found to be, and what a subscription's settings promise there. `outbox
// sinks` prints it; a relay warns of the weaknesses when it opens the sink.
#pragma once

#include <cstdint>
#include <optional>
#include <outbox/error.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace outbox::sink {

/// A setting of destination or sink with which acked events may be lost, read by others or doubled.
struct Weakness {
  std::string setting;  ///< "appendfsync everysec"
  std::string consequence;
  std::string hint{};
};

/// The largest message that can be delivered.
struct MessageLimit {
  std::string setting;    ///< "max_payload of the server"
  std::int64_t bytes{0};  ///< Headers count, so the largest payload is a little smaller.
  std::string hint{};
};

struct Inspection {
  std::string destination;  ///< "https://shop.example.com"
  /// When an event counts as delivered, for a sentence that begins with "acked when".
  std::string acked;
  std::string duplicates;  ///< When an event may arrive twice.
  std::string order;       ///< Among which events the order is kept.
  std::vector<Weakness> weaknesses{};
  /// The limit that is known; the subscription's own limit counts, too.
  std::optional<MessageLimit> largest{};
  /// The limit that the subscription's settings state.
  std::optional<MessageLimit> own{};
};

/// The line "acked when ...; twice: ...; order: ...".
[[nodiscard]] std::string guarantee_line(const Inspection& inspection);

/// Warns of each weakness once, although a sink is opened again and again.
class WeaknessLog {
 public:
  explicit WeaknessLog(std::string sink) : sink_(std::move(sink)) {}
  /// `of` is the server, or the stream on it.
  void warn(std::string_view of, const std::vector<Weakness>& weaknesses);

 private:
  std::string sink_;
  std::set<std::string> warned_;
};

/// The weakness of a connection without TLS.
[[nodiscard]] Weakness in_clear(const std::string& hint);
/// Whether others in the network can read or change what is sent: without TLS, or if the
/// certificate is not checked.
[[nodiscard]] bool is_insecure(const std::vector<Weakness>& weaknesses);

/// A sink that sends over a network is one of these.
class OverNetwork {
 public:
  OverNetwork() = default;
  OverNetwork(const OverNetwork&) = delete;
  OverNetwork& operator=(const OverNetwork&) = delete;
  OverNetwork(OverNetwork&&) = delete;
  OverNetwork& operator=(OverNetwork&&) = delete;
  virtual ~OverNetwork() = default;

  /// See sink::is_insecure(). As open() found it last, also after the connection was lost.
  [[nodiscard]] virtual bool is_insecure() const = 0;
};

}  // namespace outbox::sink

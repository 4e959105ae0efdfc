// Groups parked events by their error. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "store/parked.hpp"

namespace outbox::cli {

/// The parked events of a subscription that have the same error.
struct ErrorGroup {
  std::size_t events{0};
  std::size_t dead{0};  ///< How many of them are not sent again until a person decides.
  std::int64_t first_us{0};
  store::ParkedListing newest{};  ///< The one that was parked last. It has the error.
};

class ParkedErrors {
 public:
  /// Errors may contain an id, so that each event has one of its own. More are only counted.
  static constexpr std::size_t kMostGroups = 10'000;

  void add(const store::ParkedListing& event);

  /// The groups, those with the most events first.
  [[nodiscard]] std::vector<ErrorGroup> groups() const;
  /// How many events belong to groups that are not kept.
  [[nodiscard]] std::size_t others() const { return others_; }

 private:
  std::map<std::pair<std::int32_t, std::string>, ErrorGroup> groups_;
  std::size_t others_{0};
};

}  // namespace outbox::cli

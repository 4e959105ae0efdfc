// Errors in the fields of a person's input. A check reports all of them, not only the first.
#pragma once

#include <algorithm>
#include <outbox/error.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace outbox {

/// The error "topic: is empty".
[[nodiscard]] inline tl::unexpected<Error> bad_field(std::string_view field, std::string_view what,
                                                     std::string hint = {}) {
  return fail(Errc::invalid_argument, std::string(field).append(": ").append(what),
              std::move(hint));
}

struct FieldError {
  std::string field;  ///< "topic", "http.url"
  std::string what;   ///< "is empty"
  std::string hint{};

  [[nodiscard]] Error error() const { return Status(bad_field(field, what, hint)).error(); }
};

class FieldErrors {
 public:
  /// Adds an error unless the field has one: later errors are often its consequences.
  void add(FieldError one) {
    if (!of(one.field)) all_.push_back(std::move(one));
  }
  /// Adds the error of a check of one field.
  void add(std::string field, const Error& error) {
    add({std::move(field), error.message, error.hint});
  }
  /// Adds the error of a check whose message begins with the field.
  void add(const Error& error) {
    const std::size_t end = error.message.find(": ");
    add({error.message.substr(0, end), error.message.substr(end + 2), error.hint});
  }
  /// Whether the field has an error.
  [[nodiscard]] bool of(const std::string& field) const {
    return std::any_of(all_.begin(), all_.end(),
                       [&](const auto& one) { return one.field == field; });
  }
  [[nodiscard]] bool empty() const { return all_.empty(); }
  [[nodiscard]] auto begin() const { return all_.begin(); }
  [[nodiscard]] auto end() const { return all_.end(); }
  /// The first error, for callers that report only one.
  [[nodiscard]] Status status() const {
    return all_.empty() ? Status() : Status(tl::unexpected(all_.front().error()));
  }

 private:
  std::vector<FieldError> all_;
};

/// What `read` makes of the rest, or the first error that it adds to its last argument.
template <class Read, class... Given>
[[nodiscard]] auto read_valid(Read read, Given&&... given)
    -> Result<std::invoke_result_t<Read, Given..., FieldErrors&>> {
  FieldErrors errors;
  auto made = read(std::forward<Given>(given)..., errors);
  OUTBOX_TRY(errors.status());
  return made;
}

}  // namespace outbox

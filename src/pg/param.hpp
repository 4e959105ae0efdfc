// Parameters of statements. Every one is cast in the SQL ($1::bigint), which thus has its type.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <outbox/event.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace outbox::pg {

/// A value. It owns its bytes; only those of borrowed() must stay valid until there is a result.
class Param {
 public:
  /// A value in the text form of the type that the SQL casts it to.
  Param(std::string value) : Param(Kind::text, std::move(value)) {}
  Param(std::string_view value) : Param(std::string(value)) {}
  Param(const char* value) : Param(std::string(value)) {}
  Param(std::int32_t value);                 ///< int
  Param(std::int64_t value);                 ///< bigint
  Param(std::optional<std::int64_t> value);  ///< bigint, or null
  Param(std::same_as<bool> auto value) : Param(Kind::binary, std::string(1, value ? '\1' : '\0')) {}
  Param(const EventId& value);  ///< uuid
  [[nodiscard]] static Param null() { return Param(Kind::null, {}); }
  /// The text, or null if it is empty.
  [[nodiscard]] static Param text_or_null(const std::string& text) {
    return text.empty() ? null() : Param(text);
  }
  /// A timestamptz, in microseconds since 1970, UTC.
  [[nodiscard]] static Param time_us(std::optional<std::int64_t> value);
  /// A bytea, or the bytes of a text.
  [[nodiscard]] static Param borrowed(std::string_view value);
  [[nodiscard]] static Param xid8_array(std::span<const std::uint64_t> values);
  [[nodiscard]] static Param int8_array(std::span<const std::int64_t> values);

  [[nodiscard]] const char* data() const noexcept {
    if (kind_ == Kind::null) return nullptr;
    return kind_ == Kind::borrowed ? view_.data() : value_.data();
  }
  [[nodiscard]] int size() const noexcept {
    return static_cast<int>(kind_ == Kind::borrowed ? view_.size() : value_.size());
  }
  /// 0 for text, 1 for binary.
  [[nodiscard]] int format() const noexcept {
    return kind_ == Kind::binary || kind_ == Kind::borrowed ? 1 : 0;
  }

 private:
  friend class ArrayParam;
  enum class Kind : std::uint8_t { null, text, binary, borrowed };
  Param(Kind kind, std::string value) : kind_(kind), value_(std::move(value)) {}

  Kind kind_;
  std::string value_;
  std::string_view view_;
};

/// Builds a one-dimensional array in the binary form.
class ArrayParam {
 public:
  enum class Element : std::uint32_t {
    boolean = 16,
    bytea = 17,
    int8 = 20,
    text = 25,
    timestamptz = 1184,
    uuid = 2950,
    xid8 = 5069
  };

  explicit ArrayParam(Element element);
  void add(std::string_view bytes);
  void add(std::int64_t value);  ///< int8
  void add(const EventId& id);   ///< uuid
  void add_time(std::optional<Timestamp> value);
  void add_null();
  [[nodiscard]] Param take();

 private:
  std::string bytes_;
  std::uint32_t count_{0};
};

using Params = std::vector<Param>;

/// The arrays that libpq takes. They are valid as long as the parameters.
struct Arguments {
  std::vector<const char*> values;
  std::vector<int> lengths;
  std::vector<int> formats;

  explicit Arguments(std::span<const Param> params);
  [[nodiscard]] int count() const { return static_cast<int>(values.size()); }
};

}  // namespace outbox::pg

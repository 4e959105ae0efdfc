#include "pg/param.hpp"

#include "pg/wire.hpp"

namespace outbox::pg {
namespace {

template <class T>
std::string big_endian(T value) {
  std::string bytes;
  wire::append(bytes, value);
  return bytes;
}

template <class T>
Param make_array(ArrayParam::Element element, std::span<const T> values) {
  ArrayParam array(element);
  for (const T value : values) array.add(static_cast<std::int64_t>(value));
  return array.take();
}

// The length follows dimensions, has-nulls flag and element type.
constexpr std::size_t kLengthAt = 12;

}  // namespace

Param::Param(std::int32_t value) : Param(Kind::binary, big_endian(value)) {}
Param::Param(std::int64_t value) : Param(Kind::binary, big_endian(value)) {}
Param::Param(std::optional<std::int64_t> value) : Param(value ? Param(*value) : null()) {}
Param::Param(const EventId& value)
    : Param(Kind::binary, std::string(value.bytes.begin(), value.bytes.end())) {}

Param Param::time_us(std::optional<std::int64_t> value) {
  return value ? Param(*value - wire::kEpochUs) : null();
}

Param Param::borrowed(std::string_view value) {
  Param param(Kind::borrowed, {});
  // A view without data would be read as NULL.
  param.view_ = value.data() == nullptr ? std::string_view("") : value;
  return param;
}

Param Param::xid8_array(std::span<const std::uint64_t> values) {
  return make_array(ArrayParam::Element::xid8, values);
}

Param Param::int8_array(std::span<const std::int64_t> values) {
  return make_array(ArrayParam::Element::int8, values);
}

ArrayParam::ArrayParam(Element element) {
  wire::append(bytes_, std::int32_t{1});
  wire::append(bytes_, std::int32_t{0});
  wire::append(bytes_, static_cast<std::int32_t>(element));
  wire::append(bytes_, std::int32_t{0});
  wire::append(bytes_, std::int32_t{1});  // This is the lower bound.
}

void ArrayParam::add(std::string_view bytes) {
  wire::append(bytes_, static_cast<std::int32_t>(bytes.size()));
  bytes_ += bytes;
  ++count_;
}

void ArrayParam::add(std::int64_t value) { add(big_endian(value)); }

void ArrayParam::add(const EventId& id) {
  add(std::string_view(reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size()));
}

void ArrayParam::add_time(std::optional<Timestamp> value) {
  if (value) {
    add(value->time_since_epoch().count() - wire::kEpochUs);
  } else {
    add_null();
  }
}

void ArrayParam::add_null() {
  wire::append(bytes_, std::int32_t{-1});
  bytes_[7] = '\1';  // This sets the flag "has nulls".
  ++count_;
}

Param ArrayParam::take() {
  std::string length;
  wire::append(length, static_cast<std::int32_t>(count_));
  bytes_.replace(kLengthAt, length.size(), length);
  return Param(Param::Kind::binary, std::move(bytes_));
}

Arguments::Arguments(std::span<const Param> params) {
  values.reserve(params.size());
  lengths.reserve(params.size());
  formats.reserve(params.size());
  for (const Param& param : params) {
    values.push_back(param.data());
    lengths.push_back(param.size());
    formats.push_back(param.format());
  }
}

}  // namespace outbox::pg

#include "sink/sqs/attributes.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "event/headers.hpp"
#include "event/utf8.hpp"
#include "sink/sqs/names.hpp"

namespace outbox::sink::sqs {
namespace {

/// What consumers need first; the named ones of the settings come after the first two.
constexpr std::array<std::string_view, 2> kAlways{event::kIdHeader, kEncodingAttribute};
constexpr std::array<std::string_view, 6> kThen{
    event::kContentTypeHeader, kKeyAttribute, "outbox-seq", "outbox-type",
    "outbox-aggregate-type",   "outbox-time",
};
constexpr std::string_view kCloudEvents = "ce_";

template <class Names>
std::size_t place_in(const Names& names, std::string_view name) {
  const auto found = std::find_if(names.begin(), names.end(), [&](std::string_view one) {
    return equal_ignoring_case(one, name);
  });
  return static_cast<std::size_t>(found - names.begin());
}

/// The smaller, the earlier.
std::size_t rank_of(std::string_view name, std::span<const std::string> first) {
  if (const std::size_t place = place_in(kAlways, name); place < kAlways.size()) return place;
  std::size_t before = kAlways.size();
  if (const std::size_t place = place_in(first, name); place < first.size()) return before + place;
  before += first.size();
  // CloudEvents are read by their attributes.
  if (name.starts_with(kCloudEvents)) return before;
  return before + 1 + place_in(kThen, name);
}

bool has(std::span<const HeaderView> headers, std::string_view name) {
  return std::any_of(headers.begin(), headers.end(), [&](const HeaderView& header) {
    return equal_ignoring_case(header.name, name);
  });
}

std::vector<HeaderView> headers_of(const Message& message, std::string_view encoding) {
  std::vector<HeaderView> all(message.headers.begin(), message.headers.end());
  if (message.key && !has(all, kKeyAttribute))
    all.push_back({.name = kKeyAttribute, .value = *message.key});
  if (!encoding.empty()) all.push_back({.name = kEncodingAttribute, .value = encoding});
  return all;
}

bool can_be_attribute(const HeaderView& header) {
  return wrong_attribute_name(header.name).empty() && is_sendable(header.value) &&
         !equal_ignoring_case(header.name, kRestAttribute);
}

/// In ASCII, so that SQS takes any text.
std::string as_json(std::span<const HeaderView> headers) {
  auto object = nlohmann::ordered_json::object();
  for (const HeaderView& header : headers)
    object[std::string(header.name)] = std::string(header.value);
  return object.dump(-1, ' ', true);
}

Status check_text(const HeaderView& header) {
  if (event::is_utf8(header.name) && event::is_utf8(header.value)) return {};
  return fail(Errc::invalid_argument,
              "sqs: the header " + in_quotes(header.name) + " is not UTF-8, which SQS cannot send",
              "encode it where the event is written");
}

}  // namespace

std::size_t Attribute::bytes() const {
  return name.size() + std::string_view("String").size() + value.size();
}

Result<std::vector<Attribute>> attributes_of(const Message& message, std::string_view encoding,
                                             std::span<const std::string> first) {
  std::vector<HeaderView> headers = headers_of(message, encoding);
  for (const HeaderView& header : headers) {
    if (Status legal = check_text(header); !legal) return pass(legal);
  }
  std::stable_sort(headers.begin(), headers.end(), [&](const HeaderView& a, const HeaderView& b) {
    return rank_of(a.name, first) < rank_of(b.name, first);
  });
  const auto illegal = std::stable_partition(headers.begin(), headers.end(), can_be_attribute);
  const auto legal = static_cast<std::size_t>(illegal - headers.begin());
  const bool all_fit = legal == headers.size() && legal <= kMostAttributes;
  const std::size_t own = all_fit ? legal : std::min(legal, kMostAttributes - 1);
  std::vector<Attribute> attributes;
  for (const HeaderView& header : std::span(headers).first(own))
    attributes.push_back({.name = std::string(header.name), .value = std::string(header.value)});
  if (!all_fit) {
    attributes.push_back(
        {.name = std::string(kRestAttribute), .value = as_json(std::span(headers).subspan(own))});
  }
  return attributes;
}

}  // namespace outbox::sink::sqs

#include "sink/http/batch.hpp"

#include "base/text.hpp"
#include "event/content_type.hpp"
#include "sink/http/signature.hpp"

namespace outbox::sink::http {

std::string request_id(std::span<const Part> parts) {
  if (parts.size() == 1) return parts.front().id;
  std::string ids;
  for (const Part& part : parts) ids.append(part.id).push_back(' ');
  return "batch-" + digest_of(ids);
}

std::string array_of(std::span<const Part> parts) {
  std::size_t size = 2;
  for (const Part& part : parts) size += part.body.size() + 1;
  std::string array;
  array.reserve(size);
  array += '[';
  for (const Part& part : parts) {
    if (array.size() > 1) array += ',';
    array += part.body;
  }
  return array += ']';
}

std::string_view array_type(std::string_view content_type) {
  // CloudEvents, HTTP protocol binding, 3.3.
  if (equal_ignoring_case(event::media_type(content_type), "application/cloudevents+json"))
    return "application/cloudevents-batch+json; charset=utf-8";
  return event::is_json_type(content_type) ? "application/json" : "";
}

}  // namespace outbox::sink::http

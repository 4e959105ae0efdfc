#include "source/nats/received.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>

#include "base/error.hpp"
#include "base/text.hpp"
#include "event/time_text.hpp"
#include "sink/nats/error_map.hpp"
#include "sink/nats/message.hpp"

namespace outbox::source::nats {
namespace {

constexpr std::string_view kAckPrefix = "$JS.ACK.";
constexpr std::string_view kBlockStart = "NATS/1.0";
/// More than a server lets through, so that memory of others is never taken for headers.
constexpr std::ptrdiff_t kMostHeaderBytes = 1 << 20;

// cnats 3 keeps the subject to answer to, the headers as they came, and the payload one behind the
// other, each with a NUL. They are read there, because its functions take the next header for the
// value of an empty one (before 3.11) and forget the order.
static_assert(NATS_VERSION_NUMBER < 0x040000, "look at where this version keeps the headers");

std::string_view header_block(natsMsg* message) {
  const char* const reply = natsMsg_GetReply(message);
  const char* const begin = reply + std::strlen(reply) + 1;
  const char* const end = natsMsg_GetData(message);
  if (end <= begin || end - begin > kMostHeaderBytes) return {};
  const std::string_view block(begin, static_cast<std::size_t>(end - begin - 1));
  return block.starts_with(kBlockStart) ? block : std::string_view();
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

}  // namespace

std::vector<Header> parse_headers(std::string_view block) {
  std::vector<Header> headers;
  std::size_t at = block.find("\r\n");
  while (at != std::string_view::npos) {
    const std::size_t begin = at + 2;
    at = block.find("\r\n", begin);
    const std::string_view line = block.substr(begin, at - begin);
    const std::size_t colon = line.find(':');
    if (colon == 0 || colon == std::string_view::npos) continue;
    headers.emplace_back(line.substr(0, colon), trimmed(line.substr(colon + 1)));
  }
  return headers;
}

std::string_view ack_subject(natsMsg* message) {
  const char* const reply = natsMsg_GetReply(message);
  if (reply == nullptr || !std::string_view(reply).starts_with(kAckPrefix)) return {};
  return reply;
}

Result<Meta> read_meta(natsMsg* message) {
  jsMsgMetaData* made = nullptr;
  const natsStatus status = natsMsg_GetMetaData(&made, message);
  if (status == NATS_OK) return Meta(made);
  return fail(sink::nats::describe(status, "a message has no place", {}));
}

Received make_received(natsMsg* message, const jsMsgMetaData& meta) {
  Received received{
      .payload = std::string(natsMsg_GetData(message),
                             static_cast<std::size_t>(natsMsg_GetDataLength(message))),
      .headers = parse_headers(header_block(message)),
      .place = fmt::format("{}/{}", meta.Stream, meta.Sequence.Stream),
      .channel = natsMsg_GetSubject(message),
      .tag = meta.Sequence.Stream};
  const auto key = std::find_if(
      received.headers.begin(), received.headers.end(),
      [](const Header& one) { return equal_ignoring_case(one.first, sink::nats::kKeyHeader); });
  if (key != received.headers.end()) received.key = key->second;
  const std::int64_t us = meta.Timestamp / 1000;
  if (event::is_time(us)) received.sent_at = event::timestamp(us);
  return received;
}

}  // namespace outbox::source::nats

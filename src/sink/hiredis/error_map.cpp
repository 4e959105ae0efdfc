#include "sink/hiredis/error_map.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"

namespace outbox::sink::hiredis {
namespace {

using enum Remedy;

struct Meaning {
  std::string_view code;
  Errc errc;
  Remedy remedy;
  const char* hint;                  ///< {0} stands for the sink's name.
  const char* Hints::*own{nullptr};  ///< The hint that replaces `hint` where kinds of sinks differ.
};

constexpr const char* kReplicas =
    "fewer replicas are connected than min-replicas-to-write: check the replicas";
constexpr const char* kReplica =
    "the server is a replica: {0}.url must lead to the master, or name all servers with commas";
constexpr const char* kLoading = "the server loads its data; nothing";
constexpr const char* kDisk = "the server cannot write to its disk: check the disk and its log";
constexpr const char* kBusy = "a script of another client runs too long on the server: SCRIPT KILL";
constexpr const char* kLogin = "check {0}.username and {0}.password";
constexpr const char* kCluster =
    "outbox does not speak the protocol of Redis Cluster: use a server or a proxy that is no cluster node";
constexpr const char* kScriptGone = "nothing: the sink loads its script again";
constexpr const char* kClients = "raise maxclients of the server, or close connections";

constexpr Meaning kMeanings[] = {
    {"OOM", Errc::unavailable, retry_call, nullptr, &Hints::memory},
    {"NOREPLICAS", Errc::unavailable, retry_call, kReplicas},
    {"READONLY", Errc::unavailable, reconnect, kReplica},
    {"MASTERDOWN", Errc::unavailable, reconnect, kReplica},
    {"UNBLOCKED", Errc::unavailable, reconnect, kReplica},
    {"LOADING", Errc::unavailable, retry_call, kLoading},
    {"MISCONF", Errc::unavailable, retry_call, kDisk},
    {"BUSY", Errc::unavailable, retry_call, kBusy},
    {"NOSCRIPT", Errc::unavailable, reconnect, kScriptGone},
    {"NOAUTH", Errc::permission_denied, fix, kLogin},
    {"WRONGPASS", Errc::permission_denied, fix, kLogin},
    {"DENIED", Errc::permission_denied, fix,
     "the server accepts only connections from its own machine: give it a password or a bind address"},
    {"NOPERM", Errc::permission_denied, fix, nullptr, &Hints::rights},
    {"WRONGTYPE", Errc::invalid_argument, fix, nullptr, &Hints::type},
    {"MOVED", Errc::unsupported, fix, kCluster},
    {"ASK", Errc::unsupported, fix, kCluster},
    {"TRYAGAIN", Errc::unsupported, fix, kCluster},
    {"CROSSSLOT", Errc::unsupported, fix, kCluster},
    {"CLUSTERDOWN", Errc::unavailable, fix, kCluster},
    {kRefused, Errc::already_exists, fix, nullptr, &Hints::refused},
};

/// Errors without a code of their own, told apart by the beginning of their text after "ERR ".
constexpr Meaning kTexts[] = {
    {"The user executing the script", Errc::permission_denied, fix, nullptr,
     &Hints::rights},  // The text of Redis 7.0.
    {"max number of clients reached", Errc::unavailable, retry_call, kClients},
    {"AUTH ", Errc::permission_denied, fix, kLogin},
    {"invalid password", Errc::permission_denied, fix, kLogin},  // The text before Redis 6.
    {"Client sent AUTH, but no password is set", Errc::permission_denied, fix, kLogin},
    {"DB index is out of range", Errc::invalid_argument, fix,
     "the path of {0}.url is the number of the database; the server's setting databases says how many "
     "there are"},
    {"unknown command", Errc::unsupported, fix, nullptr, &Hints::commands},
    // The text within a script.
    {"Unknown Redis command", Errc::unsupported, fix, nullptr, &Hints::commands},
};

/// The reply to a command larger than proto-max-bulk-len. The server says nothing else, closes the
/// connection, and has not read what follows.
constexpr std::string_view kTooLarge = "Protocol error: invalid bulk length";
constexpr const char* kTooLargeHint =
    "the event is larger than proto-max-bulk-len of the server allows; raise it there";

constexpr std::string_view kNoCode = "ERR";

/// Cuts the quoted arguments off errors about unknown commands: a password may be among them.
std::string_view without_arguments(std::string_view reply) {
  constexpr std::size_t kLongest = 300;
  return reply.substr(0, std::min(reply.find(", with args beginning with"), kLongest));
}

/// Removes the place in a script, which Redis before 7 puts before its error: "@user_script: 10:
/// -OOM command not allowed".
std::string_view without_place(std::string_view reply) {
  constexpr std::string_view kScript = "@user_script: ";
  if (!reply.starts_with(kScript)) return reply;
  const std::size_t colon = reply.find(": ", kScript.size());
  if (colon == std::string_view::npos) return reply;
  reply.remove_prefix(colon + 2);
  if (reply.starts_with('-')) reply.remove_prefix(1);
  return reply;
}

std::string_view text_after_code(std::string_view reply) {
  reply = without_place(reply);
  if (reply.starts_with("ERR ")) reply.remove_prefix(4);
  return reply;
}

bool is_too_large(std::string_view reply) {
  return parse_code(reply) == kNoCode && text_after_code(reply).starts_with(kTooLarge);
}

/// The part of a reply that people are shown.
std::string_view shown(std::string_view reply) {
  std::string_view text = without_arguments(without_place(reply));
  if (parse_code(reply) == kRefused) text.remove_prefix(std::min(kRefused.size() + 1, text.size()));
  return text;
}

const Meaning* find_meaning(std::string_view reply) {
  const std::string_view code = parse_code(reply);
  for (const Meaning& meaning : kMeanings) {
    if (meaning.code == code) return &meaning;
  }
  for (const Meaning& meaning : kTexts) {
    if (code == kNoCode && text_after_code(reply).starts_with(meaning.code)) return &meaning;
  }
  return nullptr;
}

}  // namespace

std::string_view parse_code(std::string_view reply) {
  reply = without_place(reply);
  const std::string_view word = reply.substr(0, reply.find(' '));
  const bool is_code = !word.empty() && std::all_of(word.begin(), word.end(), is_upper);
  return is_code ? word : kNoCode;
}

Outcome::Kind outcome_kind(std::string_view reply) {
  const bool refused = parse_code(reply) == kRefused;
  return refused || is_too_large(reply) ? Outcome::Kind::rejected : Outcome::Kind::blocked;
}

Error describe(std::string_view reply, std::string_view where, const Purpose& purpose) {
  Error error{.code = Errc::unavailable,
              .remedy = reconnect,
              .effect = Effect::none,
              .message = fmt::format("{}: {}: {}", purpose.sink, where, shown(reply)),
              .hint = {},
              .origin = fmt::format("redis:{}", parse_code(reply))};
  if (is_too_large(reply)) {
    error.code = Errc::too_large;
    error.remedy = fix;
    error.hint = kTooLargeHint;
  } else if (const Meaning* const meaning = find_meaning(reply)) {
    error.code = meaning->errc;
    error.remedy = meaning->remedy;
    error.hint = meaning->own == nullptr ? fmt::format(fmt::runtime(meaning->hint), purpose.sink)
                                         : purpose.hints.*(meaning->own);
  }
  return error;
}

}  // namespace outbox::sink::hiredis

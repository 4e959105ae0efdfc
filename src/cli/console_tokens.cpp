// outbox console token: adds, lists and removes the tokens that the console asks for
// (docs/design/console.md).
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "base/units.hpp"
#include "cli/acting.hpp"
#include "cli/exit.hpp"
#include "cli/output.hpp"
#include "cli/table.hpp"
#include "cli/verbs.hpp"
#include "console/access.hpp"
#include "console/authenticator.hpp"
#include "event/time_text.hpp"

namespace outbox::cli {
namespace {

struct TokenOptions {
  std::string name;
  std::string role;
  std::optional<std::string> expires;
  bool payloads{false};
  bool json{false};
};

std::int64_t now_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// Names stand in logs, in the audit and in answers.
void check_name(const std::string& name) {
  constexpr std::size_t kMost = 64;
  if (name.empty() || name.size() > kMost || name != plain(name))
    throw Failure(kUsage, "NAME: a token's name has 1 to 64 characters, on one line",
                  "the name of whoever will have it, such as anna");
}

void check_role(const std::string& role) {
  if (from_word<console::Role>(role)) return;
  const auto& words = kWords<console::Role>;
  const std::vector<std::string_view> known(words.begin(), words.end());
  throw Failure(kUsage, "--role " + role + ": there is no such role",
                did_you_mean(role, known, "viewer, operator or admin"));
}

std::optional<std::int64_t> parse_expiry(const std::optional<std::string>& text) {
  if (!text) return {};
  std::optional<std::int64_t> at = event::read_time(*text);
  if (!at) {
    const auto from_now = parse_duration(*text);
    if (!from_now)
      throw Failure(kUsage, "--expires " + *text + ": is not a time",
                    "in how long, such as 90d; or 2027-01-05T08:09:12Z");
    at = now_us() + std::chrono::duration_cast<std::chrono::microseconds>(*from_now).count();
  }
  if (*at <= now_us())
    throw Failure(kUsage, "--expires " + *text + ": that time has passed", "a time to come");
  return at;
}

/// Ends the verb on an error. No role of the outbox may write tokens.
void must_be_owner(Status changed) {
  if (!changed && changed.error().code == Errc::permission_denied)
    changed.error().hint = "only the owner may: use the login that runs outbox migrate";
  must(changed);
}

Json to_json(const store::ConsoleToken& token) {
  return {{"name", token.name},
          {"role", token.role},
          {"payloads", token.payloads},
          {"created_by", token.created_by},
          {"created_at",
           time_or_null(token.created_us == 0 ? std::nullopt : std::optional(token.created_us))},
          {"expires_at", time_or_null(token.expires_us)},
          {"expired", token.expires_us && *token.expires_us <= now_us()}};
}

int add(const TokenOptions& options, const Context& context) {
  check_name(options.name);
  check_role(options.role);
  store::ConsoleToken token{.name = options.name,
                            .digest = {},
                            .role = options.role,
                            .payloads = options.payloads,
                            .created_by = this_user(),
                            .expires_us = parse_expiry(options.expires)};
  const auto secret = console::generate_token();
  if (!secret) throw Failure(kNotNow, "this machine has no random numbers now", "try again");
  token.digest = console::digest_token(*secret);
  const auto decided = acting("console token add", {{"name", options.name},
                                                    {"role", options.role},
                                                    {"payloads", options.payloads},
                                                    {"expires", given(options.expires)}});
  const auto store = Context::checked_store(context.store_configuration(), decided);
  must_be_owner(must(store->console_tokens())->add(token));
  if (options.json) {
    token.created_us = now_us();
    Json json = to_json(token);
    json["token"] = *secret;
    print_json(json);
    return kOk;
  }
  print("{}\n", *secret);
  write_err(
      "The token is shown once; the store keeps only its hash. The console knows it within 5 s.\n");
  return kOk;
}

int list(const TokenOptions& options, const Context& context) {
  const auto store = Context::checked_store(context.store_configuration());
  const auto tokens = must(must(store->console_tokens())->list());
  if (options.json) {
    Json all = Json::array();
    for (const store::ConsoleToken& token : tokens) all.push_back(to_json(token));
    print_json({{"tokens", all}});
    return kOk;
  }
  if (tokens.empty()) {
    print("there is no token: outbox console token add NAME --role viewer|operator|admin\n");
    return kOk;
  }
  Table table({"NAME", "ROLE", "PAYLOADS", "MADE BY", "MADE", "EXPIRES"});
  for (const store::ConsoleToken& token : tokens) {
    const bool expired = token.expires_us && *token.expires_us <= now_us();
    table.add({plain(token.name), token.role, token.payloads ? "yes" : "no",
               plain(token.created_by), event::time_text(token.created_us),
               token.expires_us
                   ? event::time_text(*token.expires_us) + (expired ? " (expired)" : "")
                   : "never"});
  }
  table.print();
  return kOk;
}

int remove(const TokenOptions& options, const Context& context) {
  const auto decided = acting("console token remove", {{"name", options.name}});
  const auto store = Context::checked_store(context.store_configuration(), decided);
  must_be_owner(must(store->console_tokens())->remove(options.name));
  print("the token {} is removed: the console refuses it within 5 s\n", plain(options.name));
  return kOk;
}

void add_adding(CLI::App& token, Context& context) {
  auto options = std::make_shared<TokenOptions>();
  CLI::App& verb = add_verb(token, "add", "Make a token, and show it once",
                            [options, &context] { return add(*options, context); });
  add_argument(verb, "NAME", &options->name, "Who will have it; the audit names it");
  add_option(
      verb, "--role", &options->role, "viewer|operator|admin",
      "viewer looks; operator also retries, discards, pauses, resumes and replays; admin does everything");
  add_option(verb, "--payloads", &options->payloads, {},
             "It also shows payloads and headers of events, and results of tasks");
  add_option(
      verb, "--expires", &options->expires, "TIME",
      "Until when: in how long, such as 90d, or RFC 3339; without it the token does not expire");
  add_option(verb, "--json", &options->json, {}, "As JSON");
  add_footer(
      verb,
      "Only the owner of the outbox, the login that runs outbox migrate, may add and remove tokens.");
  add_example(verb, "outbox console token add anna --role operator --expires 90d");
}

void add_listing(CLI::App& token, Context& context) {
  auto options = std::make_shared<TokenOptions>();
  CLI::App& verb = add_verb(token, "list", "Show the tokens that there are",
                            [options, &context] { return list(*options, context); });
  add_option(verb, "--json", &options->json, {}, "As JSON");
  add_example(verb, "outbox console token list");
}

void add_removing(CLI::App& token, Context& context) {
  auto options = std::make_shared<TokenOptions>();
  CLI::App& verb = add_verb(token, "remove", "Remove a token",
                            [options, &context] { return remove(*options, context); });
  add_argument(verb, "NAME", &options->name, "Which one");
  add_example(verb, "outbox console token remove anna");
}

}  // namespace

void add_console_tokens(CLI::App& console, Context& context) {
  CLI::App& token = add_verb(console, "token", "Manage who may use the console");
  add_adding(token, context);
  add_listing(token, context);
  add_removing(token, context);
}

}  // namespace outbox::cli

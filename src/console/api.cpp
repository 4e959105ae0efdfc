#include "console/api.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/json.hpp"
#include "base/text.hpp"

namespace outbox::console {
namespace {

using Json = nlohmann::json;
using Kind = Parameter::Kind;

constexpr const char* kGuide = "docs/guide/console.md lists the parameters";

tl::unexpected<Problem> refuse(int status, std::string title, std::string hint) {
  return tl::unexpected(
      Problem{.status = status, .title = std::move(title), .hint = std::move(hint)});
}

std::vector<std::string_view> segments(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    path.remove_prefix(1);  // the slash
    const auto end = std::min(path.find('/'), path.size());
    parts.push_back(path.substr(0, end));
    path.remove_prefix(end);
  }
  return parts;
}

bool is_name(std::string_view segment) { return segment.starts_with('{'); }

struct Match {
  const Operation* operation{nullptr};
  std::string_view name{};  ///< The segment that is a name, not decoded.
};

std::optional<Match> match(const Operation& operation,
                           const std::vector<std::string_view>& segments_of_path) {
  const auto wanted = segments(operation.path);
  if (wanted.size() != segments_of_path.size()) return {};
  Match found{.operation = &operation};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (is_name(wanted[i]))
      found.name = segments_of_path[i];
    else if (wanted[i] != segments_of_path[i])
      return {};
  }
  const bool has_name = std::any_of(wanted.begin(), wanted.end(), is_name);
  if (has_name && found.name.empty()) return {};
  return found;
}

/// What is at a path. "/parked/retry" is no event that is named "retry".
std::vector<Match> matches_at(std::string_view path) {
  std::vector<Match> all;
  const auto parts = segments(path);
  for (const Operation& one : operations()) {
    if (const auto found = match(one, parts)) all.push_back(*found);
  }
  const auto is_exact = [](const Match& one) { return one.name.empty(); };
  if (std::any_of(all.begin(), all.end(), is_exact))
    std::erase_if(all, [&](const Match& one) { return !is_exact(one); });
  return all;
}

tl::expected<Match, Problem> find_operation(const ApiRequest& request) {
  const std::string allowed = allowed_methods(request.path);
  if (allowed.empty())
    return refuse(404, "there is nothing at this path of the API",
                  "docs/guide/console.md lists what there is");
  for (const Match& one : matches_at(request.path)) {
    if (one.operation->method == request.method) return one;
  }
  return refuse(405, "this path does not take the method " + std::string(request.method),
                "it takes " + allowed);
}

const Parameter* find_parameter(const Operation& operation, std::string_view name) {
  const auto found = std::find_if(operation.parameters.begin(), operation.parameters.end(),
                                  [&](const Parameter& one) { return one.name == name; });
  return found == operation.parameters.end() ? nullptr : &*found;
}

Problem unknown_parameter(const Operation& operation, const std::string& name) {
  std::vector<std::string_view> known;
  for (const Parameter& one : operation.parameters) known.push_back(one.name);
  return {.status = 400,
          .title = "unknown parameter: " + name,
          .hint = did_you_mean(name, known, kGuide)};
}

/// Options and words that stand alone; the latter come last, behind "--".
struct Words {
  std::vector<std::string> options{};
  std::vector<std::string> alone{};

  void add(std::string_view option, const std::string& value) {
    if (option.empty())
      alone.push_back(value);
    else
      options.push_back(std::string(option) + "=" + value);
  }
};

Problem wrong_type(const Parameter& parameter, std::string_view wanted) {
  return {.status = 400,
          .title = "the parameter " + std::string(parameter.name) + " is no " + std::string(wanted),
          .hint = kGuide};
}

tl::expected<void, Problem> add_value(const Parameter& parameter, const Json& value, Words& into) {
  switch (parameter.kind) {
    case Kind::text:
      if (!value.is_string()) return tl::unexpected(wrong_type(parameter, "text"));
      into.add(parameter.option, value.get<std::string>());
      return {};
    case Kind::number:
      if (!value.is_number_unsigned()) return tl::unexpected(wrong_type(parameter, "whole number"));
      if (value.get<std::uint64_t>() > parameter.most)
        return refuse(400, "the parameter " + std::string(parameter.name) + " is too large",
                      "at most " + std::to_string(parameter.most));
      into.add(parameter.option, write_json(value));
      return {};
    case Kind::flag:
      if (!value.is_boolean()) return tl::unexpected(wrong_type(parameter, "true or false"));
      if (value.get<bool>()) into.options.emplace_back(parameter.option);
      return {};
    case Kind::texts:
      if (!value.is_array()) return tl::unexpected(wrong_type(parameter, "list of texts"));
      for (const Json& one : value) {
        if (!one.is_string()) return tl::unexpected(wrong_type(parameter, "list of texts"));
        into.add(parameter.option, one.get<std::string>());
      }
      return {};
  }
  return {};
}

tl::expected<void, Problem> add_query(const ApiRequest& request, const Operation& operation,
                                      Words& into) {
  for (const auto& [name, text] : request.query) {
    const Parameter* const parameter = find_parameter(operation, name);
    if (parameter == nullptr) return tl::unexpected(unknown_parameter(operation, name));
    if (request.query.count(name) > 1)
      return refuse(400, "the parameter " + name + " is given more than once", "give it once");
    // A value of a query is text, whatever its parameter wants.
    const Json value = parameter->kind == Kind::number ? try_parse_json<Json>(text) : Json(text);
    if (auto added = add_value(*parameter, value, into); !added) return added;
  }
  return {};
}

tl::expected<void, Problem> add_body(const ApiRequest& request, const Operation& operation,
                                     Words& into) {
  if (!request.query.empty())
    return refuse(400, "parameters of a change stand in its body, not in the address",
                  "send a JSON object");
  const Json body = request.body.empty() ? Json::object() : try_parse_json<Json>(request.body);
  if (!body.is_object())
    return refuse(400, "the body is no JSON object", R"(send an object such as {"apply": true})");
  for (const auto& [name, value] : body.items()) {
    const Parameter* const parameter = find_parameter(operation, name);
    if (parameter == nullptr) return tl::unexpected(unknown_parameter(operation, name));
    if (value.is_null()) continue;
    if (auto added = add_value(*parameter, value, into); !added) return added;
  }
  return {};
}

/// A name in a path, decoded (RFC 3986, section 2.1).
std::optional<std::string> decode(std::string_view text) {
  const auto digit = [&](std::size_t at) { return at < text.size() ? hex_value(text[at]) : -1; };
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const int high = digit(i + 1);
    const int low = digit(i + 2);
    if (high < 0 || low < 0) return {};
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return decoded;
}

bool has_zero(const std::vector<std::string>& words) {
  return std::any_of(words.begin(), words.end(),
                     [](const std::string& word) { return word.find('\0') != std::string::npos; });
}

}  // namespace

std::string allowed_methods(std::string_view path) {
  // The console answers these without a verb.
  for (const std::string_view own : {"/session", "/live", "/openapi.json"}) {
    if (path == own) return "GET, HEAD";
  }
  for (const std::string_view own : {"/login", "/logout"}) {
    if (path == own) return "POST";
  }
  const auto found = matches_at(path);
  if (found.empty()) return {};
  const std::string method(found.front().operation->method);
  return method == "GET" ? "GET, HEAD" : method;
}

tl::expected<Call, Problem> translate(const ApiRequest& request) {
  const auto found = find_operation(request);
  if (!found) return tl::unexpected(found.error());
  const Operation& operation = *found->operation;
  Words words;
  if (!found->name.empty()) {
    const auto name = decode(found->name);
    if (!name) return refuse(400, "the path is not encoded as it should be", "%2F is a slash");
    words.add(operation.segment_option, *name);
  }
  const auto added = request.method == "GET" ? add_query(request, operation, words)
                                             : add_body(request, operation, words);
  if (!added) return tl::unexpected(added.error());
  Call call{.operation = &operation, .words = {operation.words.begin(), operation.words.end()}};
  call.words.insert(call.words.end(), words.options.begin(), words.options.end());
  const bool applies =
      std::find(words.options.begin(), words.options.end(), "--apply") != words.options.end();
  if (!applies && operation.acts_on_names) call.words.emplace_back("--preview");
  if (!words.alone.empty()) call.words.emplace_back("--");
  call.words.insert(call.words.end(), words.alone.begin(), words.alone.end());
  // The command line ends a word there.
  if (has_zero(call.words)) return refuse(400, "a value has a byte 0", "leave it out");
  return call;
}

Answer answer(const Operation& operation, const Outcome& outcome, std::string_view number) {
  // 0: done; 3: done, and something is wrong, as the document says.
  if (outcome.code == 0 || (outcome.code == 3 && !outcome.output.empty())) {
    if (operation.document) return {.body = outcome.output};
    const Json json{{"output", outcome.output}};
    return {.body = write_json(json, {.indent = 2}) + "\n"};
  }
  std::string message;
  for (const std::string& line : outcome.errors) message += (message.empty() ? "" : "\n") + line;
  if (outcome.code == 5) return {.status = 503, .body = problem_from(503, message).json()};
  if (outcome.unexpected) {
    const Problem problem{
        .status = 500,
        .title = "the request could not be carried out",
        .hint = "the console's log says why, under the number " + std::string(number)};
    return {.status = 500, .body = problem.json()};
  }
  const bool names_one = operation.path.find('{') != std::string_view::npos;
  const int status = outcome.code == 2 ? 400 : operation.method == "GET" && names_one ? 404 : 409;
  return {.status = status, .body = problem_from(status, message).json()};
}

}  // namespace outbox::console

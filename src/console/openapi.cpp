#include "console/openapi.hpp"

#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "console/operations.hpp"

namespace outbox::console {
namespace {

using OpenApi = nlohmann::ordered_json;
using Kind = Parameter::Kind;

constexpr const char* kJsonType = "application/json";

OpenApi schema_ref(const std::string& name) { return {{"$ref", "#/components/schemas/" + name}}; }

OpenApi content(const char* type, OpenApi schema) {
  return {{type, {{"schema", std::move(schema)}}}};
}

/// "tasks-schedule-list" of the words of a verb.
std::string schema_name(const Operation& operation) {
  std::string name;
  for (const std::string_view word : operation.words) {
    if (word.starts_with('-')) continue;
    if (!name.empty()) name += '-';
    name += word;
  }
  return name;
}

OpenApi type_of_parameter(const Parameter& parameter) {
  switch (parameter.kind) {
    case Kind::text: return {{"type", "string"}};
    case Kind::number: {
      OpenApi number{{"type", "integer"}, {"minimum", 0}};
      if (parameter.most != UINT64_MAX) number["maximum"] = parameter.most;
      return number;
    }
    case Kind::flag: return {{"type", "boolean"}};
    case Kind::texts: return {{"type", "array"}, {"items", {{"type", "string"}}}};
  }
  return {};
}

std::string option_help(const Parameter& parameter) {
  return parameter.option.empty() ? "the words without an option"
                                  : "as " + std::string(parameter.option);
}

/// The name in "/events/{id}/payload"; empty if there is none.
std::string_view path_name(std::string_view path) {
  const auto begin = path.find('{');
  if (begin == std::string_view::npos) return {};
  return path.substr(begin + 1, path.find('}') - begin - 1);
}

OpenApi parameters(const Operation& operation) {
  OpenApi all = OpenApi::array();
  if (const auto name = path_name(operation.path); !name.empty())
    all.push_back({{"name", name},
                   {"in", "path"},
                   {"required", true},
                   {"schema", {{"type", "string"}, {"minLength", 1}}}});
  if (operation.method != "GET") return all;
  for (const Parameter& one : operation.parameters)
    all.push_back({{"name", one.name},
                   {"in", "query"},
                   {"description", option_help(one)},
                   {"schema", type_of_parameter(one)}});
  return all;
}

/// Every change has it: no page of another site can send it.
OpenApi own_header() {
  return {{"name", "Outbox-Console"},
          {"in", "header"},
          {"required", true},
          {"schema", {{"type", "string"}, {"enum", {"1"}}}}};
}

OpenApi request_body(const Operation& operation) {
  OpenApi members = OpenApi::object();
  for (const Parameter& one : operation.parameters) {
    OpenApi member = type_of_parameter(one);
    member["type"] = OpenApi::array({member["type"], "null"});  // As if it were left out.
    member["description"] = option_help(one);
    members[std::string(one.name)] = std::move(member);
  }
  OpenApi schema{
      {"type", "object"}, {"properties", std::move(members)}, {"additionalProperties", false}};
  return {{"required", true}, {"content", content(kJsonType, std::move(schema))}};
}

OpenApi responses(const std::string& description, OpenApi success) {
  return {{"200", {{"description", description}, {"content", std::move(success)}}},
          {"default",
           {{"description", "Why not, and what to do"},
            {"content", content("application/problem+json", schema_ref("problem"))}}}};
}

/// "Showing what outbox parked list shows", and who may ask.
std::string describe(const Operation& operation) {
  std::string verb = "outbox";
  for (const std::string_view word : operation.words) {
    if (word != "--json") verb += " " + std::string(word);
  }
  std::string text = operation.document ? "The document of `" + verb + " --json`."
                                        : "Does what `" + verb + "` does.";
  text += " Needs the role " + std::string(to_word(operation.role));
  if (operation.contents == Contents::all) text += ", and the right to see payloads";
  text += ".";
  if (operation.contents == Contents::some)
    text += " Payloads, headers and results are left out for whoever may not see them.";
  return text;
}

/// "get_events_id_payload" of GET /events/{id}/payload.
std::string operation_id(std::string_view method, std::string_view path) {
  std::string id = to_lower(method);
  for (const char c : path) {
    if (c == '/') id += '_';
    if (c != '/' && c != '{' && c != '}') id += c == '.' ? '_' : c;
  }
  return id;
}

OpenApi to_operation(const Operation& operation) {
  OpenApi made{{"operationId", operation_id(operation.method, operation.path)},
               {"description", describe(operation)},
               {"parameters", parameters(operation)}};
  if (operation.method != "GET") {
    made["parameters"].push_back(own_header());
    made["requestBody"] = request_body(operation);
  }
  made["responses"] =
      responses(operation.document ? "The document" : "What the command line says",
                content(kJsonType, operation.document ? schema_ref(schema_name(operation))
                                                      : schema_ref("output")));
  return made;
}

OpenApi fixed(const char* id, const char* description, OpenApi success) {
  return {{"operationId", id},
          {"description", description},
          {"responses", responses("It is answered", std::move(success))}};
}

void add_fixed_paths(OpenApi& paths) {
  const OpenApi object{{"type", "object"}};
  paths["/session"]["get"] = fixed("get_session", "Who asks, and what they may do.",
                                   content(kJsonType, schema_ref("session")));
  OpenApi login = fixed("post_login", "Begins a session: a cookie stands for the token.",
                        content(kJsonType, schema_ref("session")));
  login["parameters"] = OpenApi::array({own_header()});
  login["requestBody"] = {
      {"required", true},
      {"content", content(kJsonType, {{"type", "object"},
                                      {"required", {"token"}},
                                      {"properties", {{"token", {{"type", "string"}}}}}})}};
  login["security"] = OpenApi::array();
  paths["/login"]["post"] = std::move(login);
  OpenApi logout = fixed("post_logout", "Ends the session.", content(kJsonType, object));
  logout["parameters"] = OpenApi::array({own_header()});
  logout["requestBody"] = {{"required", true}, {"content", content(kJsonType, object)}};
  paths["/logout"]["post"] = std::move(logout);
  paths["/live"]["get"] =
      fixed("get_live",
            "Server-sent events, one in a response: `status` with the document of /status, or "
            "`problem`. The client asks again after `retry`.",
            OpenApi{{"text/event-stream", OpenApi::object()}});
  paths["/openapi.json"]["get"] =
      fixed("get_openapi", "This document.", content(kJsonType, {{"type", "object"}}));
}

OpenApi text_member(const char* description) {
  return {{"type", "string"}, {"description", description}};
}

OpenApi own_schemas() {
  return {
      {"problem",
       {{"type", "object"},
        {"required", {"title", "status"}},
        {"properties",
         {{"title", text_member("What happened")},
          {"status", {{"type", "integer"}}},
          {"hint", text_member("What to do about it")}}}}},
      {"output",
       {{"type", "object"},
        {"required", {"output"}},
        {"properties", {{"output", text_member("The words of the command line")}}}}},
      {"session",
       {{"type", "object"},
        {"required", {"person", "role", "payloads", "login", "version", "store"}},
        {"properties",
         {{"person", text_member("The name of the token")},
          {"role", {{"enum", {"viewer", "operator", "admin"}}}},
          {"payloads", {{"type", "boolean"}, {"description", "Whether payloads are shown"}}},
          {"login", {{"type", "boolean"}, {"description", "Whether the console asks for tokens"}}},
          {"version", text_member("Of the program")},
          {"store", text_member("Where it is, without a password")}}}}}};
}

void replace_each(std::string& text, std::string_view what, const std::string& with) {
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
}

OpenApi schemas() {
  OpenApi all = own_schemas();
  for (const DocumentSchema& one : document_schemas()) {
    const std::string name(one.name);
    std::string text(one.json);
    // A reference inside of a document is one inside of the whole.
    replace_each(text, "\"#/$defs/", "\"#/components/schemas/" + name + "/$defs/");
    replace_each(text, "\"tasks-schedule.schema.json\"", "\"#/components/schemas/tasks-schedule\"");
    OpenApi schema = OpenApi::parse(text, nullptr, false);
    OUTBOX_CHECK(schema.is_object());
    schema.erase("$schema");
    all[name] = std::move(schema);
  }
  return all;
}

}  // namespace

std::string openapi_document() {
  OpenApi paths = OpenApi::object();
  add_fixed_paths(paths);
  for (const Operation& one : operations())
    paths[std::string(one.path)][to_lower(one.method)] = to_operation(one);
  const OpenApi document{
      {"openapi", "3.1.0"},
      {"info",
       {{"title", "outbox console"},
        {"version", "1"},
        {"description",
         "What the verbs of the command line show and do. docs/guide/console.md is the guide."}}},
      {"servers", {{{"url", "/api/v1"}}}},
      {"security",
       {OpenApi::object(), {{"token", OpenApi::array()}}, {{"session", OpenApi::array()}}}},
      {"paths", std::move(paths)},
      {"components",
       {{"schemas", schemas()},
        {"securitySchemes",
         {{"token", {{"type", "http"}, {"scheme", "bearer"}}},
          {"session",
           {{"type", "apiKey"}, {"in", "cookie"}, {"name", "__Host-outbox-session"}}}}}}}};
  return write_json(document, {.indent = 2}) + "\n";
}

}  // namespace outbox::console

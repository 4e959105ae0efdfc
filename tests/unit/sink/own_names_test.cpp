// For every sink and every format: no header of an event has, or is read as, a name that the
// format, the sink or the broker writes itself. Consumers drop duplicates by such names.
// own_names.txt says what happens to each spelling; with OUTBOX_TEST_WRITE_GOLDEN it is written.
#include <amqp.h>
#include <gtest/gtest.h>
#include <nats/nats.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "event/time_text.hpp"
#include "format/format.hpp"
#include "format/render.hpp"
#include "sink/asynq/tasks.hpp"
#include "sink/http/config.hpp"
#include "sink/http/request.hpp"
#include "sink/nats/message.hpp"
#include "sink/rabbitmq/publication.hpp"
#include "sink/redis/command.hpp"
#include "sink/registry.hpp"
#include "sink/smtp/config.hpp"
#include "sink/smtp/mail.hpp"
#include "sink/sqs/composer.hpp"

namespace outbox::test {
namespace {

constexpr std::string_view kSpoofed = "spoofed";

struct Field {
  std::string name;
  std::string value;
};
/// What a destination gets, by name; nullopt if the message is refused as its event's fault.
using Fields = std::optional<std::vector<Field>>;

struct Kind {
  std::map<std::string, std::string> settings;  ///< The fewest settings that make a sink.
  std::function<Fields(const Message&)> look;
  /// How consumers read a name.
  std::function<std::string(std::string)> read = [](std::string name) { return name; };
};

std::string in_http(std::string name) {
  for (char& c : name) c = c == '_' ? '-' : to_lower(c);
  return name;
}

// ---- what each destination gets

Fields as_they_are(const Message& message) {
  std::vector<Field> fields;
  for (const HeaderView& header : message.headers)
    fields.push_back({std::string(header.name), std::string(header.value)});
  return fields;
}

Fields of_asynq(const Message& message) {
  Fields fields = as_they_are(message);
  fields->push_back({std::string(sink::asynq::kKeyHeader), std::string(*message.key)});
  return fields;
}

Fields of_redis(const Message& message) {
  sink::redis::Command command(std::chrono::milliseconds(0), 0);
  const auto call = command.call(message, "HASH");
  if (!call) return std::nullopt;
  std::vector<Field> fields;
  for (std::size_t at = 6; at + 1 < call->arguments.size(); at += 2)
    fields.push_back({std::string(call->arguments[at]), std::string(call->arguments[at + 1])});
  return fields;
}

Field of_line(const std::string& line) {
  const std::size_t colon = std::min(line.find(':'), line.size());
  return {line.substr(0, colon),
          std::string(trimmed(std::string_view(line).substr(std::min(colon + 1, line.size()))))};
}

Fields of_http(const Message& message) {
  sink::http::HttpSettings settings;
  settings.url = "https://h/";
  settings.authorization = "Bearer x";
  settings.idempotency_key = true;
  FieldErrors errors;
  const auto options = sink::http::read_options(settings, errors);
  sink::http::Composer composer(*options);
  const auto request = composer.compose({&message, 1});
  if (!request) return std::nullopt;
  std::vector<Field> fields;
  for (const std::string& line : request->headers) fields.push_back(of_line(line));
  for (const std::string& line : composer.stamp(*request, "{}", 77))
    fields.push_back(of_line(line));
  return fields;
}

Fields of_smtp(const Message& message) {
  sink::smtp::SmtpSettings settings;
  settings.url = "smtp://mail.example.com";
  settings.from = "shop@example.com";
  settings.to = {"ops@example.com"};
  settings.x_headers = {"*"};
  FieldErrors errors;
  const auto options = sink::smtp::read_options(settings, errors);
  const auto mail = sink::smtp::Composer(*options).compose(message);
  if (!mail) return std::nullopt;
  std::vector<Field> fields;
  std::istringstream text(mail->text.substr(0, mail->text.find("\r\n\r\n")));
  for (std::string line; std::getline(text, line);) {
    if (line.ends_with('\r')) line.pop_back();
    fields.push_back(of_line(line));
  }
  return fields;
}

Fields of_nats(const Message& message) {
  EXPECT_EQ(nats_Open(-1), NATS_OK);
  const auto made = sink::nats::make_message(
      message, {.subscription = "orders", .reply = "_INBOX.x.1", .stream = "ORDERS"});
  if (!made) return std::nullopt;
  const char** names = nullptr;
  int count = 0;
  EXPECT_EQ(natsMsgHeader_Keys(made->get(), &names, &count), NATS_OK);
  std::vector<Field> fields;
  for (int name = 0; name < count; ++name) {
    const char** values = nullptr;
    int several = 0;
    EXPECT_EQ(natsMsgHeader_Values(made->get(), names[name], &values, &several), NATS_OK);
    for (int value = 0; value < several; ++value) fields.push_back({names[name], values[value]});
    free(values);
  }
  free(names);
  return fields;
}

Fields of_rabbitmq(const Message& message) {
  if (sink::rabbitmq::find_refusal(message, "shop", 1 << 20)) return std::nullopt;
  sink::rabbitmq::Publication made(format::Template::compile("exchange", "shop").value());
  EXPECT_TRUE(made.exchange_for(message).has_value());
  const amqp_table_t headers = made.properties_for(message).headers;
  std::vector<Field> fields;
  const auto text = [](amqp_bytes_t bytes) {
    return std::string(static_cast<const char*>(bytes.bytes), bytes.len);
  };
  for (int at = 0; at < headers.num_entries; ++at)
    fields.push_back({text(headers.entries[at].key), text(headers.entries[at].value.value.bytes)});
  return fields;
}

Fields of_sqs(const Message& message) {
  const auto attributes = sink::sqs::make_attributes(message, "base64", {});
  if (!attributes) return std::nullopt;
  std::vector<Field> fields;
  for (const sink::sqs::Attribute& one : *attributes) {
    if (one.name != sink::sqs::kRestAttribute) {
      fields.push_back({one.name, one.value});
      continue;
    }
    const auto rest = nlohmann::json::parse(one.value);
    for (const auto& [name, value] : rest.items())
      fields.push_back({name, value.get<std::string>()});
  }
  return fields;
}

const std::map<std::string, Kind>& kinds() {
  static const std::map<std::string, Kind> all{
      {"asynq", {.settings = {{"url", "redis://h"}}, .look = of_asynq}},
      {"file", {.settings = {{"path", "/tmp/x"}}, .look = as_they_are}},
      {"http", {.settings = {{"url", "https://h/"}}, .look = of_http, .read = in_http}},
      {"kafka", {.settings = {{"brokers", "localhost:1"}}, .look = as_they_are}},
      {"nats", {.settings = {{"url", "nats://h"}}, .look = of_nats}},
      {"null", {.settings = {}, .look = as_they_are}},
      {"postgres",
       {.settings = {{"url", "postgresql://h/d"}, {"table", "t"}}, .look = as_they_are}},
      {"rabbitmq", {.settings = {{"url", "amqp://h"}}, .look = of_rabbitmq}},
      {"redis", {.settings = {{"url", "redis://h"}}, .look = of_redis}},
      {"smtp",
       {.settings = {{"url", "smtp://h"}, {"from", "a@example.com"}, {"to", "b@example.com"}},
        .look = of_smtp,
        .read = in_http}},
      {"sqs", {.settings = {{"queue", "orders"}, {"region", "eu-central-1"}}, .look = of_sqs}},
      {"stdout", {.settings = {}, .look = as_they_are}},
  };
  return all;
}

// ---- an event, sent with a header of its own

class Way {
 public:
  Way(const std::string& sink, const std::string& format) : kind_(kinds().at(sink)) {
    SubscriptionSpec spec{.name = "orders", .sink = sink};
    spec.format = format;
    spec.topic = "orders";
    spec.sink_settings = kind_.settings;
    const auto made = sink::make_sink(spec);
    EXPECT_TRUE(made) << sink << ": " << made.error().text();
    traits_ = (*made)->traits();
    renderer_.emplace(format::Renderer::create(spec).value());
    renderer_->bind(traits_);
  }

  [[nodiscard]] const Kind& kind() const { return kind_; }

  /// Sends an event, without headers if `name` is empty.
  [[nodiscard]] Fields send(const std::string& name = {}) {
    const std::string headers =
        name.empty() ? "{}" : nlohmann::json{{name, std::string(kSpoofed)}}.dump();
    const EventView event{.seq = 7,
                          .id = EventId::parse("018f3b1c-7a2e-7c3d-8e4f-0123456789ab").value(),
                          .aggregate_type = "order",
                          .aggregate_id = "42",
                          .event_type = "OrderPlaced",
                          .payload = R"({"total": 12.5})",
                          .content_type = "application/json",
                          .headers = headers,
                          .created_at = event::timestamp(1'714'566'896'123'456)};
    format::RenderBuffer buffer;
    renderer_->render(1, event, buffer);
    return kind_.look(buffer.messages().front());
  }

 private:
  const Kind& kind_;
  SinkTraits traits_;
  std::optional<format::Renderer> renderer_;
};

template <class Visit>
void for_each_way(Visit visit) {
  for (const auto& [sink, kind] : kinds()) {
    for (const std::string_view format : format::format_names()) visit(sink, std::string(format));
  }
}

/// Other spellings that a destination may map to the name.
std::vector<std::string> spellings(const std::string& name) {
  std::string upper = name;
  std::string lines = name;
  std::string dashes = name;
  for (char& c : upper) c = to_upper(c);
  for (char& c : lines) c = c == '-' || c == ':' ? '_' : c;
  for (char& c : dashes) c = c == '_' || c == ':' ? '-' : c;
  std::string shouted = lines;
  for (char& c : shouted) c = to_upper(c);
  std::vector<std::string> all{name, to_lower(name), upper, lines, shouted, dashes};
  for (const std::string& one : std::vector<std::string>(all)) {
    all.push_back("x-" + one);
    all.push_back("X_" + one);
    if (to_lower(one).starts_with("x-")) all.push_back(one.substr(2));
  }
  return all;
}

TEST(OwnNames, every_sink_is_in_the_table) {
  for (const auto& kind : sink::kinds()) EXPECT_TRUE(kinds().contains(kind.name)) << kind.name;
}

TEST(OwnNames, no_spelling_of_a_name_that_is_written_comes_from_an_event) {
  for_each_way([](const std::string& sink, const std::string& format) {
    Way way(sink, format);
    const auto& read = way.kind().read;
    const Fields without = way.send();
    ASSERT_TRUE(without) << sink;
    const auto named = [&](const std::vector<Field>& fields, const std::string& name) {
      std::vector<Field> found;
      for (const Field& field : fields) {
        if (read(field.name) == read(name)) found.push_back(field);
      }
      return found;
    };
    for (const Field& own : *without) {
      for (const std::string& spelling : spellings(own.name)) {
        const Fields with = way.send(spelling);
        if (!with) continue;
        const std::vector<Field> found = named(*with, own.name);
        // A field with the whole event may differ, but its value is not the header's.
        EXPECT_EQ(found.size(), named(*without, own.name).size())
            << sink << ", " << format << ": header " << spelling << " beside " << own.name;
        for (const Field& field : found)
          EXPECT_NE(field.value, kSpoofed) << sink << ", " << format << ": header " << spelling;
      }
    }
  });
}

// ---- the table

constexpr const char* kHeaders[] = {"tenant",
                                    "x-tenant",
                                    "ce_id",
                                    "CE-ID",
                                    "ce-tenant",
                                    "x-ce-id",
                                    "cloudEvents:id",
                                    "CloudEvents_Id",
                                    "outbox-id",
                                    "Outbox_Id",
                                    "x-outbox-id",
                                    "X_Outbox_Key",
                                    "content-type",
                                    "Content_Type",
                                    "id",
                                    "type",
                                    "key",
                                    "body",
                                    "Body",
                                    "correlation_id",
                                    "webhook-id",
                                    "Webhook_Id",
                                    "authorization",
                                    "Content_Length",
                                    "Nats-Msg-Id",
                                    "nats-rollup",
                                    "CC",
                                    "x-death",
                                    "x-first-death-queue"};

std::string row(const std::string& sink, const std::string& format) {
  Way way(sink, format);
  std::string sent;
  std::string left_out;
  std::string refused;
  for (const char* const header : kHeaders) {
    const std::string name = header;
    const Fields fields = way.send(name);
    std::string as;
    for (const Field& field : fields.value_or(std::vector<Field>{})) {
      if (field.value == kSpoofed) as += (as.empty() ? "" : "+") + field.name;
    }
    if (!fields) {
      refused += " " + name;
    } else if (as.empty()) {
      left_out += " " + name;
    } else {
      sent += " " + (as == name ? name : name + "=" + as);
    }
  }
  return sink + " " + format + "\n  sent:" + sent + "\n  left out:" + left_out +
         "\n  refused:" + refused + "\n";
}

TEST(OwnNames, golden) {
  std::string table;
  for_each_way(
      [&](const std::string& sink, const std::string& format) { table += row(sink, format); });
  if (std::getenv("OUTBOX_TEST_WRITE_GOLDEN") != nullptr)
    std::ofstream(OUTBOX_TEST_OWN_NAMES) << table;
  std::ifstream file(OUTBOX_TEST_OWN_NAMES);
  const std::string golden{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(table, golden);
}

}  // namespace
}  // namespace outbox::test

#include "sink/asynq/config.hpp"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "base/error.hpp"
#include "base/units.hpp"
#include "sink/asynq/script.hpp"
#include "sink/asynq/tasks.hpp"
#include "sink/hiredis/pipeline.hpp"
#include "sink/template_example.hpp"

namespace outbox::sink::asynq {
namespace {

using namespace std::chrono_literals;

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kPlace = "the queue is asynq.queue";
constexpr milliseconds kLeastRetention = std::chrono::minutes(1);
constexpr const char* kRetentionHint =
    "as long as asynq keeps a task that has succeeded, its event makes no second one: longer than any outage of the relay";

constexpr hiredis::Hints kHints{
    .memory =
        "maxmemory is reached: let workers run tasks, delete archived and completed ones, raise maxmemory, or keep fewer "
        "completed ones (asynq.retention)",
    .rights =
        "the user of this sink needs: +evalsha +script|load +exists +hmget +hset +lpush +sadd +set +select +info +wait "
        "+config|get ~asynq:*",
    .type = "the key is there and is not asynq's: remove or rename it",
    .commands =
        "the server lacks the command, or it was renamed or disabled: this sink needs Redis 5.0",
    .refused =
        "do two subscriptions make tasks of this event in one queue? give one of them task_id = \"{id}:NAME\""};

SettingRows<AsynqSettings> task_rows() {
  return {
      {"queue", &AsynqSettings::queue,
       "The queue, which may have fields: {aggregate_type|kebab}. Workers run the tasks of the queues that they are configured with."},
      {"type", &AsynqSettings::type,
       "The type of the task, by which workers choose the handler, which may have fields: email:{event_type|kebab}."},
      {"task_id", &AsynqSettings::task_id,
       "The id of the task, which may have fields. While a queue has a task with this id, another one is not made."},
      {"max_retry", &AsynqSettings::max_retry, Traits{.range = {0, 1'000'000}},
       "How often workers try again a task that fails, before it is archived."},
      {"timeout", &AsynqSettings::timeout, Traits{.range = {1s, 30 * 24h}},
       "How long a worker may take for a task."},
      {"retention", &AsynqSettings::retention, Traits{.range = {0s, 365 * 24h}},
       "How long a task that has succeeded is kept, from 1min: an event that is sent again meanwhile makes no second task."},
  };
}

format::Template compiled(const char* field, const std::string& text, FieldErrors& errors) {
  auto made = format::Template::compile(field, text);
  if (made) return std::move(*made);
  errors.add(made.error());
  return {};
}

void check_not_blank(const char* field, const std::string& text, FieldErrors& errors) {
  if (is_blank(text)) errors.add({field, "is empty", "asynq takes no tasks without"});
}

/// asynq counts in seconds; adds an error for a fraction of a second.
seconds whole_seconds(const char* field, milliseconds value, FieldErrors& errors) {
  const auto whole = std::chrono::duration_cast<seconds>(value);
  if (whole != value)
    errors.add({field, "is not a whole number of seconds", "asynq counts in seconds: \"2s\""});
  return whole;
}

void check_queue(const AsynqSettings& settings, FieldErrors& errors) {
  const std::string example = with_fields_as_x(settings.queue);
  if (const std::string_view wrong = wrong_queue_name(example); !wrong.empty())
    errors.add({"asynq.queue", fmt::format("is not the name of a queue: it {}", wrong),
                "such as default, critical or {aggregate_type|kebab}"});
}

void check_retention(const AsynqSettings& settings, FieldErrors& errors) {
  if (settings.retention >= kLeastRetention) return;
  errors.add(
      {"asynq.retention",
       settings.retention.count() == 0
           ? "is 0: asynq would delete each task as soon as it has succeeded, and an event that is sent again would run "
             "again"
           : "is less than 1min",
       kRetentionHint});
}

void check(const AsynqSettings& settings, FieldErrors& errors) {
  (void)hiredis::parse_options("asynq", settings, kPlace, errors);
  (void)make_task_options(settings, errors);
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): the signature of Declaration::make
Result<std::unique_ptr<Sink>> make(AsynqSettings settings) {
  OUTBOX_TRY(auto options, read_valid(hiredis::parse_options, "asynq", settings, kPlace));
  OUTBOX_TRY(auto tasks, read_valid(make_task_options, settings));
  return std::make_unique<hiredis::PipelineSink>(std::move(options), make_purpose(settings),
                                                 std::make_unique<Tasks>(std::move(tasks)));
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): the signature of Declaration::inspect
Result<Inspection> inspect(AsynqSettings settings, const SubscriptionSpec&) {
  OUTBOX_TRY(const auto options, read_valid(hiredis::parse_options, "asynq", settings, kPlace));
  OUTBOX_TRY(hiredis::Session session, open_session(options, make_purpose(settings)));
  return std::move(session.inspection);
}

}  // namespace

TaskOptions make_task_options(const AsynqSettings& settings, FieldErrors& errors) {
  check_queue(settings, errors);
  check_not_blank("asynq.type", settings.type, errors);
  check_not_blank("asynq.task_id", settings.task_id, errors);
  check_retention(settings, errors);
  return {.queue = compiled("asynq.queue", settings.queue, errors),
          .type = compiled("asynq.type", settings.type, errors),
          .id = compiled("asynq.task_id", settings.task_id, errors),
          .max_retry = static_cast<std::int32_t>(settings.max_retry),
          .timeout = whole_seconds("asynq.timeout", settings.timeout, errors),
          .retention = whole_seconds("asynq.retention", settings.retention, errors),
          .wait = settings.wait_replicas > 0};
}

hiredis::Purpose make_purpose(const AsynqSettings& settings) {
  return {
      .sink = "asynq",
      .attribute_prefix = kAttributePrefix,
      .script = kScript,
      .trial = {"SET", "asynq:outbox:check", "", "PX", "1"},
      .duplicates =
          fmt::format("only when its task has been deleted, by asynq {} after it has succeeded",
                      format_duration(settings.retention)),
      .order = "of nothing: workers run the tasks of a queue at the same time",
      .weaknesses = {},
      .hints = kHints,
      .eviction = {
          .any_key = "when memory is full the server removes tasks, or whole queues",
          .expiring_keys =
              "when memory is full the server removes locks of unique tasks, and what says which workers there are"}};
}

SinkKind kind() {
  return make_kind<AsynqSettings>(
      {.name = "asynq",
       .help = "adds events as tasks to queues of asynq on Redis, for workers in Go",
       .rows = joined({hiredis::server_rows<AsynqSettings>(), task_rows()}),
       .check = check,
       .make = make,
       .inspect = inspect});
}

}  // namespace outbox::sink::asynq

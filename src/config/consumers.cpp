#include "config/consumers.hpp"

#include <utility>
#include <vector>

#include "base/text.hpp"
#include "config/section.hpp"
#include "config/subscriptions.hpp"
#include "sink/registry.hpp"
#include "source/registry.hpp"

namespace outbox::config {
namespace {

class ConsumerReader {
 public:
  ConsumerReader(const Member& section, bool resolve, Reading& reading)
      : section_(section),
        resolve_(resolve),
        reading_(reading),
        path_("consumer." + section.key),
        title_("consumer." +
               (section.key.find('.') == std::string::npos ? section.key : quote(section.key))),
        consumer_(path_, title_, section.at, resolve, reading) {
    consumer_.effective.name = consumer_.written.name = section.key;
  }

  std::optional<ConsumerSpec> read() {
    const std::size_t before = reading_.problems.size();
    auto* const table = reading_.table(section_, path_);
    if (table == nullptr) return std::nullopt;
    for (const Member& member : members(*table)) read_member(member);
    if (reading_.problems.size() != before) return std::nullopt;
    read_connection();
    if (reading_.problems.size() == before) check();
    if (reading_.problems.size() != before) return std::nullopt;
    for (const auto& row : consumer_settings()) consumer_.add_entry(row);
    return std::move(consumer_.effective);
  }

 private:
  void read_member(const Member& member) {
    std::vector<std::string_view> known;
    for (const auto& row : consumer_settings()) {
      if (row.setting.name == member.key) return consumer_.read(row, member);
      known.emplace_back(row.setting.name);
    }
    for (const auto& kind : source::kinds()) known.emplace_back(kind.name);
    if (member.value->is_table()) return connection_.push_back(member);
    consumer_.complain_about_unknown(member, known);
  }

  /// The connection is read, checked and shown as that of the sink of the same name.
  void read_connection() {
    const std::string& name = consumer_.effective.source;
    const source::SourceKind* const kind = source::find_kind(name);
    if (kind == nullptr) {
      const Position at = consumer_.find_position("source");
      if (name.empty())
        return reading_.complain(path_ + ".source: is missing", path_ + ".source", at,
                                 "one of " + source::kind_names());
      return reading_.complain(path_, at, source::make_source(consumer_.effective).error());
    }
    SinkPart part{.path = path_,
                  .section = title_,
                  .at = section_.at,
                  .members = connection_,
                  .rows = {},
                  .preset = {.name = section_.key, .sink = name},
                  .owner = "consumer"};
    for (const auto& row : consumer_settings()) part.others.push_back(row.setting.name);
    for (const std::string& setting : kind->of_sending)
      part.settled[setting] = "it says how to send, and a consumer sends nothing";
    if (auto read = read_sink_part(std::move(part), resolve_, reading_))
      consumer_.effective.settings = std::move(read->sink_settings);
  }

  void check() {
    const Status status = validate(consumer_.effective);
    if (status) return;
    const std::string& message = status.error().message;
    // The message begins with the setting.
    const Position at = consumer_.find_position(message.substr(0, message.find(':')));
    reading_.complain(path_, at, status.error());
  }

  const Member& section_;
  const bool resolve_;
  Reading& reading_;
  const std::string path_;
  const std::string title_;
  Section<ConsumerSpec> consumer_;
  std::vector<Member> connection_;
};

}  // namespace

std::optional<ConsumerSpec> read_consumer(const Member& section, bool resolve, Reading& reading) {
  return ConsumerReader(section, resolve, reading).read();
}

}  // namespace outbox::config

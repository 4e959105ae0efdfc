#include "config/subscriptions.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "base/text.hpp"
#include "config/destination.hpp"
#include "event/spec.hpp"
#include "sink/registry.hpp"

namespace outbox::config {
namespace {

using Type = Node::Type;

/// A setting of the sink and where it stands.
struct Given {
  std::string text;     ///< In effect.
  std::string written;  ///< Before references were replaced.
  std::string plain;    ///< After that; a path is not anchored yet.
  Position key_at;
  Position at;
};

const sink::SinkInfo* find_sink(std::string_view name) {
  for (const auto& sink : sink::all_sinks()) {
    if (sink.name == name) return &sink;
  }
  return nullptr;
}

bool is_path(const std::string& name) {
  for (const auto& sink : sink::all_sinks()) {
    for (const auto& setting : sink.settings) {
      if (setting.name == name && setting.type == "path") return true;
    }
  }
  return false;
}

/// The setting that a message of ours is about: what stands before its first colon.
std::string_view subject(std::string_view message) { return message.substr(0, message.find(": ")); }

bool refers(const Node& node) {
  const auto item_refers = [](const Node& item) { return refers(item); };
  const auto member_refers = [](const Member& member) { return refers(member.value); };
  return has_references(node.text) ||
         std::any_of(node.items.begin(), node.items.end(), item_refers) ||
         std::any_of(node.members.begin(), node.members.end(), member_refers);
}

std::string joined(const Node& node) {
  std::string text;
  for (const Node& item : node.items) text.append(text.empty() ? "" : ",").append(item.text);
  return text;
}

/// Covers each value that came from a reference.
struct Mask {
  Slot written;

  template <class Value>
  void operator()(Value* /*value*/) const {}
  void operator()(std::string* value) const {
    if (has_references(*std::get<std::string*>(written))) *value = kMask;
  }
  void operator()(std::vector<std::string>* value) const {
    const auto& list = *std::get<std::vector<std::string>*>(written);
    if (std::any_of(list.begin(), list.end(), has_references)) *value = {std::string(kMask)};
  }
  void operator()(std::map<std::string, std::string>* value) const {
    for (const auto& [name, text] : *std::get<std::map<std::string, std::string>*>(written)) {
      const auto found = value->find(name);
      if (found != value->end() && has_references(text)) found->second = kMask;
    }
  }
};

/// Of a sink of ours, or a property of Kafka's client: ssl.ca.location, which may also be the word "probe".
bool names_a_file(const std::string& name, const std::string& value) {
  return is_path(name) || (name.ends_with(".location") && value != "probe");
}

class SubscriptionReader {
 public:
  SubscriptionReader(const Member& section, bool resolve, Reading& reading)
      : section_(section),
        resolve_(resolve),
        reading_(reading),
        path_("subscription." + section.key) {
    effective_.name = written_.name = section.key;
  }

  std::optional<SubscriptionSpec> read() {
    const std::size_t before = reading_.problems.size();
    if (section_.value.type != Type::table) {
      reading_.complain(
          path_ + ": expected a table, found " + std::string(describe(section_.value.type)), path_,
          section_.at, "write [" + path_ + "] and its settings below it");
      return std::nullopt;
    }
    for (const Member& member : section_.value.members) read_member(member);
    if (effective_.sink.empty()) {
      if (reading_.problems.size() == before) complain_about_missing_sink();
      return std::nullopt;
    }
    // A setting that was refused keeps its default, so the checks can go on and find the rest.
    const bool readable = read_sink_tables();
    const bool resolved = resolve_ || !refers(section_.value);
    if (readable && resolved) check_sink();
    if (resolved) check_whole();
    if (resolved && reading_.problems.size() == before) check_destination();
    if (reading_.problems.size() != before) return std::nullopt;
    add_entries();
    return std::move(effective_);
  }

 private:
  void read_member(const Member& member) {
    for (const auto& row : subscription_settings()) {
      if (row.setting.path == member.key) return assign(row, member);
    }
    if (member.value.type == Type::table && find_sink(member.key) != nullptr) {
      sink_tables_.push_back(&member);
      return;
    }
    std::vector<std::string_view> known;
    for (const auto& row : subscription_settings()) known.emplace_back(row.setting.path);
    for (const auto& sink : sink::all_sinks()) known.emplace_back(sink.name);
    unknown(path_ + "." + member.key, member, known);
  }

  void unknown(const std::string& path, const Member& member,
               const std::vector<std::string_view>& known) {
    reading_.complain(
        "unknown setting " + path, path, member.at,
        known.empty() ? "this sink has no settings" : did_you_mean(member.key, known));
  }

  void assign(const Row<SubscriptionSpec>& row, const Member& member) {
    const std::string path = path_ + "." + row.setting.path;
    origins_[row.setting.path] = member.at;
    if (auto status = assign_node(row.setting, row.slot(written_), member.value); !status) {
      return reading_.complain(path, member.value.at, status.error());
    }
    const auto node = resolve_ ? resolve_node(member.value, path, reading_) : member.value;
    if (node) (void)assign_node(row.setting, row.slot(effective_), *node);
  }

  void complain_about_missing_sink() {
    std::string known;
    for (const auto& sink : sink::all_sinks())
      known.append(known.empty() ? "" : ", ").append(sink.name);
    reading_.complain(path_ + ".sink: is missing", path_ + ".sink", section_.at, "one of " + known);
  }

  /// False after a complaint: the sink would only complain about the same mistake again.
  bool read_sink_tables() {
    const std::size_t before = reading_.problems.size();
    for (const Member* table : sink_tables_) {
      if (table->key == effective_.sink) {
        gather(table->value, "");
        continue;
      }
      reading_.complain(path_ + "." + table->key + ": settings of a sink that is not used",
                        path_ + "." + table->key, table->at,
                        "the sink of this subscription is " + effective_.sink);
    }
    const sink::SinkInfo* const info = find_sink(effective_.sink);
    for (const auto& [name, given] : given_) {
      const bool known = info == nullptr || info->free_form || is_known(*info, name, given.key_at);
      if (known) effective_.sink_settings[name] = given.text;
    }
    return reading_.problems.size() == before;
  }

  /// Complains when it is not.
  bool is_known(const sink::SinkInfo& info, const std::string& name, Position at) {
    std::vector<std::string_view> known;
    for (const auto& setting : info.settings) known.emplace_back(setting.name);
    if (std::find(known.begin(), known.end(), name) != known.end()) return true;
    unknown(sink_path(name), Member{.key = name, .at = at, .value = {}}, known);
    return false;
  }

  /// Dotted keys are tables within tables: linger.ms is ms in linger.
  void gather(const Node& table, const std::string& prefix) {
    for (const Member& member : table.members) {
      const std::string name = prefix + member.key;
      if (member.value.type == Type::table) {
        gather(member.value, name + ".");
        continue;
      }
      const auto node =
          resolve_ ? resolve_node(member.value, sink_path(name), reading_) : member.value;
      if (!node) continue;
      const bool list = member.value.type == Type::array;
      const std::string plain = list ? joined(*node) : node->text;
      const bool known = resolve_ || !refers(member.value);
      given_[name] = {.text = known && names_a_file(name, plain) ? reading_.anchored(plain) : plain,
                      .written = list ? joined(member.value) : member.value.text,
                      .plain = plain,
                      .key_at = member.at,
                      .at = member.value.at};
    }
  }

  /// The sink says one thing at a time: what it complained about is taken out and it is asked again.
  void check_sink() {
    SubscriptionSpec left = effective_;
    for (std::size_t most = left.sink_settings.size() + 1; most > 0; --most) {
      const auto status = sink::check_settings(left);
      if (status) return;
      const Error& error = status.error();
      const std::string blamed_before = blamed_;
      const Position at = blame(error.message);
      if (!blamed_.empty() && blamed_ == blamed_before) return;  // the replacement will not do
      reading_.complain(path_ + "." + error.message, path_ + "." + left.sink, at, error.hint);
      if (blamed_.empty()) return;
      replace_blamed(left);
    }
  }

  /// With something that most settings may be when it is needed, so that the check comes to what is behind it.
  void replace_blamed(SubscriptionSpec& left) const {
    left.sink_settings.erase(blamed_);
    const sink::SinkInfo* const info = find_sink(left.sink);
    for (const auto& setting : info->settings) {
      if (setting.required && setting.name == blamed_) left.sink_settings[blamed_] = "x";
    }
  }

  /// Where the setting of the sink stands that a message is about ("kafka.brokers: ...").
  Position blame(std::string_view message) {
    std::string_view name = subject(message);
    if (name.starts_with(effective_.sink + ".")) name.remove_prefix(effective_.sink.size() + 1);
    const auto found = given_.find(std::string(name));
    blamed_ = found == given_.end() ? std::string() : found->first;
    if (found != given_.end()) return found->second.at;
    return sink_tables_.empty() ? section_.at : sink_tables_.front()->at;
  }

  /// One thing at a time, too: a setting that was complained about gets its default for the next look.
  void check_whole() {
    SubscriptionSpec left = effective_;
    for (std::size_t most = subscription_settings().size() + 1; most > 0; --most) {
      const auto status = event::validate(left);
      if (status) return;
      const std::string_view about = subject(status.error().message);
      const std::string setting(about.substr(0, about.find('.')));
      const auto found = origins_.find(setting);
      reading_.complain(path_, found == origins_.end() ? section_.at : found->second,
                        status.error());
      if (found == origins_.end()) return;
      set_default(left, setting);
    }
  }

  static void set_default(SubscriptionSpec& spec, const std::string& name) {
    SubscriptionSpec fresh;
    for (const auto& row : subscription_settings()) {
      if (row.setting.path != name) continue;
      const Slot from = row.slot(fresh);
      std::visit([&](auto* into) { *into = *std::get<decltype(into)>(from); }, row.slot(spec));
    }
  }

  /// What the sink would only find out with the first event, or never.
  void check_destination() {
    if (effective_.sink == "kafka") {
      if (const Status status = check_kafka_topic(effective_.topic); !status)
        reading_.complain(path_ + ".topic", at_of("topic"), status.error());
      const auto& brokers = effective_.sink_settings["brokers"];
      if (const Status status = check_brokers(brokers); !status)
        reading_.complain(sink_path("brokers"), given_.at("brokers").at, status.error());
    }
    if (effective_.sink == "file") check_file_sink();
  }

  void check_file_sink() {
    const std::string& path = effective_.sink_settings["path"];
    Status status = check_file(given_.at("path").plain);
    if (status && reading_.thorough) status = check_place_of_file(path);
    if (!status) reading_.complain(sink_path("path"), given_.at("path").at, status.error());
    check_file_is_ours();
  }

  void check_file_is_ours() {
    const std::string path =
        std::filesystem::path(effective_.sink_settings["path"]).lexically_normal();
    const auto [at, ours] = reading_.files.emplace(path, section_.key);
    if (ours) return;
    reading_.complain(sink_path("path") + ": is the file of subscription " + at->second, path_,
                      given_.at("path").at, "only one can write to it; give each its own");
  }

  [[nodiscard]] Position at_of(const std::string& setting) const {
    const auto found = origins_.find(setting);
    return found == origins_.end() ? section_.at : found->second;
  }

  [[nodiscard]] std::string sink_path(const std::string& name) const {
    return path_ + "." + effective_.sink + "." + name;
  }

  /// As it would stand in a file: a name with a dot needs quotes.
  [[nodiscard]] std::string section_path() const {
    return section_.key.find('.') == std::string::npos ? path_
                                                       : "subscription." + quote(section_.key);
  }

  void add_entries() {
    for (const auto& row : subscription_settings()) {
      const auto at = origins_.find(row.setting.path);
      const auto shown = [&](Notation notation) {
        return presentable(row.setting, row.slot(effective_), row.slot(written_), notation);
      };
      reading_.entries.push_back(
          {.section = section_path(),
           .key = row.setting.path,
           .toml = shown(Notation::toml),
           .json = shown(Notation::json),
           .origin = at == origins_.end() ? "default" : reading_.origin(at->second)});
    }
    for (const auto& [name, given] : given_) {
      const std::string shown = quote(show_sink_setting(name, given.written));
      reading_.entries.push_back({.section = section_path() + "." + effective_.sink,
                                  .key = name,
                                  .toml = shown,
                                  .json = shown,
                                  .origin = reading_.origin(given.at)});
    }
  }

  const Member& section_;
  bool resolve_;
  Reading& reading_;
  std::string path_;
  SubscriptionSpec effective_;
  SubscriptionSpec written_;
  std::map<std::string, Position> origins_;
  std::vector<const Member*> sink_tables_;
  std::map<std::string, Given> given_;
  std::string blamed_;
};

}  // namespace

std::optional<SubscriptionSpec> read_subscription(const Member& section, bool resolve,
                                                  Reading& reading) {
  return SubscriptionReader(section, resolve, reading).read();
}

SubscriptionSpec without_references(SubscriptionSpec spec, const SubscriptionSpec& written) {
  SubscriptionSpec as_written = written;
  for (const auto& row : subscription_settings()) {
    std::visit(Mask{row.slot(as_written)}, row.slot(spec));
  }
  Mask{&as_written.sink_settings}(&spec.sink_settings);
  return spec;
}

std::string show_sink_setting(const std::string& name, const std::string& value) {
  const bool harmless =
      !is_secret_name(name) && (is_plain_value(without_references(value)) || is_path(name));
  return harmless ? value : std::string(kMask);
}

}  // namespace outbox::config

#include "cli/context.hpp"

#include <utility>

#include "base/log.hpp"
#include "cli/exit.hpp"

namespace outbox::cli {
namespace {

config::Flag parse_setting(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos)
    throw Failure(kUsage, "--set " + text + ": no value", "--set relay.page=500");
  return {.path = text.substr(0, equals), .value = text.substr(equals + 1), .flag = "--set"};
}

/// Ends the verb on an error.
config::Loaded in_use(tl::expected<config::Loaded, config::Problems> loaded, bool sets_logging) {
  if (!loaded) {
    std::vector<std::string> lines;
    bool typed = true;  // every problem is on the command line
    for (const auto& problem : loaded.error()) {
      lines.push_back(problem.text());
      typed = typed && problem.where.starts_with("--");
    }
    throw Failure(typed ? kUsage : kError, std::move(lines));
  }
  const config::Config& config = loaded->config;
  if (sets_logging)
    log::configure(config.log_level,
                   config.log_format == "json" ? log::Format::json : log::Format::text);
  return std::move(*loaded);
}

}  // namespace

void Context::add_options(CLI::App& root) {
  add_option(root, "-c,--config", &file_, "FILE",
             "Configuration; else OUTBOX_CONFIG, else ./outbox.toml if there is one");
  add_option(root, "--store", &store_, "URL",
             "postgresql://... or sqlite:PATH; overrides OUTBOX_STORE_URL and the file");
  add_option(root, "--schema", &schema_, "NAME", "PostgreSQL schema of the outbox");
  add_option(root, "--log-level", &log_level_, "debug|info|warn|error|off", "What is logged");
  add_option(root, "--log-format", &log_format_, "text|json", "How it is logged");
  add_option(root, "--set", &settings_, "PATH=VALUE",
             "Any other setting, such as relay.page=500; may be repeated");
}

std::string Context::file_to_write() const { return file_.value_or("outbox.toml"); }

config::Request Context::request(Subscriptions subscriptions, Tasks tasks,
                                 Consumers consumers) const {
  config::Request request{.file = file_,
                          .flags = {},
                          .resolve_subscriptions = subscriptions == Subscriptions::used,
                          .resolve_tasks = tasks == Tasks::used,
                          .resolve_consumers = consumers == Consumers::used};
  for (const std::string& text : settings_) request.flags.push_back(parse_setting(text));
  const auto add = [&](const std::optional<std::string>& value, const char* path,
                       const char* flag) {
    if (value) request.flags.push_back({.path = path, .value = *value, .flag = flag});
  };
  add(store_, "store.url", "--store");
  add(schema_, "store.schema", "--schema");
  add(log_level_, "log.level", "--log-level");
  add(log_format_, "log.format", "--log-format");
  return request;
}

config::Loaded Context::configuration(Subscriptions subscriptions, Tasks tasks,
                                      Consumers consumers) const {
  return in_use(config::load(request(subscriptions, tasks, consumers)), sets_logging_);
}

config::Loaded Context::store_configuration() const {
  config::Request only = request(Subscriptions::unused);
  only.only_store = true;
  return in_use(config::load(only), sets_logging_);
}

config::Loaded Context::store_and_more() const {
  config::Request request = this->request(Subscriptions::unused);
  auto whole = config::load(request);
  if (whole) return in_use(std::move(whole), sets_logging_);
  request.only_store = true;
  auto only = config::load(request);
  if (!only) return in_use(std::move(whole), sets_logging_);
  config::Loaded loaded = in_use(std::move(only), sets_logging_);
  log::warn("the configuration file in this folder is passed over",
            {{"reason", whole.error().front().text()}});
  return loaded;
}

store::StoreOptions Context::store_options(const config::Loaded& loaded, Decided decided) {
  const RelayOptions& options = loaded.config.relay;
  if (options.store_url.empty()) {
    const std::string file = loaded.file.empty() ? "an outbox.toml, which outbox init writes"
                                                 : "store.url in " + loaded.file;
    throw Failure(kUsage, "no store: store.url is not set",
                  "--store sqlite:shop.db, OUTBOX_STORE_URL, or " + file);
  }
  return {.url = options.store_url,
          .schema = options.schema,
          .application = "outbox",
          .decision = std::move(decided)};
}

std::unique_ptr<store::Store> Context::store(const config::Loaded& loaded, Decided decided) {
  return must(store::open_store(store_options(loaded, std::move(decided))));
}

std::unique_ptr<store::Store> Context::checked_store(const config::Loaded& loaded,
                                                     Decided decided) {
  auto opened = store(loaded, std::move(decided));
  must(repeatable(opened->check()));
  return opened;
}

}  // namespace outbox::cli

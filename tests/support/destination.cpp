#include "support/destination.hpp"

#include <fstream>
#include <map>

#include "base/reference.hpp"
#include "support/destinations.hpp"
#include "support/failure.hpp"

namespace outbox::test {
namespace {

/// A file, which is removed with its folder.
class FileDestination final : public Destination {
 public:
  explicit FileDestination(std::string path) : path_(std::move(path)) {}

  SubscriptionSpec subscription(const std::string& name) const override {
    SubscriptionSpec spec{.name = name, .sink = "file"};
    spec.sink_settings["path"] = literal(path_);
    return spec;
  }
  /// Reads whole lines only, because the last one may be half written.
  void read(const Each& each, std::chrono::milliseconds /*wait*/) override {
    std::ifstream file(path_, std::ios::binary);
    file.seekg(read_);
    std::string line;
    while (std::getline(file, line) && !file.eof()) {
      read_ += static_cast<std::streamoff>(line.size()) + 1;
      each(line);
    }
  }
  std::size_t count() override {
    std::size_t lines = 0;
    std::ifstream file(path_, std::ios::binary);
    for (std::string line; std::getline(file, line) && !file.eof();) ++lines;
    return lines;
  }
  void send(const std::string& /*key*/, const std::string& message) override {
    if (!out_.is_open()) out_.open(path_, std::ios::app | std::ios::binary);
    out_ << message << '\n';
  }
  void poll() override { out_.flush(); }
  void flush() override { out_.flush(); }
  std::string place() const override { return path_; }

 private:
  const std::string path_;
  std::streamoff read_{0};
  std::ofstream out_;
};

using Make = std::unique_ptr<Destination> (*)(const std::string&, const std::string&);

const std::map<std::string, Make>& brokers() {
  static const std::map<std::string, Make> all{
#ifdef OUTBOX_WITH_KAFKA
      {"kafka", kafka_destination},
#endif
#ifdef OUTBOX_WITH_REDIS
      {"redis", redis_destination},
#endif
#ifdef OUTBOX_WITH_NATS
      {"nats", nats_destination},
#endif
#ifdef OUTBOX_WITH_RABBITMQ
      {"rabbitmq", rabbitmq_destination}, {"rabbitmq-stream", rabbitmq_stream_destination},
#endif
  };
  return all;
}

}  // namespace

std::unique_ptr<Destination> make_destination(const std::string& where) {
  const std::size_t colon = where.find(':');
  const std::string kind = where.substr(0, colon);
  if (kind == "file") return std::make_unique<FileDestination>(where.substr(colon + 1));
  const std::size_t at = where.find('@');
  const auto broker = brokers().find(kind);
  if (broker != brokers().end() && at != std::string::npos)
    return broker->second(where.substr(colon + 1, at - colon - 1), where.substr(at + 1));
  give_up(Errc::invalid_argument, "destination " + kind + " is not known",
          "file, or a broker that this program was built with");
}

}  // namespace outbox::test

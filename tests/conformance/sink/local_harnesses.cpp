// Runs the suite over the sinks that need no server.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <outbox/testing.hpp>
#include <sstream>
#include <thread>

#include "conformance/sink/json_lines.hpp"
#include "conformance/sink/suite.hpp"
#include "sink/file/file_sink.hpp"
#include "sink/null/null_sink.hpp"
#include "sink/stdout/stdout_sink.hpp"
#include "support/temp_dir.hpp"

namespace outbox {
namespace test {
namespace {

class NullHarness final : public Harness {
 public:
  std::unique_ptr<Sink> make() override { return std::make_unique<sink::NullSink>(); }
  bool keeps() const override { return false; }
  std::vector<Arrived> delivered() override { return {}; }
};

class RecordingHarness final : public Harness {
 public:
  std::unique_ptr<Sink> make() override {
    auto made = std::make_unique<testing::FailingSink>([this](const EventView& event) {
      return event.seq == spoiled_seq_ ? Outcome::Kind::blocked : Outcome::Kind::acked;
    });
    recording_ = made->recording();
    return made;
  }
  std::vector<Arrived> delivered() override {
    std::vector<Arrived> arrived;
    for (const auto& event : recording_->events()) {
      std::optional<std::string> key = event.key;
      if (event.body == R"("no key")") key.reset();  // A recording shows no key as "".
      arrived.push_back({.id = event.id.str(), .key = key, .body = event.body});
    }
    return arrived;
  }
  void spoil(Load& load, std::size_t place) override { spoiled_seq_ = load.item(place).event.seq; }
  void repair() override { spoiled_seq_ = 0; }

 private:
  std::int64_t spoiled_seq_{0};
  std::shared_ptr<const testing::Recording> recording_;
};

/// Whether the disk is full when the marker is written.
std::atomic<bool> disk_is_full{false};
constexpr std::string_view kMarker = "spoiled";

ssize_t write_until_marker(int file, const void* bytes, std::size_t count) {
  const std::string_view text(static_cast<const char*>(bytes), count);
  const auto marker = disk_is_full ? text.find(kMarker) : std::string_view::npos;
  if (marker == 0) {
    errno = ENOSPC;
    return -1;
  }
  return ::write(file, bytes, std::min(count, marker));
}

class FileHarness : public Harness {
 public:
  explicit FileHarness(std::optional<std::chrono::nanoseconds> sync_after)
      : sync_after_(sync_after) {}

  std::unique_ptr<Sink> make() override {
    static const sink::Disk disk{.write = write_until_marker, .sync = ::fdatasync};
    disk_is_full = false;
    return std::make_unique<sink::FileSink>(
        sink::FileOptions{
            .path = folder_.file("events.jsonl"), .mode = 0640, .sync_after = sync_after_},
        disk);
  }
  std::vector<Arrived> delivered() override {
    return read_json_lines(folder_.file("events.jsonl"));
  }
  void spoil(Load& load, std::size_t place) override {
    load.item(place).body = R"("spoiled")";
    disk_is_full = true;
  }
  void repair() override { disk_is_full = false; }

 private:
  std::optional<std::chrono::nanoseconds> sync_after_;
  TempDir folder_;
};

class PipeHarness final : public Harness {
 public:
  PipeHarness() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    write_end_ = ends[1];
    reader_ = std::thread([this, read_end = ends[0]] {
      std::array<char, 65536> chunk;
      for (ssize_t count = 0; (count = ::read(read_end, chunk.data(), chunk.size())) > 0;) {
        text_.append(chunk.data(), static_cast<std::size_t>(count));
      }
      ::close(read_end);
    });
  }
  ~PipeHarness() override { finish(); }

  std::unique_ptr<Sink> make() override { return std::make_unique<sink::StdoutSink>(write_end_); }
  void purging() override { may_be_torn_ = true; }
  std::vector<Arrived> delivered() override {
    finish();
    std::istringstream all(text_);
    std::stringstream whole;
    for (std::string line; std::getline(all, line);) {
      // A reader that is slow during a purge gets one incomplete line.
      const bool torn = may_be_torn_ && !nlohmann::json::accept(line);
      if (torn) may_be_torn_ = false;
      if (!torn) whole << line << '\n';
    }
    return read_json_lines(whole);
  }

 private:
  void finish() {
    if (!reader_.joinable()) return;
    ::close(write_end_);
    reader_.join();
  }

  int write_end_{-1};
  bool may_be_torn_{false};
  std::string text_;
  std::thread reader_;
};

}  // namespace

}  // namespace test

std::vector<conformance::HarnessKind> conformance::harness_kinds() {
  using namespace test;  // The use is limited to one function.
  using std::chrono::milliseconds;
  return {
      {"null", [] { return std::unique_ptr<Harness>(new NullHarness); }, "", false},
      {"testing", [] { return std::unique_ptr<Harness>(new RecordingHarness); }, "", true},
      {"file", [] { return std::unique_ptr<Harness>(new FileHarness(milliseconds(0))); }, "", true},
      {"file_interval", [] { return std::unique_ptr<Harness>(new FileHarness(milliseconds(20))); },
       "", true},
      {"file_never", [] { return std::unique_ptr<Harness>(new FileHarness(std::nullopt)); }, "",
       true},
      {"stdout", [] { return std::unique_ptr<Harness>(new PipeHarness); }, "", false},
  };
}

}  // namespace outbox

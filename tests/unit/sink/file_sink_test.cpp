// What is special about the file sink: crashes in the middle of a line, full and failing disks,
// other writers, rotation.
#include "sink/file/file_sink.hpp"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "conformance/sink/json_lines.hpp"
#include "conformance/sink/suite.hpp"
#include "support/temp_dir.hpp"

namespace outbox::test {
namespace {

using sink::FileOptions;
using sink::FileSink;
using std::chrono::milliseconds;
namespace fs = std::filesystem;

class FileSinkTest : public testing::Test {
 protected:
  FileOptions options() const {
    return {.path = path_, .mode = 0640, .sync_after = milliseconds(0)};
  }
  void write(const std::string& text) {
    std::ofstream(path_, std::ios::binary | std::ios::app) << text;
  }
  void expect_arrived(const Load& load) {
    expect_complete_and_ordered(places(read_json_lines(path_), load), load);
  }
  Error open_error(FileSink& sink) {
    const Status status = sink.open();
    EXPECT_FALSE(status);
    return status ? Error{} : status.error();
  }

  TempDir folder_;
  std::string path_{folder_.file("events.jsonl")};
};

TEST_F(FileSinkTest, creates_the_file_with_its_mode) {
  FileSink sink({.path = path_, .mode = 0600, .sync_after = {}});
  ASSERT_TRUE(sink.open());
  EXPECT_EQ(fs::status(path_).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(FileSinkTest, names_the_missing_directory) {
  FileSink sink({.path = folder_.file("no/such/file"), .mode = 0640, .sync_after = {}});
  const Error error = open_error(sink);
  EXPECT_EQ(error.code, Errc::not_found);
  EXPECT_NE(error.message.find("no/such does not exist"), std::string::npos) << error.message;
  EXPECT_NE(error.hint.find("mkdir -p"), std::string::npos) << error.hint;
}

TEST_F(FileSinkTest, refuses_directories_and_pipes) {
  FileSink directory({.path = folder_.path().string(), .mode = 0640, .sync_after = {}});
  EXPECT_NE(open_error(directory).message.find("is a directory"), std::string::npos);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  FileSink pipe(options());
  EXPECT_NE(open_error(pipe).message.find("not a regular file"), std::string::npos);
}

TEST_F(FileSinkTest, refuses_a_second_writer_until_the_first_is_gone) {
  FileSink first(options());
  ASSERT_TRUE(first.open());
  FileSink second(options());
  const Error error = open_error(second);
  EXPECT_EQ(error.code, Errc::unavailable);
  EXPECT_NE(error.message.find("another process has locked it"), std::string::npos)
      << error.message;
  first.close();
  EXPECT_TRUE(second.open());
}

TEST_F(FileSinkTest, cuts_off_the_line_that_a_crash_left_unfinished) {
  Load load;
  load.add_many(3, 1);
  {
    FileSink sink(options());
    MiniRelay relay(sink, load);
    ASSERT_TRUE(relay.deliver());
  }
  const std::string whole = read_file(path_);
  for (const std::string& torn :
       {std::string("{"), std::string(R"({"topic":"order.ev)"), std::string(100'000, '\0'),
        R"({"topic":")" + std::string(200'000, 'x')}) {
    write(torn);
    FileSink sink(options());
    ASSERT_TRUE(sink.open());
    EXPECT_EQ(read_file(path_), whole);
  }
}

TEST_F(FileSinkTest, does_not_touch_the_last_line_of_somebody_elses_file) {
  write("root:x:0:0:root:/root:/bin/bash\nno line feed at the end");
  FileSink sink(options());
  EXPECT_NE(open_error(sink).message.find("an incomplete line that is not ours"),
            std::string::npos);
  EXPECT_EQ(read_file(path_), "root:x:0:0:root:/root:/bin/bash\nno line feed at the end");
}

TEST_F(FileSinkTest, follows_a_rotated_file) {
  Load load;
  load.add_many(20, 2);
  FileSink sink(options());
  MiniRelay relay(sink, load);
  ASSERT_TRUE(sink.open());
  ASSERT_EQ(relay.offer(10), 10U);
  fs::rename(path_, path_ + ".1");
  ASSERT_EQ(relay.offer(10), 10U);
  ASSERT_TRUE(relay.drain());
  EXPECT_EQ(relay.acked(), 20U);
  EXPECT_EQ(read_json_lines(path_ + ".1").size(), 10U);
  EXPECT_EQ(read_json_lines(path_).size(), 10U);
}

TEST_F(FileSinkTest, given_up_before_its_sync_was_due_it_syncs_and_acks) {
  Load load;
  load.add_many(20, 2);
  FileSink sink({.path = path_, .mode = 0640, .sync_after = std::chrono::minutes(10)});
  MiniRelay relay(sink, load);
  ASSERT_TRUE(sink.open());
  ASSERT_EQ(relay.offer(20), 20U);
  EXPECT_EQ(relay.acked(), 0U);
  sink.purge();
  relay.receive();
  EXPECT_EQ(relay.acked(), 20U);
}

TEST_F(FileSinkTest, does_not_put_off_the_sync_of_much) {
  Load load;
  for (int i = 0; i < 100; ++i) load.add("k", '"' + std::string(100'000, 'x') + '"');
  FileSink sink({.path = path_, .mode = 0640, .sync_after = std::chrono::minutes(10)});
  MiniRelay relay(sink, load);
  ASSERT_TRUE(sink.open());
  relay.offer_all();
  relay.receive();
  EXPECT_GT(relay.acked(), 30U);
}

TEST_F(FileSinkTest, goes_on_after_the_file_was_emptied) {
  Load load;
  load.add_many(20, 2);
  FileSink sink(options());
  MiniRelay relay(sink, load);
  ASSERT_TRUE(sink.open());
  ASSERT_EQ(relay.offer(10), 10U);
  fs::resize_file(path_, 0);
  ASSERT_EQ(relay.offer(10), 10U);
  ASSERT_TRUE(relay.drain());
  EXPECT_EQ(read_json_lines(path_).size(), 10U);
}

/// A soft limit on the size of files: the kernel writes short and fails, as on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    was_ = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() { lift(); }
  void lift() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, was_);
  }

 private:
  rlimit before_{};
  sighandler_t was_{};
};

TEST_F(FileSinkTest, undoes_the_line_that_did_not_fit_and_goes_on_later) {
  Load load;
  load.add_many(100, 3);
  FileSink sink(options());
  MiniRelay relay(sink, load);
  FileSizeLimit limit(4096);
  const bool delivered = relay.deliver(std::chrono::seconds(30), [&] {
    const std::string text = read_file(path_);
    EXPECT_LE(text.size(), 4096U);
    ASSERT_TRUE(text.ends_with("}\n"));
    limit.lift();
  });
  ASSERT_TRUE(delivered);
  ASSERT_EQ(relay.failures().size(), 1U);
  const auto& failure = relay.failures().front().outcome;
  EXPECT_EQ(failure.kind, Outcome::Kind::blocked);
  EXPECT_FALSE(failure.error.hint.empty());
  const auto arrived = places(read_json_lines(path_), load);
  EXPECT_EQ(arrived.size(), load.size()) << "no line twice";
  expect_arrived(load);
}

TEST_F(FileSinkTest, says_that_the_disk_is_full) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to mount a small file system";
  if (::mount("none", folder_.path().c_str(), "tmpfs", 0, "size=64k") != 0) {
    GTEST_SKIP() << "needs the right to mount a tmpfs";
  }
  {
    Load load;
    for (int i = 0; i < 100; ++i) load.add("k", '"' + std::string(2000, 'x') + '"');
    FileSink sink(options());
    MiniRelay relay(sink, load);
    ASSERT_TRUE(sink.open());
    relay.offer_all();
    ASSERT_TRUE(relay.drain());
    ASSERT_EQ(relay.failures().size(), 1U);
    const auto& failure = relay.failures().front().outcome;
    EXPECT_EQ(failure.kind, Outcome::Kind::blocked);
    EXPECT_NE(failure.error.message.find("No space left"), std::string::npos)
        << failure.error.message;
    EXPECT_EQ(read_json_lines(path_).size(), relay.acked());
    sink.close();
  }
  EXPECT_EQ(::umount(folder_.path().c_str()), 0);
}

std::atomic<int> syncs{0};
std::atomic<bool> sync_fails{false};

int counting_sync(int file) {
  ++syncs;
  if (sync_fails) {
    errno = EIO;
    return -1;
  }
  return ::fdatasync(file);
}

const sink::Disk kCountingDisk{.write = ::write, .sync = counting_sync};

TEST_F(FileSinkTest, a_failed_sync_leaves_all_in_doubt_and_they_are_written_anew) {
  sync_fails = false;
  Load load;
  load.add_many(30, 3);
  FileSink sink(options(), kCountingDisk);
  MiniRelay relay(sink, load);
  ASSERT_TRUE(sink.open());
  ASSERT_EQ(relay.offer(10), 10U);
  sync_fails = true;
  ASSERT_EQ(relay.offer(10), 10U);
  ASSERT_TRUE(relay.drain());
  EXPECT_EQ(relay.offer(10), 0U);
  EXPECT_EQ(relay.acked(), 10U);
  ASSERT_EQ(relay.failures().size(), 10U);
  for (const auto& failure : relay.failures()) {
    EXPECT_EQ(failure.outcome.kind, Outcome::Kind::unknown);
    EXPECT_EQ(failure.outcome.error.effect, Effect::unknown);
  }
  sync_fails = false;
  ASSERT_TRUE(sink.open());
  EXPECT_EQ(read_json_lines(path_).size(), 10U) << "what is in doubt is cut off";
  relay.rewind();
  ASSERT_TRUE(relay.deliver());
  EXPECT_EQ(places(read_json_lines(path_), load).size(), 30U);
  expect_arrived(load);
}

TEST_F(FileSinkTest, one_sync_per_batch) {
  sync_fails = false;
  syncs = 0;
  Load load;
  load.add_many(500, 3);
  FileSink sink(options(), kCountingDisk);
  MiniRelay relay(sink, load);
  ASSERT_TRUE(sink.open());
  while (relay.offer(100) > 0) relay.receive();
  EXPECT_EQ(relay.acked(), 500U);
  EXPECT_EQ(syncs, 5);
}

TEST_F(FileSinkTest, an_interval_acks_many_batches_with_one_sync) {
  sync_fails = false;
  syncs = 0;
  Load load;
  load.add_many(500, 3);
  FileOptions with_interval = options();
  with_interval.sync_after = milliseconds(200);
  // If the machine was suspended meanwhile, a sync was due, which proves nothing: try again.
  for (bool in_time = false; !in_time;) {
    std::filesystem::remove(path_);
    syncs = 0;
    FileSink sink(with_interval, kCountingDisk);
    MiniRelay relay(sink, load);
    ASSERT_TRUE(sink.open());
    const auto from = std::chrono::steady_clock::now();
    while (relay.offer(100) > 0) {
    }
    const int early = syncs;
    const std::size_t acked = relay.acked();
    in_time = std::chrono::steady_clock::now() - from < *with_interval.sync_after;
    ASSERT_TRUE(relay.drain());
    EXPECT_EQ(relay.acked(), 500U);
    if (!in_time) continue;
    EXPECT_EQ(early, 0);
    EXPECT_EQ(acked, 0U) << "nothing is acked before it is durable";
    EXPECT_EQ(syncs, 1);
  }
}

TEST_F(FileSinkTest, never_means_never) {
  syncs = 0;
  Load load;
  load.add_many(500, 3);
  FileOptions never = options();
  never.sync_after.reset();
  FileSink sink(never, kCountingDisk);
  MiniRelay relay(sink, load);
  ASSERT_TRUE(relay.deliver());
  EXPECT_EQ(syncs, 0);
}

}  // namespace
}  // namespace outbox::test

// The source and the inbox of outbox_test_consumer are the real ones with fault points around the
// steps of a batch. The linker puts these functions in the place of source::make_source and
// store::sql::make_inbox (--wrap).
#include <utility>

#include "source/registry.hpp"
#include "store/sql/parts.hpp"
#include "support/fault_points.hpp"

namespace outbox::test {
namespace {

class Source final : public source::Source {
 public:
  explicit Source(std::unique_ptr<source::Source> real) : real_(std::move(real)) {}
  Status open() override { return real_->open(); }
  Status receive(const source::Wanted& wanted, std::vector<source::Received>& into) override {
    Status status = real_->receive(wanted, into);
    if (status && !into.empty()) fault_point("receive.after");
    return status;
  }
  Status acknowledge(std::span<const source::Received> messages) override {
    fault_point("acknowledge.before");
    Status status = real_->acknowledge(messages);
    if (status) fault_point("acknowledge.after");
    return status;
  }
  std::optional<std::int64_t> lag() override { return real_->lag(); }
  void close() noexcept override { real_->close(); }

 private:
  const std::unique_ptr<source::Source> real_;
};

class Connection final : public store::sql::Connection {
 public:
  explicit Connection(std::unique_ptr<store::sql::Connection> real) : real_(std::move(real)) {}
  Result<store::sql::Rows> exec(store::sql::Named statement,
                                const store::sql::Params& params) override {
    return real_->exec(statement, params);
  }
  Status run_and_write(store::sql::Named statement, const store::sql::Params& params,
                       std::span<const Event> events, std::span<const EventId> ids) override {
    return real_->run_and_write(statement, params, events, ids);
  }
  Status transact(const std::function<Result<store::sql::Decision>()>& body) override {
    Status status = real_->transact([&] {
      auto decision = body();
      if (decision) fault_point("commit.before");
      return decision;
    });
    if (status) fault_point("commit.after");
    return status;
  }

 private:
  const std::unique_ptr<store::sql::Connection> real_;
};

using MadeSource = Result<std::unique_ptr<source::Source>>;
using MadeInbox = std::unique_ptr<store::Inbox>;

}  // namespace

// The names that --wrap gives to the real functions and to those that are called instead.
MadeSource real_make_source(const ConsumerSpec& spec) __asm__(
    "__real__ZN6outbox6source11make_sourceERKNS_12ConsumerSpecE");
MadeSource faulty_make_source(const ConsumerSpec& spec) __asm__(
    "__wrap__ZN6outbox6source11make_sourceERKNS_12ConsumerSpecE");
MadeInbox real_make_inbox(std::unique_ptr<store::sql::Connection> connection) __asm__(
    "__real__ZN6outbox5store3sql10make_inboxESt10unique_ptrINS1_10ConnectionESt14default_deleteIS3_EE");
MadeInbox faulty_make_inbox(std::unique_ptr<store::sql::Connection> connection) __asm__(
    "__wrap__ZN6outbox5store3sql10make_inboxESt10unique_ptrINS1_10ConnectionESt14default_deleteIS3_EE");

MadeSource faulty_make_source(const ConsumerSpec& spec) {
  auto made = real_make_source(spec);
  if (made) *made = std::make_unique<Source>(std::move(*made));
  return made;
}

MadeInbox faulty_make_inbox(std::unique_ptr<store::sql::Connection> connection) {
  return real_make_inbox(std::make_unique<Connection>(std::move(connection)));
}

}  // namespace outbox::test

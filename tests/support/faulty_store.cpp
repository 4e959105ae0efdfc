// The store of outbox_test_relay is the real one with fault points around what a relay does with
// it. The linker puts its function in the place of store::open_store (--wrap).
#include <bit>
#include <utility>

#include "base/error.hpp"
#include "store/store.hpp"
#include "support/fault_points.hpp"

namespace outbox::test {
namespace {

template <class T>
using Made = Result<std::unique_ptr<T>>;

/// Calls the function between a point before and a point after it.
template <class Call>
auto between(const std::string& step, const Call& call) {
  fault_point(step + ".before");
  auto result = call();
  if (result) fault_point(step + ".after");
  return result;
}

class Membership final : public store::Membership {
 public:
  explicit Membership(std::unique_ptr<store::Membership> real) : real_(std::move(real)) {}
  Result<bool> keep(std::chrono::milliseconds lease) override {
    return between(std::exchange(known_, true) ? "heartbeat" : "register",
                   [&] { return real_->keep(lease); });
  }
  Status leave() override {
    return between("leave", [&] { return real_->leave(); });
  }

 private:
  std::unique_ptr<store::Membership> real_;
  bool known_{false};
};

class LaneOwners final : public store::LaneOwners {
 public:
  explicit LaneOwners(std::unique_ptr<store::LaneOwners> real) : real_(std::move(real)) {}
  Result<store::Fleet> look() override { return real_->look(); }
  Result<std::optional<store::Holding>> change(const std::string& group,
                                               store::LaneMask wanted) override {
    const bool gives = std::popcount(wanted) < std::popcount(held_);
    auto changed =
        between(gives ? "handover" : "claim", [&] { return real_->change(group, wanted); });
    if (changed && *changed) held_ = (*changed)->lanes;
    return changed;
  }

 private:
  std::unique_ptr<store::LaneOwners> real_;
  /// The lanes of the only group in which the test relay has subscriptions.
  store::LaneMask held_{0};
};

class LogReader final : public store::LogReader {
 public:
  explicit LogReader(std::unique_ptr<store::LogReader> real) : real_(std::move(real)) {}
  Status begin(std::span<const store::Cursor> cursors) override { return real_->begin(cursors); }
  Status start(const store::PageRequest& request) override { return real_->start(request); }
  Result<store::Page> finish() override {
    fault_point("page.before");
    auto page = real_->finish();
    read_ = page && !page->events.empty();
    if (read_) fault_point("page.after");
    return page;
  }
  Status wait_durable() override {
    if (!read_) return real_->wait_durable();
    return between("barrier", [&] { return real_->wait_durable(); });
  }
  Result<store::Replication> replication(const store::Standbys& standbys) override {
    return real_->replication(standbys);
  }
  [[nodiscard]] std::uint64_t statements() const override { return real_->statements(); }

 private:
  std::unique_ptr<store::LogReader> real_;
  bool read_{false};
};

class Progress final : public store::Progress {
 public:
  explicit Progress(std::unique_ptr<store::Progress> real) : real_(std::move(real)) {}
  Result<std::vector<store::Strand>> load(std::int32_t subscription,
                                          store::LaneMask lanes) override {
    return real_->load(subscription, lanes);
  }
  Status claim(std::int32_t subscription, store::LaneMask lanes, std::int64_t generation) override {
    return real_->claim(subscription, lanes, generation);
  }
  Status begin_beside(std::int32_t base, std::int32_t subscription, store::LaneMask lanes,
                      std::int64_t generation) override {
    return real_->begin_beside(base, subscription, lanes, generation);
  }
  Result<store::ParkedKeys> parked_keys(std::int32_t subscription, store::LaneMask lanes,
                                        bool dead_block) override {
    return real_->parked_keys(subscription, lanes, dead_block);
  }
  Result<store::DueEvents> due(std::int32_t subscription, const store::Holding& holding,
                               const store::DueLimits& limits,
                               std::span<const store::AskedRow> asked) override {
    return real_->due(subscription, holding, limits, asked);
  }
  Result<std::vector<store::ReleasedKey>> append(const store::ProgressBatch& batch,
                                                 store::Durability durability) override {
    const char* const step = !batch.parked.empty()    ? "park"
                             : !batch.results.empty() ? "retry"
                                                      : "settle";
    return between(step, [&] { return real_->append(batch, durability); });
  }
  [[nodiscard]] std::uint64_t statements() const override { return real_->statements(); }

 private:
  std::unique_ptr<store::Progress> real_;
};

class Maintenance final : public store::Maintenance {
 public:
  explicit Maintenance(std::unique_ptr<store::Maintenance> real) : real_(std::move(real)) {}
  Result<std::string> run() override {
    return between("maintenance", [&] { return real_->run(); });
  }

 private:
  std::unique_ptr<store::Maintenance> real_;
};

class Retention final : public store::Retention {
 public:
  explicit Retention(std::unique_ptr<store::Retention> real) : real_(std::move(real)) {}
  Result<bool> hold(const EventId& who, Duration lease) override { return real_->hold(who, lease); }
  Status release(const EventId& who) override { return real_->release(who); }
  Result<std::vector<store::LogPiece>> survey(Duration keep) override {
    return real_->survey(keep);
  }
  Result<store::Removal> remove(const store::LogPiece& piece, const std::string& archive,
                                const std::stop_token& stop) override {
    return between("removal", [&] { return real_->remove(piece, archive, stop); });
  }
  Result<std::int64_t> tidy(Duration keep, const std::stop_token& stop) override {
    return between("tidy", [&] { return real_->tidy(keep, stop); });
  }
  Status tidy_inbox(Duration keep, const std::stop_token& stop) override {
    return real_->tidy_inbox(keep, stop);
  }
  Status tidy_audit(Duration keep, const std::stop_token& stop) override {
    return real_->tidy_audit(keep, stop);
  }

 private:
  std::unique_ptr<store::Retention> real_;
};

template <class Faulty, class Real>
Made<Real> decorated(Made<Real> made) {
  if (made) *made = std::make_unique<Faulty>(std::move(*made));
  return made;
}

class Store final : public store::Store {
 public:
  explicit Store(std::unique_ptr<store::Store> real) : real_(std::move(real)) {}
  Result<std::vector<std::string>> migrate() override { return real_->migrate(); }
  Result<std::vector<std::string>> make_lookup_indexes() override {
    return real_->make_lookup_indexes();
  }
  Result<std::string> make_wal_publication() override { return real_->make_wal_publication(); }
  Result<store::SchemaState> schema_state() override { return real_->schema_state(); }
  Status check() override { return real_->check(); }
  Result<store::LineageRepair> plan_lineage_repair() override {
    return real_->plan_lineage_repair();
  }
  Result<store::LineageRepair> repair_lineage() override { return real_->repair_lineage(); }
  Made<store::LogReader> reader() override { return decorated<LogReader>(real_->reader()); }
  Made<store::Progress> progress() override { return decorated<Progress>(real_->progress()); }
  Made<store::Membership> membership(store::RelayIdentity relay) override {
    return decorated<Membership>(real_->membership(std::move(relay)));
  }
  Made<store::LaneOwners> lane_owners(const EventId& relay) override {
    return decorated<LaneOwners>(real_->lane_owners(relay));
  }
  Made<store::Catalog> catalog() override { return real_->catalog(); }
  Made<store::Wakeup> wakeup(const store::WakeupOptions& options) override {
    return real_->wakeup(options);
  }
  Made<store::Maintenance> maintenance() override {
    return decorated<Maintenance>(real_->maintenance());
  }
  Made<store::Writer> writer() override { return real_->writer(); }
  Made<store::ParkedEvents> parked_events() override { return real_->parked_events(); }
  Made<store::Events> events() override { return real_->events(); }
  Made<store::LedgerReader> ledger_reader() override { return real_->ledger_reader(); }
  Made<store::Verified> verified() override { return real_->verified(); }
  Made<store::WorkHistory> work_history() override { return real_->work_history(); }
  Made<store::Trials> trials() override { return real_->trials(); }
  Made<store::TaskRuns> task_runs() override { return real_->task_runs(); }
  Made<store::TaskQueues> task_queues() override { return real_->task_queues(); }
  Made<store::Schedules> schedules() override { return real_->schedules(); }
  Made<store::Audit> audit() override { return real_->audit(); }
  Made<store::ConsoleTokens> console_tokens() override { return real_->console_tokens(); }
  Made<store::Inbox> inbox() override { return real_->inbox(); }
  Made<store::Replays> replays() override { return real_->replays(); }
  Made<store::Retention> retention() override { return decorated<Retention>(real_->retention()); }

 private:
  std::unique_ptr<store::Store> real_;
};

}  // namespace

// The names that --wrap gives to the real function and to the one that is called instead.
Made<store::Store> real_open_store(store::StoreOptions options) __asm__(
    "__real__ZN6outbox5store10open_storeENS0_12StoreOptionsE");
Made<store::Store> faulty_open_store(store::StoreOptions options) __asm__(
    "__wrap__ZN6outbox5store10open_storeENS0_12StoreOptionsE");

Made<store::Store> faulty_open_store(store::StoreOptions options) {
  return decorated<Store>(real_open_store(std::move(options)));
}

}  // namespace outbox::test

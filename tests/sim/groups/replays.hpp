// A relay's connection to the tables of a replay.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "sim/groups/tables.hpp"
#include "store/replay.hpp"

namespace outbox::sim {

class SimReplays final : public store::Replays {
 public:
  SimReplays(const Database& database, const Tables& tables)
      : database_(database), tables_(tables), incarnation_(database.incarnation()) {}

  [[nodiscard]] Result<std::optional<store::Replay>> find(std::int64_t replay) override {
    const store::Replay& newest = tables_.replay().replay;
    return newest.id == replay ? std::optional(newest) : std::nullopt;
  }
  [[nodiscard]] Result<std::vector<store::ReplayPlace>> places(const store::Replay& replay,
                                                               store::LaneMask lanes) override {
    std::vector<store::ReplayPlace> rows;
    for (unsigned lane = 0; lane < 64; ++lane)
      rows.push_back(
          {.lanes = store::LaneMask{1} << lane, .position = tables_.replay().positions[lane]});
    return store::resume_places(rows, replay.first - 1, lanes);
  }
  [[nodiscard]] Result<std::vector<store::ReplaySkip>> skips(std::int64_t /*replay*/,
                                                             std::size_t /*limit*/) override {
    std::vector<store::ReplaySkip> skips = tables_.replay().skips;
    for (store::ReplaySkip& skip : skips) {
      const EventView& event = database_.event(number_of(skip.id)).view;
      skip.aggregate_type = event.aggregate_type;
      skip.aggregate_id = event.aggregate_id;
    }
    return skips;
  }
  [[nodiscard]] Result<store::ReplayPage> page(const store::ReplayRequest& request) override {
    if (incarnation_ != database_.incarnation())
      return fail(Errc::unavailable, "the connection is lost");
    return tables_.page(request);
  }

  // A relay does not call the following.
  [[nodiscard]] Result<store::RetainedLog> retained() override { return unused(); }
  [[nodiscard]] Result<std::int64_t> seq_at(std::int64_t /*time*/) override { return unused(); }
  [[nodiscard]] Result<std::int64_t> start(const store::Replay& /*replay*/) override {
    return unused();
  }
  [[nodiscard]] Result<std::int64_t> load(std::int64_t /*replay*/,
                                          std::span<const EventView> /*events*/) override {
    return unused();
  }
  [[nodiscard]] Status loaded(std::int64_t /*replay*/) override { return unused(); }
  [[nodiscard]] Result<bool> stop(std::int64_t /*replay*/, std::string_view /*reason*/) override {
    return unused();
  }
  [[nodiscard]] Status resume(std::int64_t /*replay*/) override { return unused(); }
  [[nodiscard]] Result<std::vector<store::Replay>> list(std::int32_t /*subscription*/,
                                                        std::size_t /*limit*/) override {
    return unused();
  }

 private:
  static tl::unexpected<Error> unused() { return fail(Errc::internal, "not in this world"); }

  const Database& database_;
  const Tables& tables_;
  const int incarnation_;
};

}  // namespace outbox::sim

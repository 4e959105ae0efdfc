// Several statements in one round trip: libpq's pipeline mode, with statements prepared where that
// works.
#pragma once

#include <libpq-fe.h>

#include <chrono>
#include <optional>
#include <outbox/error.hpp>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "pg/param.hpp"
#include "pg/rows.hpp"
#include "store/postgres/query.hpp"

namespace outbox::store::postgres {

using pg::ArrayParam;
using pg::Param;
using pg::Params;
using pg::Rows;

/// A statement to send. Parameters that are borrowed must stay valid until the statement's result
/// was collected.
struct Step {
  const Query* query{nullptr};
  Params params{};
};

/// The batch that is under way on one connection, and the statements that are prepared on it. It is
/// used by one thread at a time.
class Pipeline {
 public:
  /// Hands the statements to the network without waiting for results; collect() must follow. The
  /// statements of one batch are one implicit transaction unless they say BEGIN.
  [[nodiscard]] Status send(PGconn* connection, std::span<const Step> steps, bool prepared);
  /// The results of the statements that were sent, in order. If any of them failed, the first error
  /// of the server is returned. Without a deadline it waits as long as the connection lasts.
  [[nodiscard]] Result<std::vector<Rows>> collect(
      PGconn* connection, std::span<const Step> steps,
      std::optional<std::chrono::milliseconds> deadline);

  /// Whether results of the last batch are missing, so that the connection is out of step.
  [[nodiscard]] bool lost() const noexcept { return lost_; }
  /// Must be called when the server has lost our prepared statements.
  void forget() { prepared_.clear(); }

 private:
  using Deadline = std::optional<std::chrono::steady_clock::time_point>;

  [[nodiscard]] bool transmit(PGconn* connection, std::span<const Step> steps, std::size_t index,
                              bool prepared);
  [[nodiscard]] Status read(PGconn* connection, std::span<const Step> steps,
                            std::vector<Rows>& rows, std::optional<Error>& failed);
  [[nodiscard]] Result<Rows> next_result(PGconn* connection, const Query& query);
  [[nodiscard]] Result<PGresult*> get(PGconn* connection, const Query& query);
  [[nodiscard]] Status flush(PGconn* connection, const Query& query);
  [[nodiscard]] Status wait(PGconn* connection, bool writable_too, const Query& query);
  [[nodiscard]] tl::unexpected<Error> lose(PGconn* connection, const Query& query);

  std::unordered_set<std::string> prepared_;
  std::vector<bool> prepares_;  ///< Which steps of the batch are preceded by a request to prepare.
  std::optional<std::chrono::milliseconds> timeout_;
  Deadline deadline_;
  bool lost_{false};
};

/// Whether a prepared statement is missing, or one exists that we did not prepare: then the
/// connection goes through a pooler that does not support prepared statements. (The names contain a
/// hash of the text, so a foreign statement is never taken for ours.)
[[nodiscard]] bool blames_prepared(const Error& error);

/// The server answers COMMIT of a transaction that had failed with ROLLBACK rather than with an
/// error. This function makes it an error.
[[nodiscard]] Status check_commit(const Rows& commit);

}  // namespace outbox::store::postgres

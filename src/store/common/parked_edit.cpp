#include "store/common/parked_edit.hpp"

#include <string>

#include "base/error.hpp"

namespace outbox::store {

Status edit_status(std::string_view word, const ParkedEdit& edit) {
  if (word == "edited") return {};
  const std::string event = edit.id.str() + " (seq " + std::to_string(edit.seq) + ")";
  if (word == "waiting") {
    return fail(Errc::invalid_argument, event + " waits behind an earlier event of its key",
                "edit, retry or discard that one first; outbox events --id shows which");
  }
  if (word == "due") {
    return fail(Errc::unavailable, Remedy::retry_call,
                event + " is due, and a relay may be sending it: nothing was changed",
                "try again in a moment, when that attempt is over");
  }
  return fail(Errc::not_found, event + " is no longer parked",
              "it was delivered, discarded or edited meanwhile; outbox events --id shows which");
}

}  // namespace outbox::store

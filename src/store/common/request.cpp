#include "store/common/request.hpp"

#include "base/error.hpp"

namespace outbox::store {

Status check_request(const PageRequest& request) {
  if (request.lanes == kAllLanes) return {};
  return fail(Errc::unsupported, "a page of some lanes only cannot be read");
}

}  // namespace outbox::store

// A new store is a folder with a `backend`, a StoreKind, and its lines here.
#include "store/backends.hpp"

namespace outbox::store {

namespace postgres {
extern const Backend backend;
}
namespace sqlite {
extern const Backend backend;
}

const Backend* backend_of(StoreKind kind) noexcept {
  switch (kind) {
#ifdef OUTBOX_WITH_POSTGRES
    case StoreKind::postgres: return &postgres::backend;
#endif
#ifdef OUTBOX_WITH_SQLITE
    case StoreKind::sqlite: return &sqlite::backend;
#endif
    default: return nullptr;
  }
}

}  // namespace outbox::store

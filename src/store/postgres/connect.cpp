#include "store/postgres/connect.hpp"

#include <array>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/log.hpp"
#include "store/postgres/error_map.hpp"
#include "store/postgres/url.hpp"

namespace outbox::store::postgres {
namespace {

constexpr int kOldestServer = 140000;

struct FreeOptions {
  void operator()(PQconninfoOption* options) const noexcept { PQconninfoFree(options); }
};
using Options = std::unique_ptr<PQconninfoOption, FreeOptions>;

// A dead peer is noticed in 25 s instead of hours. Only what neither the URL nor the environment says is set; they stand
// before the URL in the list, so that it overrides them.
constexpr std::array<std::pair<const char*, const char*>, 6> kDefaults{{
    {"connect_timeout", "5"},
    {"keepalives", "1"},
    {"keepalives_idle", "10"},
    {"keepalives_interval", "5"},
    {"keepalives_count", "3"},
    {"tcp_user_timeout", "20000"},
}};

/// Known to this libpq and not set by the environment.
bool open_choice(const PQconninfoOption* known, const char* keyword) {
  for (; known != nullptr && known->keyword != nullptr; ++known) {
    if (std::strcmp(known->keyword, keyword) == 0) return known->val == nullptr;
  }
  return false;
}

void on_notice(void*, const PGresult* notice) {
  const char* severity = PQresultErrorField(notice, PG_DIAG_SEVERITY_NONLOCALIZED);
  const char* said = PQresultErrorField(notice, PG_DIAG_MESSAGE_PRIMARY);
  if (severity == nullptr || said == nullptr) return;
  if (std::strcmp(severity, "WARNING") == 0) {
    log::warn("postgresql warns", {{"text", said}});
  } else {
    log::debug("postgresql says", {{"text", said}});
  }
}

}  // namespace

Result<PGconn*> connect(const std::string& url, const std::string& application) {
  // libpq quotes what it does not understand, which may be of the password.
  if (Status status = check_url(url); !status) {
    status.error().message = "the store URL " + status.error().message;
    return pass(status);
  }
  const Options known(PQconndefaults());
  std::vector<const char*> keywords;
  std::vector<const char*> values;
  const auto set = [&](const char* keyword, const char* value) {
    keywords.push_back(keyword);
    values.push_back(value);
  };
  for (const auto& [keyword, value] : kDefaults) {
    if (open_choice(known.get(), keyword)) set(keyword, value);
  }
  set("fallback_application_name", application.c_str());
  set("dbname", url.c_str());
  set("client_encoding", "UTF8");
  set(nullptr, nullptr);
  struct Close {
    void operator()(PGconn* connection) const noexcept { PQfinish(connection); }
  };
  std::unique_ptr<PGconn, Close> connection(PQconnectdbParams(keywords.data(), values.data(), 1));
  if (!connection || PQstatus(connection.get()) != CONNECTION_OK)
    return fail(failed_connect(connection.get()));
  PQsetNoticeReceiver(connection.get(), on_notice, nullptr);
  if (PQserverVersion(connection.get()) < kOldestServer) {
    return fail(Errc::unsupported,
                std::string("the server is PostgreSQL ") +
                    PQparameterStatus(connection.get(), "server_version"),
                "PostgreSQL 14 or newer is needed");
  }
  return connection.release();
}

}  // namespace outbox::store::postgres

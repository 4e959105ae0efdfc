#include "sink/kafka/reported.hpp"

#include <algorithm>
#include <string_view>

#include "base/error.hpp"
#include "base/log.hpp"
#include "sink/kafka/error_map.hpp"

namespace outbox::sink::kafka {
namespace {

/// A broker that refuses us does so within this time; another of the list would have accepted us.
constexpr std::chrono::milliseconds kRefusal{1000};
/// How long to wait for the error callback.
constexpr std::chrono::milliseconds kErrorPoll{100};

void on_log(const rd_kafka_t*, int level, const char* facility, const char* text) {
  constexpr int kWarning = 4;  // The level of syslog.
  // CONFWARN warns of our settings at each start ("the gapless guarantee is experimental").
  const bool expected = std::string_view(facility) == "CONFWARN";
  // Info at most: errors that need a person become outcomes, which the relay logs once.
  if (level <= kWarning && !expected) {
    log::info("kafka client", {{"facility", facility}, {"text", text}});
  } else {
    log::debug("kafka client", {{"facility", facility}, {"text", text}});
  }
}

/// librdkafka reports some errors of OpenSSL as lost connections, among them certificates that
/// either side refuses. A connection that just ends is really lost: the broker may have stopped.
bool is_about_tls(std::string_view text) {
  return text.find("SSL routines") != std::string_view::npos &&
         text.find("unexpected eof") == std::string_view::npos;
}

bool is_refusal(const Reported& reported) {
  return !reported.text.empty() && describe(reported.code, {}).code == Errc::permission_denied;
}

/// Requests metadata of brokers, without topics.
rd_kafka_resp_err_t ask(rd_kafka_t* handle, std::chrono::milliseconds limit) {
  const rd_kafka_metadata_t* answer = nullptr;
  const auto code = rd_kafka_metadata(handle, 0, nullptr, &answer, static_cast<int>(limit.count()));
  if (answer != nullptr) rd_kafka_metadata_destroy(answer);
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
    rd_kafka_poll(handle, static_cast<int>(kErrorPoll.count()));
  return code;
}

}  // namespace

void HandleDelete::operator()(rd_kafka_t* handle) const noexcept {
  // Purges first, so that destroying does not wait for brokers. A consumer has nothing to purge.
  rd_kafka_purge(
      handle, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT | RD_KAFKA_PURGE_F_NON_BLOCKING);
  rd_kafka_destroy_flags(handle, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
}

Result<Handle> make_handle(rd_kafka_type_t type, Conf conf, const char* whose) {
  rd_kafka_conf_set_log_cb(conf.get(), on_log);
  char why[512] = "";
  Handle handle(rd_kafka_new(type, conf.get(), why, sizeof why));
  if (!handle) {
    return fail(Errc::invalid_argument, std::string("kafka: ") + why,
                std::string("check the settings of this ") + whose);
  }
  (void)conf.release();  // The handle owns it now.
  return handle;
}

void Reported::listen(rd_kafka_conf_t* conf) {
  rd_kafka_conf_set_opaque(conf, this);
  rd_kafka_conf_set_error_cb(conf,
                             [](rd_kafka_t* handle, int error, const char* reason, void* reported) {
                               static_cast<Reported*>(reported)->take(handle, error, reason);
                             });
}

void Reported::take(rd_kafka_t* handle, int error, const char* reason) {
  // The error of a single broker is more specific than "all brokers are down".
  if (error == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN && !text.empty()) return;
  code = static_cast<rd_kafka_resp_err_t>(error);
  const std::string_view said(reason);
  text = said.substr(0, said.find(" (after "));  // The duration is cut off.
  if (code == RD_KAFKA_RESP_ERR__FATAL) {
    char why[512] = "";
    code = rd_kafka_fatal_error(handle, why, sizeof why);
    text = why;
  }
  if (code == RD_KAFKA_RESP_ERR__TRANSPORT && is_about_tls(text)) code = RD_KAFKA_RESP_ERR__SSL;
}

Error no_broker(const Reported& reported, rd_kafka_resp_err_t code) {
  Error error = describe(reported.text.empty() ? code : reported.code, {});
  error.message = "kafka: no broker answers";
  if (!reported.text.empty()) error.message += ": " + reported.text;
  return error;
}

Status reach(rd_kafka_t* handle, const Reported& reported, std::chrono::milliseconds limit) {
  const auto first = std::min(limit, kRefusal);
  auto code = ask(handle, first);
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR && limit > first && !is_refusal(reported))
    code = ask(handle, limit - first);
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return {};
  return fail(no_broker(reported, code));
}

}  // namespace outbox::sink::kafka

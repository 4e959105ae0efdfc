#include "integration/sqs/sqs_client.hpp"

#include <curl/curl.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>

#include "event/base64.hpp"
#include "support/servers.hpp"

namespace outbox::test {
namespace {

using Json = nlohmann::json;

std::size_t append(char* bytes, std::size_t /*one*/, std::size_t size, void* text) {
  static_cast<std::string*>(text)->append(bytes, size);
  return size;
}

/// All calls share one handle, because each new one would make a connection of its own.
CURL* handle() {
  static const std::unique_ptr<CURL, void (*)(CURL*)> kept(curl_easy_init(), curl_easy_cleanup);
  curl_easy_reset(kept.get());
  return kept.get();
}

}  // namespace

std::string SqsMessage::attribute(const std::string& name) const {
  const auto found = attributes.find(name);
  return found == attributes.end() ? "" : found->second;
}

std::string SqsMessage::decoded() const {
  const std::string encoding = attribute("outbox-encoding");
  if (encoding == "base64") return event::read_base64(body).value();
  return encoding == "empty" ? "" : body;
}

Json SqsClient::call(const std::string& operation, const Json& request) const {
  const std::string url = "http://127.0.0.1:" + std::to_string(port_) + "/";
  const std::string body = request.dump();
  std::string answer;
  curl_slist* headers = curl_slist_append(nullptr, "Content-Type: application/x-amz-json-1.0");
  headers = curl_slist_append(headers, ("X-Amz-Target: AmazonSQS." + operation).c_str());
  CURL* const easy = handle();
  curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
  curl_easy_setopt(easy, CURLOPT_PROXY, "");
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body.c_str());
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, append);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &answer);
  const CURLcode code = curl_easy_perform(easy);
  long status = 0;
  curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  curl_slist_free_all(headers);
  if (code != CURLE_OK) throw std::runtime_error(operation + ": " + curl_easy_strerror(code));
  if (status != 200) throw std::runtime_error(operation + ": " + answer);
  return answer.empty() ? Json() : Json::parse(answer);
}

std::string SqsClient::create(const std::string& queue) const {
  Json request{{"QueueName", queue}};
  if (queue.ends_with(".fifo")) request["Attributes"] = {{"FifoQueue", "true"}};
  return call("CreateQueue", request).at("QueueUrl");
}

void SqsClient::remove(const std::string& url) const { call("DeleteQueue", {{"QueueUrl", url}}); }

std::vector<SqsMessage> SqsClient::drain(const std::string& url) const {
  std::vector<SqsMessage> all;
  while (true) {
    const Json answer = call("ReceiveMessage", {{"QueueUrl", url},
                                                {"MaxNumberOfMessages", 10},
                                                {"VisibilityTimeout", 600},
                                                {"AttributeNames", {"All"}},
                                                {"MessageAttributeNames", {"All"}}});
    const Json messages = answer.value("Messages", Json::array());
    if (messages.empty()) return all;
    Json entries = Json::array();
    for (const Json& one : messages) {
      SqsMessage message{.body = one.at("Body"), .attributes = {}, .system = {}};
      const Json attributes = one.value("MessageAttributes", Json::object());
      for (const auto& [name, value] : attributes.items())
        message.attributes[name] = value.at("StringValue");
      const Json system = one.value("Attributes", Json::object());
      for (const auto& [name, value] : system.items()) message.system[name] = value;
      all.push_back(std::move(message));
      entries.push_back(
          {{"Id", std::to_string(entries.size())}, {"ReceiptHandle", one.at("ReceiptHandle")}});
    }
    call("DeleteMessageBatch", {{"QueueUrl", url}, {"Entries", entries}});
  }
}

std::string fresh_queue(const std::string& suffix) {
  static std::atomic<int> number{0};
  return "outbox-test-" + std::to_string(::getpid()) + "-" + std::to_string(++number) + suffix;
}

Arrived make_arrived(const SqsMessage& message) {
  std::optional<std::string> key;
  if (message.attributes.contains("outbox-key")) {
    key = message.attribute("outbox-key");
  } else if (message.attributes.contains("outbox-headers")) {
    // An empty key cannot be an attribute, so that it is among the headers.
    const Json rest = Json::parse(message.attribute("outbox-headers"));
    if (rest.contains("outbox-key")) key = rest.at("outbox-key");
  }
  return {.id = message.attribute("outbox-id"), .key = key, .body = message.decoded()};
}

std::optional<int> shared_sqs() {
  const auto url = environment("OUTBOX_TEST_SQS");
  if (!url) return std::nullopt;
  return std::stoi(url->substr(url->rfind(':') + 1));
}

}  // namespace outbox::test

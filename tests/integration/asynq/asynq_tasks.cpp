#include "integration/asynq/asynq_tasks.hpp"

#include <algorithm>
#include <protozero/pbf_reader.hpp>
#include <sstream>

namespace outbox::test {
namespace {

std::pair<std::string, std::string> parse_header(protozero::pbf_reader entry) {
  std::pair<std::string, std::string> header;
  while (entry.next()) {
    switch (entry.tag()) {
      case 1: header.first = entry.get_string(); break;
      case 2: header.second = entry.get_string(); break;
      default: entry.skip();
    }
  }
  return header;
}

}  // namespace

std::optional<std::string> AsynqTask::header(const std::string& name) const {
  const auto found = std::find_if(headers.begin(), headers.end(),
                                  [&](const auto& header) { return header.first == name; });
  return found == headers.end() ? std::nullopt : std::optional(found->second);
}

AsynqTask parse_task(const std::string& message) {
  AsynqTask task;
  protozero::pbf_reader reader(message);
  while (reader.next()) {
    switch (reader.tag()) {
      case 1: task.type = reader.get_string(); break;
      case 2: task.payload = reader.get_bytes(); break;
      case 3: task.id = reader.get_string(); break;
      case 4: task.queue = reader.get_string(); break;
      case 5: task.retry = reader.get_int32(); break;
      case 8: task.timeout = reader.get_int64(); break;
      case 12: task.retention = reader.get_int64(); break;
      case 15: task.headers.push_back(parse_header(reader.get_message())); break;
      default: task.has_other_fields = true; reader.skip();
    }
  }
  return task;
}

std::string asynq_key(const std::string& queue, const std::string& what) {
  return "asynq:{" + queue + "}:" + what;
}

std::vector<std::string> pending_ids(RedisClient& client, const std::string& queue) {
  std::vector<std::string> ids;
  std::istringstream lines(client.run({"LRANGE", asynq_key(queue, "pending"), "0", "-1"}));
  for (std::string line; std::getline(lines, line);) ids.push_back(line);
  std::reverse(ids.begin(), ids.end());  // LPUSH adds on one side, RPOPLPUSH takes from the other
  return ids;
}

AsynqTask read_task(RedisClient& client, const std::string& queue, const std::string& id) {
  return parse_task(client.run({"HGET", asynq_key(queue, "t:" + id), "msg"}));
}

std::vector<Arrived> arrived_tasks(RedisClient& client, const std::string& queue) {
  std::vector<Arrived> all;
  for (const std::string& id : pending_ids(client, queue)) {
    const AsynqTask task = read_task(client, queue, id);
    all.push_back({.id = task.id, .key = task.header("outbox-key"), .body = task.payload});
  }
  return all;
}

}  // namespace outbox::test

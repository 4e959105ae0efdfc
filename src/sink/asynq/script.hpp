// What the server runs for each event: makes its task, unless a task with this id is there.
//
// Invariants:
//   1. The id is in `pending` and the task in its hash, or neither: workers see nothing in between.
//   2. An error as the reply means that the id is not in `pending`, and that sending the event
//      again hands it over: a hash whose id could not be added has the state `unsent`.
//   3. An existing task is left as it is in every state: pending, active, scheduled, retry,
//      archived, or completed within its retention.
//   4. A duplicate is a write, too, when WAIT follows: WAIT waits for it and all before.
//   5. HSET is the first write: the server checks maxmemory only before a script's first write.
//
// The lock of a unique task is not used: a repeated event would find its own lock and keep it until
// it expires, without a task.
//
// Both keys are in the hash slot of the queue (names.hpp). pcall returns the server's error with
// its code at the beginning in every version.
#pragma once

namespace outbox::sink::asynq {

/// KEYS: task, pending. ARGV: message, id, now in ns, type, 1 if WAIT follows.
/// Replies 1 if the task was added, 0 if it exists, and an error if it was not added; the code
/// OUTBOX says that a task of another type has the id.
/// The field `outbox` of the hash is ours: asynq reads its own fields by name and keeps all others.
inline constexpr const char* kScript = R"(local known = redis.pcall('EXISTS', KEYS[1])
if type(known) == 'table' then return known end
if known == 1 then
  local task = redis.pcall('HMGET', KEYS[1], 'state', 'outbox')
  if task.err then return task end
  if task[1] ~= 'unsent' then
    if task[2] and task[2] ~= ARGV[4] then
      return {err = 'OUTBOX there is a task of another type with this id'}
    end
    if ARGV[5] == '1' then
      local written = redis.pcall('HSET', KEYS[1], 'outbox_again', ARGV[3])
      if type(written) == 'table' then return written end
    end
    return 0
  end
end
local written = redis.pcall('HSET', KEYS[1], 'msg', ARGV[1], 'state', 'pending', 'pending_since', ARGV[3], 'outbox', ARGV[4])
if type(written) == 'table' then return written end
local added = redis.pcall('LPUSH', KEYS[2], ARGV[2])
if type(added) == 'table' then
  redis.call('HSET', KEYS[1], 'state', 'unsent')
  return added
end
return 1
)";

}  // namespace outbox::sink::asynq

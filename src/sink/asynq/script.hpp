// What the server runs for each event: makes its task, unless a task with this id is there.
//
// Invariants:
//   1. The id is in `pending` and the task in its hash, or neither: workers see nothing in between.
//   2. An error as the reply means that the id is not in `pending`, and that the event is handed over when it is sent again: a hash whose id could
//      not be added has the state `unsent`, which says so.
//   3. A task that is there is left as it is, whatever its state: pending, active, scheduled, retry, archived, or completed within its retention.
//   4. A duplicate is a write, too, when WAIT follows it, so that WAIT waits for it and for all that was written before.
//   5. HSET is the first write: the server checks maxmemory before the first write of a script only.
//
// The lock of a unique task is not used: a repeated event would find its own lock and keep it until it expires, without a task.
//
// Both keys are in the hash slot of the queue (names.hpp). pcall returns the server's error with its code at the beginning, whatever the
// version.
#pragma once

namespace outbox::sink::asynq {

/// KEYS: task, pending. ARGV: message, id, now in ns, type, 1 if WAIT follows.
/// Replies 1: added; 0: it is there already; an error: not added, with the code OUTBOX because a task of another type has the id.
/// The field `outbox` of the hash is ours: asynq reads the fields it knows by their names, and keeps the others.
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

// What the server runs for each event: it adds the event to its stream unless it remembers the id,
// and then remembers it.
//
// Invariants:
//   1. A remembered id means that its entry was added. The entry is added first, and all errors are
//      caught: a refused event (another type of key, no memory, no rights) is not remembered.
//   2. An error as the reply means that nothing was added. If the entry was added and its id could
//      not be remembered, the reply is a string with the reason.
//   3. Adding and remembering are replicated and logged as one transaction: a crash or a failover
//      loses either both or none.
//   4. A duplicate is a write, too (it prolongs the time), so WAIT waits for it and all before.
//   5. XADD is the first write: the server checks maxmemory only before a script's first write.
//
// Both keys are in one hash slot (command.hpp). pcall returns the server's error with its code at
// the beginning in every version. Without flags in line one it runs on Redis before 7.
#pragma once

namespace outbox::sink::redis {

/// KEYS: stream, key of the id (unless the window is 0). ARGV: window in ms, length (0: any),
/// fields and values.
/// Replies 1 if the event was added, 0 if it exists already, a string if it was added but not
/// remembered, and an error if it was not added.
inline constexpr const char* kScript = R"(local window = ARGV[1]
if window ~= '0' then
  local known = redis.pcall('EXISTS', KEYS[2])
  if known == 1 then known = redis.pcall('PEXPIRE', KEYS[2], window) end
  if type(known) == 'table' then return known end
  if known == 1 then return 0 end
end
local added
if ARGV[2] == '0' then
  added = redis.pcall('XADD', KEYS[1], '*', unpack(ARGV, 3))
else
  added = redis.pcall('XADD', KEYS[1], 'MAXLEN', '~', ARGV[2], '*', unpack(ARGV, 3))
end
if type(added) == 'table' then return added end
if window ~= '0' then
  local remembered = redis.pcall('SET', KEYS[2], '', 'PX', window)
  if remembered.err then return remembered.err end
end
return 1
)";

/// Lua's stack, which takes the arguments, has room for 8000 (LUAI_MAXCSTACK of Lua 5.1).
inline constexpr int kMostFields = 3900;

}  // namespace outbox::sink::redis

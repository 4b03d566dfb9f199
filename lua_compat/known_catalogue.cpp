// The texts that are known. A new one is added by one entry; tests/lua_compat/known_beside_redis.py
// shows whether what it claims is so.
//
// Only tokens count, so the texts are in our own words for what a script does. They are matched
// as plain rows (lua_compat/script_tree.hpp): names for KEYS[1] and the like, and `else` behind a
// return, need no texts of their own.
#include "lua_compat/known_scripts.hpp"

namespace semel::lua {
namespace {

using enum KnownScript;
using Kind = ScriptAnswer::Kind;

constexpr ScriptAnswer last{};
constexpr ScriptAnswer nothing{.kind = Kind::nothing};
constexpr ScriptAnswer ok{.kind = Kind::status, .text = "OK"};
constexpr ScriptAnswer error{.kind = Kind::error, .text = "ERROR"};
constexpr ScriptAnswer number(std::int64_t value) {
  return {.kind = Kind::number, .number = value};
}

// --- what is done only by the owner: the first key's value is the first argument ------------

std::vector<KnownEntry> owners() {
  return {
      {compare_and_run, "release",
       "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end "
       "return 0",
       "del K1", number(0), number(0), last, 0, 1, 1},
      {compare_and_run, "release, the value kept",
       "local v = redis.call('get', KEYS[1]) "
       "if v == ARGV[1] then return redis.call('del', KEYS[1]) end return 0",
       "del K1", number(0), number(0), last, 0, 1, 1},
      {compare_and_run, "release, else nothing",
       "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end",
       "del K1", nothing, nothing, last, 0, 1, 1},
      {compare_and_run, "release, else nil",
       "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end "
       "return nil",
       "del K1", nothing, nothing, last, 0, 1, 1},
      {compare_and_run, "release, else false",
       "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end "
       "return false",
       "del K1", nothing, nothing, last, 0, 1, 1},
      {compare_and_run, "release, 1",
       "if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('del', KEYS[1]) return 1 end "
       "return 0",
       "del K1", number(0), number(0), number(1), 0, 1, 1},
      {compare_and_run, "release, true",
       "if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('del', KEYS[1]) return true end "
       "return false",
       "del K1", nothing, nothing, number(1), 0, 1, 1},
      {compare_and_run, "release, true, the value kept",  // Spring Integration
       "local v = redis.call('get', KEYS[1]) "
       "if v == ARGV[1] then redis.call('del', KEYS[1]) return true end return false",
       "del K1", nothing, nothing, number(1), 0, 1, 1},
      {compare_and_run, "release by UNLINK, true, the value kept",  // Spring Integration
       "local v = redis.call('get', KEYS[1]) "
       "if v == ARGV[1] then redis.call('unlink', KEYS[1]) return true end return false",
       "unlink K1", nothing, nothing, number(1), 0, 1, 1},
      {compare_and_run, "release by UNLINK",
       "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('unlink', KEYS[1]) end "
       "return 0",
       "unlink K1", number(0), number(0), last, 0, 1, 1},
      {compare_and_run, "release of redis-py",
       "local v = redis.call('get', KEYS[1]) if not v or v ~= ARGV[1] then return 0 end "
       "redis.call('del', KEYS[1]) return 1",
       "del K1", number(0), number(0), number(1), 0, 1, 1},
      {compare_and_run, "release of go-redsync",
       "local v = redis.call('get', KEYS[1]) "
       "if v == ARGV[1] then return redis.call('del', KEYS[1]) elseif v == false then return -1 "
       "else return 0 end",
       "del K1", number(-1), number(0), last, 0, 1, 1},
      {compare_and_run, "release of sherlock",
       "local n = 0 if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('del', KEYS[1]) "
       "n = 1 end return n",
       "del K1", number(0), number(0), number(1), 0, 1, 1},
      {compare_and_run,
       "release of lock4j",
       "if redis.call('get', KEYS[1]) == ARGV[1] then "
       "return tostring(redis.call('del', KEYS[1]) == 1) else return 'false' end",
       "del K1",
       {.kind = Kind::bulk, .text = "false"},
       {.kind = Kind::bulk, .text = "false"},
       {.kind = Kind::bulk, .text = "true"},
       0,
       1,
       1},
      {compare_and_run, "release of aioredlock",
       "local v = redis.call('get', KEYS[1]) if not v then return redis.status_reply('OK') "
       "elseif v == ARGV[1] then return redis.call('del', KEYS[1]) "
       "else return redis.error_reply('ERROR') end",
       "del K1", ok, error, last, 0, 1, 1},

      {compare_and_run, "renew in ms",
       "if redis.call('get', KEYS[1]) == ARGV[1] then "
       "return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0",
       "pexpire K1 A2", number(0), number(0), last, 0, 1, 2},
      {compare_and_run, "renew in ms, the value kept",
       "local v = redis.call('get', KEYS[1]) "
       "if v == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0",
       "pexpire K1 A2", number(0), number(0), last, 0, 1, 2},
      {compare_and_run, "renew in ms, constant",
       "if redis.call('get', KEYS[1]) == ARGV[1] then "
       "return redis.call('pexpire', KEYS[1], '?1') end return 0",
       "pexpire K1 H1", number(0), number(0), last, 0, 1, 1},
      {compare_and_run, "renew in ms, true",  // Spring Integration
       "if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('pexpire', KEYS[1], ARGV[2]) "
       "return true end return false",
       "pexpire K1 A2", nothing, nothing, number(1), 0, 1, 2},
      {compare_and_run, "renew in ms, 1",
       "if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('pexpire', KEYS[1], ARGV[2]) "
       "return 1 end return 0",
       "pexpire K1 A2", number(0), number(0), number(1), 0, 1, 2},
      {compare_and_run, "renew of redis-semaphore",
       "local v = redis.call('get', KEYS[1]) "
       "if v == ARGV[1] then redis.call('pexpire', KEYS[1], ARGV[2]) return 1 end return 0",
       "pexpire K1 A2", number(0), number(0), number(1), 0, 1, 2},
      {compare_and_run, "reacquire of redis-py",
       "local v = redis.call('get', KEYS[1]) if not v or v ~= ARGV[1] then return 0 end "
       "redis.call('pexpire', KEYS[1], ARGV[2]) return 1",
       "pexpire K1 A2", number(0), number(0), number(1), 0, 1, 2},
      {compare_and_run, "renew in s",
       "if redis.call('get', KEYS[1]) == ARGV[1] then "
       "return redis.call('expire', KEYS[1], ARGV[2]) end return 0",
       "expire K1 A2", number(0), number(0), last, 0, 1, 2},
      {compare_and_run, "renew in s, constant",
       "if redis.call('get', KEYS[1]) == ARGV[1] then "
       "return redis.call('expire', KEYS[1], '?1') end return 0",
       "expire K1 H1", number(0), number(0), last, 0, 1, 1},
      {compare_and_run, "renew by SET PX",
       "if redis.call('get', KEYS[1]) == ARGV[1] then "
       "return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) end return 0",
       "set K1 A1 PX A2", number(0), number(0), last, 0, 1, 2},
      {compare_and_run, "what is left, in ms",  // bsm/redislock
       "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pttl', KEYS[1]) end "
       "return -3",
       "pttl K1", number(-3), number(-3), last, 0, 1, 1},
      {compare_and_run, "what is left, in s",  // aioredlock
       "local v = redis.call('get', KEYS[1]) if not v then return redis.error_reply('ERROR') "
       "elseif v == ARGV[1] then return redis.call('ttl', KEYS[1]) "
       "else return redis.error_reply('ERROR') end",
       "ttl K1", error, error, last, 0, 1, 1},

      {compare_and_run, "exchange",
       "if redis.call('get', KEYS[1]) == ARGV[1] then "
       "return redis.call('set', KEYS[1], ARGV[2]) end return 0",
       "set K1 A2", number(0), number(0), last, 0, 1, 2},
      {compare_and_run, "exchange, 1",
       "if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('set', KEYS[1], ARGV[2]) "
       "return 1 end return 0",
       "set K1 A2", number(0), number(0), number(1), 0, 1, 2},
      {compare_and_run, "exchange with an end in ms",
       "if redis.call('get', KEYS[1]) == ARGV[1] then "
       "return redis.call('set', KEYS[1], ARGV[2], 'PX', ARGV[3]) end return 0",
       "set K1 A2 PX A3", number(0), number(0), last, 0, 1, 3},
      {compare_and_run, "exchange with an end in ms, 1",
       "if redis.call('get', KEYS[1]) == ARGV[1] then "
       "redis.call('set', KEYS[1], ARGV[2], 'PX', ARGV[3]) return 1 end return 0",
       "set K1 A2 PX A3", number(0), number(0), number(1), 0, 1, 3},
      {compare_and_run, "exchange with an end in s, 1",
       "if redis.call('get', KEYS[1]) == ARGV[1] then "
       "redis.call('set', KEYS[1], ARGV[2], 'EX', ARGV[3]) return 1 end return 0",
       "set K1 A2 EX A3", number(0), number(0), number(1), 0, 1, 3},
      {compare_and_run,
       "exchange of throttled",
       "local v = redis.call('get', KEYS[1]) "
       "if v == false then return redis.error_reply('key does not exist') end "
       "if v ~= ARGV[1] then return 0 end "
       "redis.call('setex', KEYS[1], ARGV[3], ARGV[2]) return 1",
       "setex K1 A3 A2",
       {.kind = Kind::error, .text = "key does not exist"},
       number(0),
       number(1),
       0,
       1,
       3},
  };
}

// --- values ----------------------------------------------------------------------------------

std::vector<KnownEntry> values() {
  return {
      {take,
       "take",
       "local v = redis.call('get', KEYS[1]) if v then redis.call('del', KEYS[1]) end return v",
       "",
       {},
       {},
       last,
       0,
       1,
       0},
      {take,
       "take, DEL in any case",
       "local v = redis.call('get', KEYS[1]) redis.call('del', KEYS[1]) return v",
       "",
       {},
       {},
       last,
       1,
       1,
       0},

      {get_or_set,
       "SET NX GET by hand, nil",
       "local v = redis.call('get', KEYS[1]) if v then return v end "
       "redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) return nil",
       "set K1 A1 PX A2",
       {},
       {},
       nothing,
       0,
       1,
       2},
      {get_or_set,
       "SET NX GET by hand, false",
       "local v = redis.call('get', KEYS[1]) if v then return v end "
       "redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) return false",
       "set K1 A1 PX A2",
       {},
       {},
       nothing,
       0,
       1,
       2},
      {get_or_set,
       "SET NX GET by hand, nothing",
       "local v = redis.call('get', KEYS[1]) if v then return v end "
       "redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])",
       "set K1 A1 PX A2",
       {},
       {},
       nothing,
       0,
       1,
       2},
      {get_or_set,
       "SET NX GET by hand, value, nil",
       "local v = redis.call('get', KEYS[1]) if not v then "
       "redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) return nil end return v",
       "set K1 A1 PX A2",
       {},
       {},
       nothing,
       0,
       1,
       2},
      {get_or_set,
       "SET NX GET by hand, OK",
       "local v = redis.call('get', KEYS[1]) if v then return v end "
       "return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])",
       "set K1 A1 PX A2",
       {},
       {},
       last,
       0,
       1,
       2},
      {get_or_set,
       "SET NX GET by hand, the new value",
       "local v = redis.call('get', KEYS[1]) if v then return v end "
       "redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) return ARGV[1]",
       "set K1 A1 PX A2",
       {},
       {},
       {.kind = Kind::bulk},
       0,
       1,
       2},
      {get_or_set,
       "SET NX GET by hand, in s, nil",
       "local v = redis.call('get', KEYS[1]) if v then return v end "
       "redis.call('set', KEYS[1], ARGV[1], 'EX', ARGV[2]) return nil",
       "set K1 A1 EX A2",
       {},
       {},
       nothing,
       0,
       1,
       2},

      {set_absent,
       "SETNX, PEXPIRE",
       "if redis.call('setnx', KEYS[1], ARGV[1]) == 1 then "
       "redis.call('pexpire', KEYS[1], ARGV[2]) return 1 end return 0",
       "pexpire K1 A2",
       number(0),
       {},
       number(1),
       0,
       1,
       2},
      {set_absent,
       "SETNX, return PEXPIRE",
       "if redis.call('setnx', KEYS[1], ARGV[1]) == 1 then "
       "return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0",
       "pexpire K1 A2",
       number(0),
       {},
       last,
       0,
       1,
       2},
      {set_absent,
       "SETNX, EXPIRE",
       "if redis.call('setnx', KEYS[1], ARGV[1]) == 1 then "
       "redis.call('expire', KEYS[1], ARGV[2]) return 1 end return 0",
       "expire K1 A2",
       number(0),
       {},
       number(1),
       0,
       1,
       2},
      {set_absent,
       "SETNX, return EXPIRE",
       "if redis.call('setnx', KEYS[1], ARGV[1]) == 1 then "
       "return redis.call('expire', KEYS[1], ARGV[2]) end return 0",
       "expire K1 A2",
       number(0),
       {},
       last,
       0,
       1,
       2},
      {set_absent,
       "EXISTS, SET",
       "if redis.call('exists', KEYS[1]) == 1 then return 0 end "
       "redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) return 1",
       "set K1 A1 PX A2",
       number(0),
       {},
       number(1),
       1,
       1,
       2},
      {set_absent,
       "SET NX PX, 1",
       "if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end return 0",
       "set K1 A1 NX PX A2",
       number(0),
       {},
       number(1),
       2,
       1,
       2},
      {set_absent,
       "SET NX EX, 1",
       "if redis.call('set', KEYS[1], ARGV[1], 'NX', 'EX', ARGV[2]) then return 1 end return 0",
       "set K1 A1 NX EX A2",
       number(0),
       {},
       number(1),
       2,
       1,
       2},
      {set_absent,
       "SET PX NX, 1",
       "if redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX') then return 1 end return 0",
       "set K1 A1 PX A2 NX",
       number(0),
       {},
       number(1),
       2,
       1,
       2},
      {set_absent,
       "SET EX NX, 1",
       "if redis.call('set', KEYS[1], ARGV[1], 'EX', ARGV[2], 'NX') then return 1 end return 0",
       "set K1 A1 EX A2 NX",
       number(0),
       {},
       number(1),
       2,
       1,
       2},

      {count,
       "INCR, PEXPIRE",
       "local n = redis.call('incr', KEYS[1]) "
       "if n == 1 then redis.call('pexpire', KEYS[1], ARGV[1]) end return n",
       "incr K1;pexpire K1 A1",
       {},
       {},
       last,
       0,
       1,
       1},
      {count,
       "INCR, EXPIRE",
       "local n = redis.call('incr', KEYS[1]) "
       "if n == 1 then redis.call('expire', KEYS[1], ARGV[1]) end return n",
       "incr K1;expire K1 A1",
       {},
       {},
       last,
       0,
       1,
       1},
      {count,
       "INCR, tonumber, PEXPIRE",
       "local n = redis.call('incr', KEYS[1]) "
       "if tonumber(n) == 1 then redis.call('pexpire', KEYS[1], ARGV[1]) end return n",
       "incr K1;pexpire K1 A1",
       {},
       {},
       last,
       0,
       1,
       1},
      {count,
       "INCR, tonumber, EXPIRE",
       "local n = redis.call('incr', KEYS[1]) "
       "if tonumber(n) == 1 then redis.call('expire', KEYS[1], ARGV[1]) end return n",
       "incr K1;expire K1 A1",
       {},
       {},
       last,
       0,
       1,
       1},
      {count,
       "INCR, PEXPIRE, constant",
       "local n = redis.call('incr', KEYS[1]) "
       "if n == 1 then redis.call('pexpire', KEYS[1], '?1') end return n",
       "incr K1;pexpire K1 H1",
       {},
       {},
       last,
       0,
       1,
       0},
      {count,
       "INCR, EXPIRE, constant",
       "local n = redis.call('incr', KEYS[1]) "
       "if n == 1 then redis.call('expire', KEYS[1], '?1') end return n",
       "incr K1;expire K1 H1",
       {},
       {},
       last,
       0,
       1,
       0},
      {count,
       "INCR, EXPIRE of the documentation",
       "local n n = redis.call('incr', KEYS[1]) "
       "if tonumber(n) == 1 then redis.call('expire', KEYS[1], '?1') end",
       "incr K1;expire K1 H1",
       {},
       {},
       nothing,
       0,
       1,
       0},
      {count,
       "INCR, PEXPIRE, PTTL",
       "local n = redis.call('incr', KEYS[1]) "
       "if n == 1 then redis.call('pexpire', KEYS[1], ARGV[1]) end "
       "return {n, redis.call('pttl', KEYS[1])}",
       "incr K1;pexpire K1 A1;pttl K1",
       {},
       {},
       last,
       0,
       1,
       1},
      {count,
       "INCR, PEXPIRE, PTTL, the ttl kept",
       "local n = redis.call('incr', KEYS[1]) "
       "if n == 1 then redis.call('pexpire', KEYS[1], ARGV[1]) end "
       "local left = redis.call('pttl', KEYS[1]) return {n, left}",
       "incr K1;pexpire K1 A1;pttl K1",
       {},
       {},
       last,
       0,
       1,
       1},
      {count,
       "INCR, EXPIRE, TTL",
       "local n = redis.call('incr', KEYS[1]) "
       "if n == 1 then redis.call('expire', KEYS[1], ARGV[1]) end "
       "return {n, redis.call('ttl', KEYS[1])}",
       "incr K1;expire K1 A1;ttl K1",
       {},
       {},
       last,
       0,
       1,
       1},
      {count,
       "INCRBY, PEXPIRE",
       "local n = redis.call('incrby', KEYS[1], ARGV[1]) "
       "if n == tonumber(ARGV[1]) then redis.call('pexpire', KEYS[1], ARGV[2]) end return n",
       "incrby K1 N1;pexpire K1 A2",
       {},
       {},
       last,
       1,
       1,
       2},
      {count,
       "INCRBY, EXPIRE",
       "local n = redis.call('incrby', KEYS[1], ARGV[1]) "
       "if n == tonumber(ARGV[1]) then redis.call('expire', KEYS[1], ARGV[2]) end return n",
       "incrby K1 N1;expire K1 A2",
       {},
       {},
       last,
       1,
       1,
       2},
      {count,
       "INCRBY, EXPIRE of limits",
       "local n local by = tonumber(ARGV[2]) n = redis.call('incrby', KEYS[1], by) "
       "if tonumber(n) == by then redis.call('expire', KEYS[1], ARGV[1]) end return n",
       "incrby K1 N2;expire K1 A1",
       {},
       {},
       last,
       1,
       1,
       2},
  };
}

// --- of one library each -----------------------------------------------------------------------

std::vector<KnownEntry> libraries() {
  return {
      {acquire_all,
       "acquire of node-redlock",
       "for i, k in ipairs(KEYS) do if redis.call('exists', k) == 1 then return 0 end end "
       "for i, k in ipairs(KEYS) do redis.call('set', k, ARGV[1], 'PX', ARGV[2]) end "
       "return #KEYS",
       "",
       {},
       {},
       {},
       0,
       0,
       2},
      {extend_all,
       "extend of node-redlock",
       "for i, k in ipairs(KEYS) do if redis.call('get', k) ~= ARGV[1] then return 0 end end "
       "for i, k in ipairs(KEYS) do redis.call('set', k, ARGV[1], 'PX', ARGV[2]) end "
       "return #KEYS",
       "",
       {},
       {},
       {},
       0,
       0,
       2},
      {release_all,
       "release of node-redlock",
       "local n = 0 for i, k in ipairs(KEYS) do if redis.call('get', k) == ARGV[1] then "
       "redis.pcall('del', k) n = n + 1 end end return n",
       "",
       {},
       {},
       {},
       0,
       0,
       1},
      {prolong,
       "extend of redis-py",
       "local v = redis.call('get', KEYS[1]) if not v or v ~= ARGV[1] then return 0 end "
       "local left = redis.call('pttl', KEYS[1]) if not left then left = 0 end "
       "if left < 0 then return 0 end local ttl = ARGV[2] "
       "if ARGV[3] == '0' then ttl = ARGV[2] + left end "
       "redis.call('pexpire', KEYS[1], ttl) return 1",
       "",
       {},
       {},
       {},
       0,
       1,
       3},
      {consume_points,
       "rate-limiter-flexible",
       "redis.call('set', KEYS[1], 0, 'EX', ARGV[2], 'NX') "
       "local n = redis.call('incrby', KEYS[1], ARGV[1]) local left = redis.call('pttl', KEYS[1]) "
       "if left == -1 then redis.call('expire', KEYS[1], ARGV[2]) left = 1000 * ARGV[2] end "
       "return {n, left}",
       "set K1 0 EX N2 NX",
       {},
       {},
       {},
       0,
       1,
       2},
      {hit_window,
       "increment of rate-limit-redis",
       "local ms = tonumber(ARGV[1]) local left = redis.call('pttl', KEYS[1]) "
       "if left <= 0 then redis.call('set', KEYS[1], 1, 'PX', ms) return {1, ms} end "
       "local n = redis.call('incr', KEYS[1]) return {n, left}",
       "set K1 1 PX N1",
       {},
       {},
       {},
       0,
       1,
       1},
      {look_at_window,
       "get of rate-limit-redis",
       "local n = redis.call('get', KEYS[1]) local left = redis.call('pttl', KEYS[1]) "
       "return {n, left}",
       "",
       {},
       {},
       {},
       0,
       1,
       0},
      {count,
       "increment of ulule/limiter",
       "local by = tonumber(ARGV[1]) local ms = tonumber(ARGV[2]) "
       "local n = redis.call('incrby', KEYS[1], ARGV[1]) if n == by then "
       "if ms > 0 then redis.call('pexpire', KEYS[1], ARGV[2]) end return {n, ms} end "
       "ms = redis.call('pttl', KEYS[1]) return {n, ms}",
       "incrby K1 N1;pexpire K1 N2;pttl K1",
       {},
       {},
       last,
       2,
       1,
       2},
      {touch_or_set, "touch of go-redsync",
       "if redis.call('get', KEYS[1]) == ARGV[1] then "
       "return redis.call('pexpire', KEYS[1], ARGV[2]) "
       "elseif redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX') then return 1 "
       "else return 0 end",
       "pexpire K1 A2;set K1 A1 PX A2 NX", number(1), number(0), last, 0, 1, 2},
      {touch_or_set, "obtain of Spring Integration",
       "local v = redis.call('get', KEYS[1]) "
       "if v == ARGV[1] then redis.call('pexpire', KEYS[1], ARGV[2]) return true "
       "elseif not v then redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) return true end "
       "return false",
       "pexpire K1 A2;set K1 A1 PX A2", number(1), nothing, number(1), 1, 1, 2},
      {release_and_tell, "release of Spring Integration by DEL",
       "local v = redis.call('get', KEYS[1]) "
       "if (v == ARGV[1] and redis.call('del', KEYS[1]) == 1) then "
       "redis.call('publish', ARGV[2], KEYS[1]) return true end return false",
       "del K1;publish A2 K1", nothing, nothing, number(1), 0, 1, 2},
      {release_and_tell, "release of Spring Integration by UNLINK",
       "local v = redis.call('get', KEYS[1]) "
       "if (v == ARGV[1] and redis.call('unlink', KEYS[1]) == 1) then "
       "redis.call('publish', ARGV[2], KEYS[1]) return true end return false",
       "unlink K1;publish A2 K1", nothing, nothing, number(1), 0, 1, 2},

      {hold_reentrant,
       "lock of Redisson",
       "if (redis.call('exists', KEYS[1]) == 0) or (redis.call('hexists', KEYS[1], ARGV[2]) == 1) "
       "then redis.call('hincrby', KEYS[1], ARGV[2], 1) redis.call('pexpire', KEYS[1], ARGV[1]) "
       "return nil end return redis.call('pttl', KEYS[1])",
       "",
       {},
       {},
       {},
       0,
       1,
       2},
      {hold_reentrant,
       "lock of Redisson before 3.19, spin lock",
       "if redis.call('exists', KEYS[1]) == 0 then redis.call('hincrby', KEYS[1], ARGV[2], 1) "
       "redis.call('pexpire', KEYS[1], ARGV[1]) return nil end "
       "if redis.call('hexists', KEYS[1], ARGV[2]) == 1 then "
       "redis.call('hincrby', KEYS[1], ARGV[2], 1) redis.call('pexpire', KEYS[1], ARGV[1]) "
       "return nil end return redis.call('pttl', KEYS[1])",
       "",
       {},
       {},
       {},
       1,
       1,
       2},
      {hold_fenced,
       "lock of Redisson, fenced",
       "if redis.call('exists', KEYS[1]) == 0 or (redis.call('hexists', KEYS[1], ARGV[2]) == 1) "
       "then local token = redis.call('incr', KEYS[2]) redis.call('hincrby', KEYS[1], ARGV[2], 1) "
       "redis.call('pexpire', KEYS[1], ARGV[1]) return {-1, token} end "
       "return {redis.call('pttl', KEYS[1]), -1}",
       "",
       {},
       {},
       {},
       0,
       2,
       2},
      {hold_fenced,
       "lock of Redisson, fenced, the token not asked for",
       "if redis.call('exists', KEYS[1]) == 0 or (redis.call('hexists', KEYS[1], ARGV[2]) == 1) "
       "then redis.call('incr', KEYS[2]) redis.call('hincrby', KEYS[1], ARGV[2], 1) "
       "redis.call('pexpire', KEYS[1], ARGV[1]) return nil end return redis.call('pttl', KEYS[1])",
       "",
       {},
       {},
       {},
       1,
       2,
       2},
      {release_reentrant,
       "unlock of Redisson",
       "local v = redis.call('get', KEYS[3]) if v ~= false then return tonumber(v) end "
       "if redis.call('hexists', KEYS[1], ARGV[3]) == 0 then return nil end "
       "local n = redis.call('hincrby', KEYS[1], ARGV[3], -1) "
       "if n > 0 then redis.call('pexpire', KEYS[1], ARGV[2]) "
       "redis.call('set', KEYS[3], 0, 'px', ARGV[5]) return 0 "
       "else redis.call('del', KEYS[1]) redis.call(ARGV[4], KEYS[2], ARGV[1]) "
       "redis.call('set', KEYS[3], 1, 'px', ARGV[5]) return 1 end",
       "",
       {},
       {},
       {},
       0,
       3,
       5},
      {release_reentrant,
       "unlock of Redisson before 3.24",
       "if redis.call('hexists', KEYS[1], ARGV[3]) == 0 then return nil end "
       "local n = redis.call('hincrby', KEYS[1], ARGV[3], -1) "
       "if n > 0 then redis.call('pexpire', KEYS[1], ARGV[2]) return 0 "
       "else redis.call('del', KEYS[1]) redis.call('publish', KEYS[2], ARGV[1]) return 1 end "
       "return nil",
       "",
       {},
       {},
       {},
       1,
       2,
       3},
      {release_spinning,
       "unlock of Redisson's spin lock",
       "local v = redis.call('get', KEYS[2]) if v ~= false then return tonumber(v) end "
       "if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then return nil end "
       "local n = redis.call('hincrby', KEYS[1], ARGV[2], -1) "
       "if n > 0 then redis.call('pexpire', KEYS[1], ARGV[1]) "
       "redis.call('set', KEYS[2], 0, 'px', ARGV[3]) return 0 "
       "else redis.call('del', KEYS[1]) redis.call('set', KEYS[2], 1, 'px', ARGV[3]) return 1 end",
       "",
       {},
       {},
       {},
       0,
       2,
       3},
      {release_by_force,
       "force unlock of Redisson",
       "if redis.call('del', KEYS[1]) == 1 then redis.call(ARGV[2], KEYS[2], ARGV[1]) return 1 "
       "else return 0 end",
       "",
       {},
       {},
       {},
       0,
       2,
       2},
      {release_by_force,
       "force unlock of Redisson before 3.20",
       "if redis.call('del', KEYS[1]) == 1 then redis.call('publish', KEYS[2], ARGV[1]) return 1 "
       "else return 0 end",
       "",
       {},
       {},
       {},
       1,
       2,
       1},
      {release_by_force,
       "force unlock of Redisson's spin lock",
       "if redis.call('del', KEYS[1]) == 1 then return 1 else return 0 end",
       "",
       {},
       {},
       {},
       2,
       1,
       0},
      {renew_reentrant,
       "renewal of Redisson before 3.44",
       "if redis.call('hexists', KEYS[1], ARGV[2]) == 1 then "
       "redis.call('pexpire', KEYS[1], ARGV[1]) return 1 end return 0",
       "",
       {},
       {},
       {},
       0,
       1,
       2},
      {renew_many,
       "renewal of Redisson",
       "local found = {} for i = 1, #KEYS, 1 do "
       "if redis.call('hexists', KEYS[i], ARGV[i + 1]) == 1 then "
       "redis.call('pexpire', KEYS[i], ARGV[1]) table.insert(found, 1) "
       "else table.insert(found, 0) end end return found",
       "",
       {},
       {},
       {},
       0,
       0,
       1},
  };
}

}  // namespace

const std::vector<KnownEntry>& known_catalogue() {
  static const std::vector<KnownEntry> all = [] {
    std::vector<KnownEntry> entries = owners();
    for (const auto& more : {values(), libraries()}) {
      entries.insert(entries.end(), more.begin(), more.end());
    }
    return entries;
  }();
  return all;
}

}  // namespace semel::lua

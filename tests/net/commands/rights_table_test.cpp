// Users' rights over the whole table of commands: what a reply shows needs the right to read, what
// a command changes the right to write, and the words that say which are those that COMMAND shows.
//
// Words: a *form* is a request of a command whose key is "k" (of a claim, "ns:k"); the *scene* is
// what lies there before: a string, a number, a hash, a sorted set, places on the map, a claim
// that is done, or a rate limit of which something was taken. A form *discloses* if its reply
// differs between two scenes that differ in stored bytes and ttl alone.
#include <map>
#include "base/ascii.hpp"
#include "tests/support/catch.hpp"

#include "net/resp/text.hpp"
#include "tests/net/conversation.hpp"
#include "tests/support/raw_client.hpp"
#include "tests/support/redis_or_skip.hpp"

namespace semel::tests {
namespace {

enum class Scene : std::uint8_t {
  text,
  number,
  hash,
  claim,
  zset,
  places,
  list,
  set,
  stream,
  limit
};

struct Form {
  Scene scene;
  Words words;
};

const std::string dump_of_x{"\x00\x01\x78\x0a\x00\x22\x80\x86\x5f\xbd\xe8\x48\xd0", 13};

/// At least one for each command that has keys; all ways in which one uses them.
const std::vector<Form> forms{
    {Scene::text, {"APPEND", "k", "x"}},
    {Scene::text, {"BITCOUNT", "k"}},
    {Scene::text, {"BITCOUNT", "k", "62", "62", "BIT"}},
    {Scene::text, {"BITFIELD", "k"}},
    {Scene::text, {"BITFIELD", "k", "GET", "u8", "56"}},
    {Scene::text, {"BITFIELD", "k", "SET", "u8", "56", "1"}},
    {Scene::text, {"BITFIELD", "k", "GET", "u8", "56", "incrby", "u8", "0", "1"}},
    {Scene::text, {"BITFIELD_RO", "k", "GET", "u8", "56"}},
    {Scene::text, {"BITOP", "NOT", "other", "k"}},
    {Scene::text, {"BITOP", "AND", "k", "other", "k"}},
    {Scene::text, {"BITPOS", "k", "1", "61", "63", "BIT"}},
    {Scene::text, {"COPY", "k", "other"}},
    {Scene::number, {"DECR", "k"}},
    {Scene::number, {"DECRBY", "k", "2"}},
    {Scene::text, {"DEL", "k"}},
    {Scene::text, {"DELEX", "k"}},
    {Scene::text, {"DELEX", "k", "IFEQ", "secret-a"}},
    {Scene::text, {"DELEX", "k", "ifne", "secret-a"}},
    {Scene::text, {"DELEX", "k", "IFDEQ", "0123456789abcdef"}},
    {Scene::text, {"DELIFEQ", "k", "secret-a"}},
    {Scene::text, {"DIGEST", "k"}},
    {Scene::text, {"DUMP", "k"}},
    {Scene::text, {"EVAL", "return 1", "1", "k"}},
    {Scene::text, {"EVAL", "return redis.call('GET', KEYS[1])", "1", "k"}},
    {Scene::text, {"EVAL_RO", "return redis.call('GET', KEYS[1])", "1", "k"}},
    {Scene::text, {"EVALSHA", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "1", "k"}},
    {Scene::text, {"EVALSHA_RO", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "1", "k"}},
    {Scene::text, {"EXISTS", "k", "k"}},
    {Scene::text, {"EXPIRE", "k", "100"}},
    {Scene::text, {"EXPIREAT", "k", "9999999999"}},
    {Scene::text, {"EXPIRETIME", "k"}},
    {Scene::text, {"FCALL", "f", "1", "k"}},
    {Scene::text, {"FCALL_RO", "f", "1", "k"}},
    {Scene::places, {"GEOADD", "k", "1", "2", "x"}},
    {Scene::places, {"GEODIST", "k", "m", "m"}},
    {Scene::places, {"GEOHASH", "k", "m"}},
    {Scene::places, {"GEOPOS", "k", "m"}},
    {Scene::places, {"GEORADIUS", "k", "13", "40", "900", "km", "WITHDIST"}},
    {Scene::places, {"GEORADIUS", "k", "13", "40", "900", "km", "STORE", "other"}},
    {Scene::places, {"GEORADIUSBYMEMBER", "k", "m", "9", "km", "WITHHASH"}},
    {Scene::places, {"GEORADIUSBYMEMBER", "k", "m", "9", "km", "ASC", "storedist", "other"}},
    {Scene::places, {"GEORADIUSBYMEMBER_RO", "k", "m", "9", "km", "WITHCOORD"}},
    {Scene::places, {"GEORADIUS_RO", "k", "13", "40", "900", "km", "WITHDIST"}},
    {Scene::places, {"GEOSEARCH", "k", "FROMMEMBER", "m", "BYRADIUS", "9", "km", "WITHHASH"}},
    {Scene::places, {"GEOSEARCHSTORE", "other", "k", "FROMMEMBER", "m", "BYRADIUS", "9", "km"}},
    {Scene::text, {"GET", "k"}},
    {Scene::text, {"GETBIT", "k", "63"}},
    {Scene::text, {"GETDEL", "k"}},
    {Scene::text, {"GETEX", "k"}},
    {Scene::text, {"GETEX", "k", "PERSIST"}},
    {Scene::text, {"GETRANGE", "k", "0", "-1"}},
    {Scene::text, {"GETSET", "k", "x"}},
    {Scene::hash, {"HDEL", "k", "f"}},
    {Scene::hash, {"HEXISTS", "k", "f"}},
    {Scene::hash, {"HEXPIRE", "k", "100", "FIELDS", "1", "f"}},
    {Scene::hash, {"HEXPIREAT", "k", "9999999999", "FIELDS", "1", "f"}},
    {Scene::hash, {"HEXPIRETIME", "k", "FIELDS", "1", "f"}},
    {Scene::hash, {"HGET", "k", "f"}},
    {Scene::hash, {"HGETALL", "k"}},
    {Scene::hash, {"HGETDEL", "k", "FIELDS", "1", "f"}},
    {Scene::hash, {"HGETEX", "k", "EX", "100", "FIELDS", "1", "f"}},
    {Scene::hash, {"HINCRBY", "k", "n", "1"}},
    {Scene::hash, {"HINCRBYFLOAT", "k", "n", "1"}},
    {Scene::hash, {"HKEYS", "k"}},
    {Scene::hash, {"HLEN", "k"}},
    {Scene::hash, {"HMGET", "k", "f"}},
    {Scene::hash, {"HMSET", "k", "f", "x"}},
    {Scene::hash, {"HPERSIST", "k", "FIELDS", "1", "f"}},
    {Scene::hash, {"HPEXPIRE", "k", "100000", "FIELDS", "1", "f"}},
    {Scene::hash, {"HPEXPIREAT", "k", "9999999999000", "FIELDS", "1", "f"}},
    {Scene::hash, {"HPEXPIRETIME", "k", "FIELDS", "1", "f"}},
    {Scene::hash, {"HPTTL", "k", "FIELDS", "1", "f"}},
    {Scene::hash, {"HRANDFIELD", "k", "10", "WITHVALUES"}},
    {Scene::hash, {"HSCAN", "k", "0"}},
    {Scene::hash, {"HSET", "k", "f", "x"}},
    {Scene::hash, {"HSETEX", "k", "EX", "100", "FIELDS", "1", "f", "x"}},
    {Scene::hash, {"HSETNX", "k", "f", "x"}},
    {Scene::hash, {"HSTRLEN", "k", "f"}},
    {Scene::hash, {"HTTL", "k", "FIELDS", "1", "f"}},
    {Scene::hash, {"HVALS", "k"}},
    {Scene::list, {"BLMOVE", "k", "other", "LEFT", "LEFT", "0"}},
    {Scene::list, {"BLMPOP", "0", "1", "k", "LEFT"}},
    {Scene::list, {"BLPOP", "k", "0"}},
    {Scene::list, {"BRPOP", "k", "0"}},
    {Scene::list, {"BRPOPLPUSH", "k", "other", "0"}},
    {Scene::text, {"BZMPOP", "0", "1", "k", "MIN"}},
    {Scene::text, {"BZPOPMAX", "k", "0"}},
    {Scene::text, {"BZPOPMIN", "k", "0"}},
    {Scene::list, {"LINDEX", "k", "0"}},
    {Scene::list, {"LINSERT", "k", "BEFORE", "x", "y"}},
    {Scene::list, {"LLEN", "k"}},
    {Scene::list, {"LMOVE", "k", "other", "LEFT", "LEFT"}},
    {Scene::list, {"LMPOP", "1", "k", "LEFT"}},
    {Scene::list, {"LPOP", "k"}},
    {Scene::list, {"LPOS", "k", "secret-a"}},
    {Scene::list, {"LPUSH", "k", "x"}},
    {Scene::list, {"LPUSHX", "k", "x"}},
    {Scene::list, {"LRANGE", "k", "0", "-1"}},
    {Scene::list, {"LREM", "k", "0", "x"}},
    {Scene::list, {"LSET", "k", "0", "x"}},
    {Scene::list, {"LTRIM", "k", "1", "0"}},
    {Scene::list, {"RPOP", "k"}},
    {Scene::list, {"RPOPLPUSH", "k", "other"}},
    {Scene::list, {"RPUSH", "k", "x"}},
    {Scene::list, {"RPUSHX", "k", "x"}},
    {Scene::number, {"INCR", "k"}},
    {Scene::number, {"INCRBY", "k", "0"}},
    {Scene::number, {"INCRBYFLOAT", "k", "1"}},
    {Scene::number, {"INCREX", "k"}},
    {Scene::number, {"INCREX", "k", "BYINT", "0"}},
    {Scene::text, {"LCS", "k", "other"}},
    {Scene::text, {"LCS", "k", "k"}},
    {Scene::text, {"MEMORY", "USAGE", "k"}},
    {Scene::text, {"MGET", "k", "other"}},
    {Scene::text, {"MIGRATE", "host", "1", "k", "0", "100", "AUTH", "keys"}},
    {Scene::text, {"MIGRATE", "host", "1", "", "0", "100", "AUTH", "x", "KEYS", "k", "other"}},
    {Scene::text, {"MOVE", "k", "1"}},
    {Scene::text, {"MSET", "k", "x", "other", "y"}},
    {Scene::text, {"MSETEX", "2", "k", "x", "other", "y"}},
    {Scene::text, {"MSETNX", "k", "x"}},
    {Scene::text, {"OBJECT", "ENCODING", "k"}},
    {Scene::text, {"OBJECT", "FREQ", "k"}},
    {Scene::text, {"OBJECT", "IDLETIME", "k"}},
    {Scene::text, {"OBJECT", "REFCOUNT", "k"}},
    {Scene::text, {"PERSIST", "k"}},
    {Scene::text, {"PEXPIRE", "k", "100000"}},
    {Scene::text, {"PEXPIREAT", "k", "9999999999999"}},
    {Scene::text, {"PEXPIRETIME", "k"}},
    {Scene::text, {"PFADD", "k", "x"}},
    {Scene::text, {"PFCOUNT", "k"}},
    {Scene::text, {"PFCOUNT", "k", "other"}},
    {Scene::text, {"PFDEBUG", "ENCODING", "k"}},
    {Scene::text, {"PFMERGE", "other", "k"}},
    {Scene::text, {"PSETEX", "k", "1000", "x"}},
    {Scene::text, {"PTTL", "k"}},
    {Scene::text, {"RENAME", "k", "other"}},
    {Scene::text, {"RENAMENX", "k", "other"}},
    {Scene::text, {"RESTORE", "k", "0", "no dump"}},
    {Scene::text, {"RESTORE", "k", "0", dump_of_x, "REPLACE"}},
    {Scene::text, {"SEMEL.CAS", "k", "1", "x"}},
    {Scene::claim, {"SEMEL.CLAIM", "ns", "k"}},
    {Scene::claim, {"SEMEL.CLAIMALL", "ns", "KEYS", "1", "k"}},
    {Scene::claim, {"SEMEL.CLAIMS", "ns", "LEASE", "5", "KEYS", "2", "k", "other"}},
    {Scene::claim, {"SEMEL.COMPLETE", "ns", "k", "1", "secret-a"}},
    {Scene::claim, {"SEMEL.COMPLETES", "ns", "1", "k", "1", "secret-a"}},
    {Scene::claim, {"SEMEL.FAIL", "ns", "k", "1"}},
    {Scene::claim, {"SEMEL.FORGET", "ns", "k"}},
    {Scene::text, {"SEMEL.GET", "k"}},
    {Scene::claim, {"SEMEL.GETCLAIM", "ns", "k"}},
    {Scene::claim, {"SEMEL.DEBOUNCE", "ns", "k", "p", "QUIET", "5"}},
    {Scene::claim, {"SEMEL.DEBOUNCEEND", "ns", "k", "1"}},
    {Scene::claim, {"SEMEL.DEBOUNCERUN", "ns", "k"}},
    {Scene::claim, {"SEMEL.DEBOUNCES", "ns"}},
    {Scene::claim, {"SEMEL.EXPLAIN", "ns", "k"}},
    {Scene::claim, {"SEMEL.INFLIGHT", "ns"}},
    {Scene::claim, {"SEMEL.ISSUE", "ns", "k"}},
    {Scene::limit, {"SEMEL.LIMIT", "k", "BUCKET", "9", "100000", "REFILL", "1", "COST", "2"}},
    {Scene::claim, {"SEMEL.PERMIT", "ns", "k", "2"}},
    {Scene::claim, {"SEMEL.PERMITS", "ns", "k"}},
    {Scene::text, {"SEMEL.PUTRECORD", "k", "string", "-1", "x"}},
    {Scene::claim, {"SEMEL.RELEASE", "ns", "k", "1"}},
    {Scene::claim, {"SEMEL.RENEW", "ns", "k", "1"}},
    {Scene::claim, {"SEMEL.RESOLVE", "ns", "k", "RELEASED"}},
    {Scene::claim, {"SEMEL.RWLOCK", "ns", "k", "READ"}},
    {Scene::claim, {"SEMEL.RWLOCKS", "ns", "k"}},
    {Scene::claim, {"SEMEL.WAIT", "10", "ns", "k"}},
    {Scene::text, {"SET", "k", "x"}},
    {Scene::text, {"SET", "k", "x", "GET"}},
    {Scene::text, {"SET", "k", "x", "XX", "get", "EX", "5"}},
    {Scene::text, {"SET", "k", "x", "NX"}},
    {Scene::text, {"SET", "k", "x", "IFEQ", "secret-a"}},
    {Scene::text, {"SET", "k", "x", "IFNE", "secret-a"}},
    {Scene::text, {"SET", "k", "x", "IFDEQ", "0123456789abcdef"}},
    {Scene::text, {"SET", "k", "x", "ifdne", "0123456789abcdef"}},
    {Scene::text, {"SETBIT", "k", "63", "1"}},
    {Scene::text, {"SETEX", "k", "5", "x"}},
    {Scene::text, {"SETNX", "k", "x"}},
    {Scene::text, {"SETRANGE", "k", "0", "x"}},
    {Scene::text, {"STRLEN", "k"}},
    {Scene::text, {"SUBSTR", "k", "0", "-1"}},
    {Scene::text, {"TOUCH", "k"}},
    {Scene::text, {"TTL", "k"}},
    {Scene::text, {"TYPE", "k"}},
    {Scene::text, {"UNLINK", "k"}},
    {Scene::text, {"WATCH", "k"}},
    {Scene::zset, {"ZADD", "k", "1", "m"}},
    {Scene::zset, {"ZCARD", "k"}},
    {Scene::zset, {"ZCOUNT", "k", "0", "41"}},
    {Scene::zset, {"ZDIFF", "2", "k", "other", "WITHSCORES"}},
    {Scene::zset, {"ZDIFFSTORE", "other", "1", "k"}},
    {Scene::zset, {"ZINCRBY", "k", "1", "m"}},
    {Scene::zset, {"ZINTER", "1", "k", "WITHSCORES"}},
    {Scene::zset, {"ZINTERCARD", "1", "k"}},
    {Scene::zset, {"ZINTERSTORE", "other", "1", "k"}},
    {Scene::zset, {"ZLEXCOUNT", "k", "-", "+"}},
    {Scene::zset, {"ZMPOP", "1", "k", "MIN"}},
    {Scene::zset, {"ZMSCORE", "k", "m"}},
    {Scene::zset, {"ZPOPMAX", "k"}},
    {Scene::zset, {"ZPOPMIN", "k"}},
    {Scene::zset, {"ZRANDMEMBER", "k", "1", "WITHSCORES"}},
    {Scene::zset, {"ZRANGE", "k", "0", "-1", "WITHSCORES"}},
    {Scene::zset, {"ZRANGEBYLEX", "k", "-", "+"}},
    {Scene::zset, {"ZRANGEBYSCORE", "k", "0", "41"}},
    {Scene::zset, {"ZRANGESTORE", "other", "k", "0", "-1"}},
    {Scene::zset, {"ZRANK", "k", "m"}},
    {Scene::zset, {"ZREM", "k", "m"}},
    {Scene::zset, {"ZREMRANGEBYLEX", "k", "-", "+"}},
    {Scene::zset, {"ZREMRANGEBYRANK", "k", "0", "-1"}},
    {Scene::zset, {"ZREMRANGEBYSCORE", "k", "0", "100"}},
    {Scene::zset, {"ZREVRANGE", "k", "0", "-1", "WITHSCORES"}},
    {Scene::zset, {"ZREVRANGEBYLEX", "k", "+", "-"}},
    {Scene::zset, {"ZREVRANGEBYSCORE", "k", "41", "0"}},
    {Scene::zset, {"ZREVRANK", "k", "m"}},
    {Scene::zset, {"ZSCAN", "k", "0"}},
    {Scene::zset, {"ZSCORE", "k", "m"}},
    {Scene::zset, {"ZUNION", "2", "k", "other", "WITHSCORES"}},
    {Scene::zset, {"ZUNIONSTORE", "other", "2", "k", "k"}},
    {Scene::set, {"SADD", "k", "x"}},
    {Scene::set, {"SCARD", "k"}},
    {Scene::set, {"SDIFF", "k", "other"}},
    {Scene::set, {"SDIFFSTORE", "other", "k"}},
    {Scene::set, {"SINTER", "k", "k"}},
    {Scene::set, {"SINTERCARD", "1", "k"}},
    {Scene::set, {"SINTERSTORE", "other", "k"}},
    {Scene::set, {"SISMEMBER", "k", "x"}},
    {Scene::set, {"SMEMBERS", "k"}},
    {Scene::set, {"SMISMEMBER", "k", "secret-a", "x"}},
    {Scene::set, {"SMOVE", "k", "other", "secret-a"}},
    {Scene::set, {"SORT", "k", "ALPHA"}},
    {Scene::set, {"SORT", "k", "ALPHA", "STORE", "other"}},
    {Scene::set, {"SORT_RO", "k", "ALPHA"}},
    {Scene::set, {"SPOP", "k"}},
    {Scene::set, {"SRANDMEMBER", "k"}},
    {Scene::set, {"SREM", "k", "x"}},
    {Scene::set, {"SSCAN", "k", "0"}},
    {Scene::set, {"SUNION", "k", "other"}},
    {Scene::set, {"SUNIONSTORE", "other", "k"}},
    {Scene::stream, {"XACK", "k", "g", "1-1"}},
    {Scene::stream, {"XADD", "k", "2-1", "f", "v"}},
    {Scene::stream, {"XAUTOCLAIM", "k", "g", "c", "0", "0"}},
    {Scene::stream, {"XCLAIM", "k", "g", "c", "0", "1-1"}},
    {Scene::stream, {"XDEL", "k", "1-1"}},
    {Scene::stream, {"XGROUP", "CREATE", "k", "h", "$"}},
    {Scene::stream, {"XGROUP", "CREATECONSUMER", "k", "g", "d"}},
    {Scene::stream, {"XGROUP", "DELCONSUMER", "k", "g", "c"}},
    {Scene::stream, {"XGROUP", "DESTROY", "k", "g"}},
    {Scene::stream, {"XGROUP", "SETID", "k", "g", "0"}},
    {Scene::stream, {"XINFO", "CONSUMERS", "k", "g"}},
    {Scene::stream, {"XINFO", "GROUPS", "k"}},
    {Scene::stream, {"XINFO", "STREAM", "k"}},
    {Scene::stream, {"XLEN", "k"}},
    {Scene::stream, {"XPENDING", "k", "g"}},
    {Scene::stream, {"XRANGE", "k", "-", "+"}},
    {Scene::stream, {"XREAD", "STREAMS", "k", "0"}},
    {Scene::stream, {"XREADGROUP", "GROUP", "g", "c", "STREAMS", "k", "0"}},
    {Scene::stream, {"XREVRANGE", "k", "+", "-"}},
    {Scene::stream, {"XSETID", "k", "9-9"}},
    {Scene::stream, {"XTRIM", "k", "MAXLEN", "0"}},
};

/// What has no key, but channels, a cursor or a database, is not in forms.
const net::CommandRow& row_of(const Words& words) {
  const net::CommandRow* row = net::find_command(words[0]);
  REQUIRE(row != nullptr);
  if (net::is_container(*row)) row = net::find_subcommand(*row, words[1]);
  REQUIRE(row != nullptr);
  return *row;
}

bool is_denied(const std::string& reply) {
  return reply.starts_with("-NOPERM");
}

/// Client 0 may do everything, 1 may write all keys and read none, 2 the other way round.
struct Rights : Conversation {
  Rights() : Conversation{3} {
    call({"ACL", "SETUSER", "w", "on", ">p", "+@all", "%W~*", "&*"});
    call({"ACL", "SETUSER", "r", "on", ">p", "+@all", "%R~*", "&*"});
    REQUIRE(call({"AUTH", "w", "p"}, 1) == "+OK\r\n");
    REQUIRE(call({"AUTH", "r", "p"}, 2) == "+OK\r\n");
    call({"SCRIPT", "LOAD", "return 1"});
  }
  /// `other` scene: other bytes and another ttl.
  void set(Scene scene, bool other) {
    call({"FLUSHALL"});
    const std::string secret = other ? "secret-b" : "secret-a";
    const std::string number = other ? "42" : "41";
    if (scene == Scene::text) call({"SET", "k", secret});
    if (scene == Scene::number) call({"SET", "k", number});
    if (scene == Scene::hash) call({"HSET", "k", "f", secret, "n", number});
    if (scene == Scene::zset) call({"ZADD", "k", number, "m"});
    if (scene == Scene::places) call({"GEOADD", "k", "13", number, "m"});
    if (scene == Scene::list) call({"RPUSH", "k", secret});
    if (scene == Scene::set) call({"SADD", "k", secret});
    if (scene == Scene::stream) {
      call({"XADD", "k", "1-1", "f", secret});
      call({"XGROUP", "CREATE", "k", "g", "0"});
      call({"XREADGROUP", "GROUP", "g", "c", "STREAMS", "k", ">"});
    }
    if (scene == Scene::claim) {
      const std::string granted = call({"SEMEL.CLAIM", "ns", "k"});
      const std::size_t at = granted.find("epoch\r\n$") + 8;
      const std::size_t begin = granted.find("\r\n", at) + 2;
      const std::string epoch = granted.substr(begin, granted.find("\r\n", begin) - begin);
      REQUIRE(call({"SEMEL.COMPLETE", "ns", "k", epoch, secret}).starts_with("*"));
      return;
    }
    if (scene == Scene::limit) {
      call({"SEMEL.LIMIT", "k", "BUCKET", "9", "100000", "COST", other ? "4" : "3"});
      return;
    }
    call({"PEXPIRE", "k", other ? "200000" : "100000"});
  }
  std::string stored() {
    return call({"MGET", "k", "other"}) + call({"HGETALL", "k"}) +
           call({"ZRANGE", "k", "0", "-1", "WITHSCORES"}) + call({"ZCARD", "other"}) +
           call({"PTTL", "k"}) + call({"EXISTS", "k", "other"}) +
           call({"SEMEL.GETCLAIM", "ns", "k"}) + call({"LRANGE", "k", "0", "-1"}) +
           call({"LRANGE", "other", "0", "-1"}) + call({"SMEMBERS", "k"}) +
           call({"SCARD", "other"}) + call({"XRANGE", "k", "-", "+"}) +
           call({"XPENDING", "k", "g"}) + call({"XINFO", "GROUPS", "k"});
  }
};

}  // namespace

TEST_CASE("rights: each command with keys has a form", "[net][acl][attack][fault-3]") {
  std::map<std::string_view, int> seen;
  for (const Form& form : forms) ++seen[row_of(form.words).name];
  for (const net::CommandRow& row : net::all_commands()) {
    INFO(row.name);
    const bool has_keys = std::ranges::any_of(row.keys.all(), &net::KeySpec::is_key);
    CHECK(has_keys == seen.contains(row.name));
    // What is neither is about channels or about nothing that is stored, or looks at all keys.
    CHECK((has_keys || row.first_key == 0 || row.is(net::flag_pubsub)));
  }
}

TEST_CASE("rights: a reply that shows what is stored needs the right to read",
          "[net][acl][attack][fault-3]") {
  Rights f;
  std::size_t disclosing = 0;
  for (const Form& form : forms) {
    // A script is judged by its keys, not by its text: those who may not read them may not run it.
    const std::string name = form.words[0] + " " + form.words[1] + " " + form.words.back();
    INFO(name);
    f.set(form.scene, false);
    const std::string one = f.call(form.words);
    f.call({"UNWATCH"});
    f.set(form.scene, true);
    const std::string other = f.call(form.words);
    f.call({"UNWATCH"});
    if (one == other) continue;
    ++disclosing;
    f.set(form.scene, false);
    const std::string before = f.stored();
    CHECK(is_denied(f.call(form.words, 1)));
    Words in_script{"EVAL", "return redis.call(unpack(ARGV))", "0"};
    in_script.insert(in_script.end(), form.words.begin(), form.words.end());
    if (!row_of(form.words).is(net::flag_noscript)) {
      CHECK(f.call(in_script, 1)
                .starts_with("-ERR The user executing the script can't access at least one of"));
    }
    f.call({"MULTI"}, 1);
    CHECK(is_denied(f.call(form.words, 1)));
    f.call({"DISCARD"}, 1);
    CHECK(f.stored() == before);
  }
  CHECK(disclosing > 40);
}

TEST_CASE("rights: what changes what is stored needs the right to write",
          "[net][acl][attack][fault-3]") {
  Rights f;
  std::size_t changing = 0;
  for (const Form& form : forms) {
    INFO(form.words[0] << " " << form.words.back());
    f.set(form.scene, false);
    const std::string before = f.stored();
    static_cast<void>(f.call(form.words));
    f.call({"UNWATCH"});
    if (f.stored() == before) continue;
    ++changing;
    f.set(form.scene, false);
    CHECK(is_denied(f.call(form.words, 2)));
  }
  CHECK(changing > 30);
}

TEST_CASE("rights: no user without a pattern of its key runs a command",
          "[net][acl][attack][fault-3]") {
  Conversation f{2};
  f.call({"ACL", "SETUSER", "u", "on", ">p", "+@all", "~elsewhere:*", "&*"});
  REQUIRE(f.call({"AUTH", "u", "p"}, 1) == "+OK\r\n");
  for (const Form& form : forms) {
    INFO(form.words[0] << " " << form.words.back());
    CHECK(is_denied(f.call(form.words, 1)));
    Words dry{"ACL", "DRYRUN", "u"};
    dry.insert(dry.end(), form.words.begin(), form.words.end());
    CHECK(f.call(dry).find("no permissions to access") != std::string::npos);
  }
}

TEST_CASE("rights: they follow from the words that COMMAND GETKEYSANDFLAGS shows",
          "[net][acl][attack][fault-3]") {
  Rights f;
  for (const Form& form : forms) {
    INFO(form.words[0] << " " << form.words.back());
    Words asked{"COMMAND", "GETKEYSANDFLAGS"};
    asked.insert(asked.end(), form.words.begin(), form.words.end());
    const std::string shown = f.call(asked);
    REQUIRE(shown.starts_with("*"));
    const bool reads = shown.find("+access") != std::string::npos;
    const bool writes = shown.find("+update") != std::string::npos ||
                        shown.find("+insert") != std::string::npos ||
                        shown.find("+delete") != std::string::npos;
    for (const char* user : {"w", "r"}) {
      Words dry{"ACL", "DRYRUN", user};
      dry.insert(dry.end(), form.words.begin(), form.words.end());
      const bool denied = f.call(dry) != "+OK\r\n";
      CHECK(denied == (*user == 'w' ? reads : writes));
    }
  }
}

TEST_CASE("rights: keys, flags and verdicts are those of redis-server",
          "[net][acl][redis][attack][fault-3]") {
  const auto server = redis_or_skip();
  if (!server) return;
  RawClient theirs{server->socket_path()};
  Conversation f;
  const std::vector<Words> users{{"ACL", "SETUSER", "w", "+@all", "%W~*", "&*"},
                                 {"ACL", "SETUSER", "r", "+@all", "%R~*", "&*"},
                                 {"ACL", "SETUSER", "k", "+@all", "~k", "&k"},
                                 {"ACL", "SETUSER", "none", "+@all", "resetchannels"}};
  for (const Words& user : users) {
    f.call(user);
    static_cast<void>(theirs.call(user));
  }
  std::vector<Words> asked;
  for (const Form& form : forms) asked.push_back(form.words);
  for (const Words& more : std::vector<Words>{{"PUBLISH", "k", "m"},
                                              {"SPUBLISH", "k", "m"},
                                              {"SPUBLISH", "other", "m"},
                                              {"SUBSCRIBE", "k", "other"},
                                              {"SSUBSCRIBE", "k"},
                                              {"SSUBSCRIBE", "other", "k"},
                                              {"PSUBSCRIBE", "k"},
                                              {"PSUBSCRIBE", "k*"},
                                              {"SUNSUBSCRIBE", "other"},
                                              {"EVAL", "return 1", "0"},
                                              {"EVAL", "return 1", "2", "k", "other", "more"},
                                              {"EVAL", "return 1", "x", "k"},
                                              {"EVAL", "return 1", "3", "k"},
                                              {"FCALL_RO", "f", "2", "k", "other"},
                                              {"MSET", "k", "x", "other", "y"},
                                              {"WATCH", "k", "other"},
                                              {"GET"},
                                              {"SET", "k"},
                                              {"PING"}}) {
    asked.push_back(more);
  }
  std::size_t compared = 0;
  for (const Words& words : asked) {
    Words known{"COMMAND", "GETKEYS"};
    known.insert(known.end(), words.begin(), words.end());
    if (theirs.call(known) == "-ERR Invalid command specified\r\n") continue;
    // Newer than the server.
    const bool is_newer = std::ranges::any_of(words, [](const std::string& word) {
      return base::lower_of(word).starts_with("ifeq") || base::lower_of(word).starts_with("ifne") ||
             base::lower_of(word).starts_with("ifd");
    });
    // There it shows entries to users who may not read them.
    const bool is_stricter = words[0] == "XCLAIM" || words[0] == "XAUTOCLAIM";
    if (is_newer || is_stricter) continue;
    ++compared;
    INFO(words[0] << " " << words.back());
    for (const char* about : {"GETKEYS", "GETKEYSANDFLAGS"}) {
      Words request{"COMMAND", about};
      request.insert(request.end(), words.begin(), words.end());
      CHECK(f.call(request) == theirs.call(request));
    }
    for (const char* user : {"w", "r", "k", "none"}) {
      INFO(user);
      Words request{"ACL", "DRYRUN", user};
      request.insert(request.end(), words.begin(), words.end());
      CHECK(f.call(request) == theirs.call(request));
    }
  }
  CHECK(compared > 80);
}

}  // namespace semel::tests

// Rights that change while they are in use, and what is logged of a refusal.
#include <unistd.h>

#include <fstream>
#include "tests/support/catch.hpp"

#include "net/acl/acl.hpp"
#include "tests/net/conversation.hpp"

namespace semel::tests {
namespace {

void make_user(Conversation& f, std::size_t client, const Words& rules) {
  Words words{"ACL", "SETUSER", "u", "reset", "on", ">p"};
  words.insert(words.end(), rules.begin(), rules.end());
  REQUIRE(f.call(words) == "+OK\r\n");
  REQUIRE(f.call({"AUTH", "u", "p"}, client) == "+OK\r\n");
}

constexpr std::string_view no_more =
    "-NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC "
    "call. This command is no longer allowed for the following reason: ";

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace

TEST_CASE("rights: EXEC asks again for every command in its queue", "[net][acl][attack][fault-3]") {
  struct Case {
    Words change;
    std::string_view reason;
  };
  const std::vector<Case> cases{
      {{"ACL", "SETUSER", "u", "-set"}, "no permission to execute the command or subcommand\r\n"},
      {{"ACL", "SETUSER", "u", "resetkeys", "~pub*"},
       "no permission to touch the specified keys\r\n"},
      {{"ACL", "SETUSER", "u", "resetkeys", "%R~*"},
       "no permission to touch the specified keys\r\n"}};
  for (const Case& each : cases) {
    INFO(each.change.back());
    Conversation f{2};
    make_user(f, 1, {"~*", "&*", "+@all"});
    CHECK(f.call({"MULTI"}, 1) == "+OK\r\n");
    CHECK(f.call({"PING"}, 1) == "+QUEUED\r\n");
    CHECK(f.call({"SET", "secret", "1"}, 1) == "+QUEUED\r\n");
    CHECK(f.call({"PING"}, 1) == "+QUEUED\r\n");
    CHECK(f.call(each.change) == "+OK\r\n");
    CHECK(f.call({"EXEC"}, 1) ==
          "*3\r\n+PONG\r\n" + std::string{no_more} + std::string{each.reason} + "+PONG\r\n");
    CHECK(f.call({"EXISTS", "secret"}) == ":0\r\n");
    const std::string log = f.call({"ACL", "LOG", "1"});
    CHECK(has(log, "multi"));
  }
}

TEST_CASE("rights: EXEC asks again for channels", "[net][acl][attack][fault-3]") {
  Conversation f{3};
  make_user(f, 1, {"~*", "&*", "+@all"});
  CHECK(f.call({"SUBSCRIBE", "news"}, 2).starts_with("*3"));
  f.call({"MULTI"}, 1);
  CHECK(f.call({"PUBLISH", "news", "m"}, 1) == "+QUEUED\r\n");
  f.call({"ACL", "SETUSER", "u", "resetchannels"});
  CHECK(f.call({"EXEC"}, 1) ==
        "*1\r\n" + std::string{no_more} +
            "no permission to access one of the channels used as arguments to the command\r\n");
  CHECK(f.collect(2).empty());
}

TEST_CASE("rights: an AUTH in the queue takes the rights of those behind it along",
          "[net][acl][attack][fault-3]") {
  Conversation f{2};
  make_user(f, 1, {"~*", "&*", "+@all"});
  f.call({"ACL", "SETUSER", "low", "on", ">l", "~pub*", "+@all"});
  f.call({"MULTI"}, 1);
  CHECK(f.call({"SET", "before", "1"}, 1) == "+QUEUED\r\n");
  CHECK(f.call({"AUTH", "low", "l"}, 1) == "+QUEUED\r\n");
  CHECK(f.call({"SET", "secret", "1"}, 1) == "+QUEUED\r\n");
  CHECK(f.call({"SET", "public", "1"}, 1) == "+QUEUED\r\n");
  CHECK(f.call({"EXEC"}, 1) == "*4\r\n+OK\r\n+OK\r\n" + std::string{no_more} +
                                   "no permission to touch the specified keys\r\n+OK\r\n");
  CHECK(f.call({"MGET", "before", "secret", "public"}) == "*3\r\n$1\r\n1\r\n$-1\r\n$1\r\n1\r\n");
}

TEST_CASE("rights: after a user deletes itself in a transaction nothing more is run",
          "[net][acl][attack][fault-3]") {
  Conversation f{2};
  make_user(f, 1, {"~*", "&*", "+@all"});
  f.call({"MULTI"}, 1);
  f.call({"ACL", "DELUSER", "u"}, 1);
  f.call({"SET", "k", "1"}, 1);
  CHECK(f.call({"EXEC"}, 1) == "*2\r\n:1\r\n" + std::string{no_more} +
                                   "no permission to execute the command or subcommand\r\n");
  CHECK(f.connections[1]->closes());
  CHECK(f.call({"EXISTS", "k"}) == ":0\r\n");
}

TEST_CASE("rights: an EXEC that is refused takes its queue with it",
          "[net][acl][attack][fault-3]") {
  Conversation f{2};
  make_user(f, 1, {"~*", "&*", "+@all"});
  f.call({"MULTI"}, 1);
  f.call({"SET", "k", "1"}, 1);
  f.call({"ACL", "SETUSER", "u", "-exec"});
  CHECK(f.call({"EXEC"}, 1).starts_with("-EXECABORT Transaction discarded because of: NOPERM"));
  f.call({"ACL", "SETUSER", "u", "+exec"});
  CHECK(f.call({"EXEC"}, 1) == "-ERR EXEC without MULTI\r\n");
  CHECK(f.call({"EXISTS", "k"}) == ":0\r\n");
}

TEST_CASE("rights: shard channels are channels, not keys", "[net][acl][attack][fault-3]") {
  Conversation f{3};
  make_user(f, 1, {"resetkeys", "resetchannels", "&news*", "+@all"});
  CHECK(f.call({"SPUBLISH", "news1", "m"}, 1) == ":0\r\n");
  CHECK(f.call({"SPUBLISH", "other", "m"}, 1).starts_with("-NOPERM"));
  CHECK(f.call({"SSUBSCRIBE", "news1", "other"}, 1).starts_with("-NOPERM"));
  CHECK(f.call({"SSUBSCRIBE", "news1"}, 1).starts_with("*3\r\n$10\r\nssubscribe"));
  make_user(f, 2, {"~*", "resetchannels", "+@all"});
  for (const char* name : {"SUBSCRIBE", "SSUBSCRIBE", "PSUBSCRIBE"}) {
    CHECK(f.call({name, "news1"}, 2).starts_with("-NOPERM"));
  }
  for (const char* name : {"PUBLISH", "SPUBLISH"}) {
    CHECK(f.call({name, "news1", "m"}, 2).starts_with("-NOPERM"));
  }
  const std::string log = f.call({"ACL", "LOG", "1"});
  CHECK(has(log, "$7\r\nchannel\r\n"));
}

TEST_CASE("rights: nothing published behind the end of its user reaches a subscriber",
          "[net][acl][attack][fault-3]") {
  const std::vector<Words> ends{{"ACL", "DELUSER", "u"},
                                {"ACL", "SETUSER", "u", "resetchannels"},
                                {"ACL", "SETUSER", "u", "reset"},
                                {"ACL", "LOAD"}};
  const std::string path = "/tmp/semel_rights_test_" + std::to_string(getpid()) + ".acl";
  for (const Words& end : ends) {
    for (const char* subscribe : {"SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE"}) {
      INFO(end[1] << " " << end.back() << " " << subscribe);
      Conversation f{2};
      std::ofstream{path} << "user default on nopass ~* &* +@all\n";
      REQUIRE(f.node.settings.assign(net::Setting::aclfile, path, {}).ok());
      make_user(f, 1, {"~*", "&*", "+@all"});
      REQUIRE(f.call({subscribe, "news"}, 1).starts_with("*3"));
      f.call({"PUBLISH", "news", "before"});
      f.call({"SPUBLISH", "news", "before"});
      CHECK(has(f.collect(1), "before"));
      REQUIRE(f.call(end).find("-") == std::string::npos);
      // The subscriber's thread has not come by yet.
      f.call({"PUBLISH", "news", "secret"});
      f.call({"SPUBLISH", "news", "secret"});
      std::string heard;
      f.connections[1]->receive(request_bytes({"PING"}), heard);
      CHECK_FALSE(has(heard + f.collect(1), "secret"));
      CHECK(f.connections[1]->closes());
    }
  }
  std::remove(path.c_str());
}

TEST_CASE("rights: a waiter that may no longer read the result gets an error instead",
          "[net][acl][attack][fault-3]") {
  for (const bool is_late : {false, true}) {
    INFO(is_late);
    Conversation f{2};
    make_user(f, 1, {"~ns:*", "+@all"});
    const std::string granted = f.call({"SEMEL.CLAIM", "ns", "k"});
    const std::size_t at = granted.find("epoch\r\n");
    const std::size_t begin = granted.find("\r\n", at + 7) + 2;
    const std::string epoch = granted.substr(begin, granted.find("\r\n", begin) - begin);
    CHECK(f.call({"SEMEL.WAIT", "0", "ns", "k"}, 1).empty());
    CHECK(f.connections[1]->waits());
    const Words revoke{"ACL", "SETUSER", "u", "resetkeys", "%W~ns:*"};
    const Words complete{"SEMEL.COMPLETE", "ns", "k", epoch, "secret"};
    if (!is_late) {
      CHECK(f.call(revoke) == "+OK\r\n");
      const std::string heard = f.collect(1);
      CHECK(heard.starts_with("-NOPERM"));
      CHECK_FALSE(f.connections[1]->waits());
      CHECK(f.call({"PING"}, 1) == "+PONG\r\n");
      CHECK_FALSE(f.call(complete).starts_with("-"));
      CHECK(f.collect(1).empty());
    } else {
      CHECK(f.call(revoke) == "+OK\r\n");
      CHECK_FALSE(f.call(complete).starts_with("-"));
      CHECK_FALSE(has(f.collect(1), "secret"));
    }
  }
}

TEST_CASE("rights: a refusal is counted, wherever it comes from", "[net][acl][attack][fault-3]") {
  Conversation f{2};
  make_user(f, 1, {"~pub*", "+@all", "-get"});
  const auto errors = [&] { return f.call({"INFO", "errorstats"}); };
  const auto totals = [&](const std::string& command) {
    const std::string text = f.call({"INFO", "commandstats"});
    const std::size_t at = text.find("cmdstat_" + command + ":");
    return at == std::string::npos ? "" : text.substr(at, text.find("\r\n", at) - at);
  };
  CHECK_FALSE(has(errors(), "NOPERM"));
  CHECK(f.call({"GET", "public"}, 1).starts_with("-NOPERM"));
  CHECK(has(errors(), "errorstat_NOPERM:count=1"));
  CHECK(has(totals("get"), "calls=0,"));
  CHECK(has(totals("get"), "rejected_calls=1,"));
  CHECK(f.call({"SET", "secret", "1"}, 1).starts_with("-NOPERM"));
  CHECK(f.call({"PUBLISH", "channel", "1"}, 1).starts_with("-NOPERM"));
  CHECK(has(errors(), "errorstat_NOPERM:count=3"));
  f.call({"MULTI"}, 1);
  f.call({"SET", "public", "1"}, 1);
  f.call({"ACL", "SETUSER", "u", "-set"});
  CHECK(has(f.call({"EXEC"}, 1), "-NOPERM"));
  CHECK(has(errors(), "errorstat_NOPERM:count=4"));
  CHECK(has(totals("set"), "rejected_calls=2,"));
  CHECK(f.call({"EVAL", "return redis.pcall('GET', 'public')", "0"}, 1).starts_with("-ERR"));
  CHECK(has(totals("get"), "rejected_calls=2,"));
  // Before it logs in, too.
  f.call({"CONFIG", "SET", "requirepass", "secret"});
  f.connect("127.0.0.1:5999");
  CHECK(f.call({"PING"}, 2).starts_with("-NOAUTH"));
  CHECK(has(errors(), "errorstat_NOAUTH:count=1"));
  CHECK(has(totals("ping"), "rejected_calls=1,"));
}

TEST_CASE("rights: the log says where a refusal was met", "[net][acl][attack][fault-3]") {
  Conversation f{2};
  make_user(f, 1, {"~pub*", "+@all", "-get"});
  const auto context = [&] {
    const std::string log = f.call({"ACL", "LOG", "1"});
    f.call({"ACL", "LOG", "RESET"});
    for (const char* name : {"toplevel", "multi", "lua"}) {
      if (has(log, std::string{"context\r\n$"} + std::to_string(std::string{name}.size()) + "\r\n" +
                       name)) {
        return std::string{name};
      }
    }
    return log;
  };
  f.call({"GET", "public"}, 1);
  CHECK(context() == "toplevel");
  f.call({"MULTI"}, 1);
  f.call({"GET", "public"}, 1);
  CHECK(context() == "multi");
  f.call({"DISCARD"}, 1);
  f.call({"EVAL", "return redis.pcall('GET', 'public')", "0"}, 1);
  CHECK(context() == "lua");
  f.call({"MULTI"}, 1);
  f.call({"EVAL", "return redis.pcall('GET', 'public')", "0"}, 1);
  f.call({"AUTH", "u", "wrong"}, 1);
  f.call({"EXEC"}, 1);
  CHECK(context() == "multi");
}

TEST_CASE("rights: a category without commands is kept, also over a file",
          "[net][acl][attack][fault-3]") {
  using net::Acl;
  constexpr auto bit = [](std::string_view name) { return 1U << *net::acl_category_of(name); };
  const std::vector<net::AclCommand> now{{"get", bit("read") | bit("string"), false},
                                         {"set", bit("write") | bit("string"), false},
                                         {"hget", bit("read") | bit("hash"), false}};
  std::vector<net::AclCommand> later = now;
  later.push_back({"lpush", bit("write") | bit("list"), false});
  later.push_back({"hset", bit("write") | bit("hash"), false});
  const auto make = [](Acl& acl, const std::string& name, std::vector<std::string_view> rules) {
    REQUIRE(acl.set_user(name, rules).ok());
  };
  Acl acl{now};
  make(acl, "denied", {"on", "nopass", "~*", "+@all", "-@list", "-@hash"});
  make(acl, "allowed", {"on", "nopass", "~*", "-@all", "+@list"});
  make(acl, "again", {"on", "nopass", "~*", "-@list", "+@all"});
  make(acl, "selector", {"on", "nopass", "(~x +@all -@list)"});
  CHECK(has(acl.list()[3], "+@all -@hash -@list"));
  CHECK(has(acl.list()[1], "-@all +@list"));
  CHECK(has(acl.list()[0], "+@all"));
  CHECK_FALSE(has(acl.list()[0], "list"));
  CHECK(has(acl.list()[4], "+@all -@list)"));

  Acl after{later};
  REQUIRE(after.load_file(acl.file_text(), "users.acl").ok());
  const auto may = [&](const std::string& name, std::string_view command) {
    return after.find(name)->check({.command = *after.catalog().find(command)}).ok();
  };
  CHECK_FALSE(may("denied", "lpush"));
  CHECK_FALSE(may("denied", "hset"));
  CHECK_FALSE(may("denied", "hget"));
  CHECK(may("denied", "get"));
  CHECK(may("allowed", "lpush"));
  CHECK_FALSE(may("allowed", "get"));
  CHECK(may("again", "lpush"));
  CHECK_FALSE(may("selector", "lpush"));
  CHECK(may("selector", "get"));
  // And once more, as the later version writes it.
  Acl third{later};
  REQUIRE(third.load_file(after.file_text(), "users.acl").ok());
  CHECK(third.file_text() == after.file_text());
}

TEST_CASE("rights: DRYRUN looks at the keys of scripts and functions",
          "[net][acl][attack][fault-3]") {
  Conversation f{2};
  make_user(f, 1, {"+@all", "~pub*", "%R~log*"});
  for (const char* name : {"EVAL", "EVALSHA", "FCALL", "EVAL_RO", "EVALSHA_RO", "FCALL_RO"}) {
    INFO(name);
    const bool only_reads = std::string_view{name}.ends_with("_RO");
    CHECK(f.call({"ACL", "DRYRUN", "u", name, "x", "1", "public"}) == "+OK\r\n");
    CHECK(f.call({"ACL", "DRYRUN", "u", name, "x", "0", "secret"}) == "+OK\r\n");
    CHECK(has(f.call({"ACL", "DRYRUN", "u", name, "x", "2", "public", "secret"}), "'secret'"));
    CHECK((f.call({"ACL", "DRYRUN", "u", name, "x", "1", "log1"}) == "+OK\r\n") == only_reads);
    CHECK(f.call({name, "x", "1", "secret"}, 1).starts_with("-NOPERM"));
  }
}

}  // namespace semel::tests

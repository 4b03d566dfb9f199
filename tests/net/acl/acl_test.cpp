// Users and rights by themselves. What redis-server answers is compared in acl_redis_test.cpp.
#include "net/acl/acl.hpp"

#include <atomic>
#include <set>
#include <thread>
#include "tests/net/acl/run_acl.hpp"
#include "tests/support/catch.hpp"

#include "net/acl/acl_command.hpp"
#include "net/acl/acl_limits.hpp"

namespace semel::tests {

using namespace net;

namespace {

using Views = std::vector<std::string_view>;

constexpr std::uint32_t bit_of(std::string_view category) {
  for (std::size_t i = 0; i < acl_categories.size(); ++i) {
    if (acl_categories[i] == category) return 1U << i;
  }
  return 0;
}

const std::vector<AclCommand>& some_commands() {
  static const std::vector<AclCommand> commands{
      {"auth", bit_of("fast") | bit_of("connection"), true},
      {"client", bit_of("slow")},
      {"client|id", bit_of("slow") | bit_of("connection")},
      {"client|kill", bit_of("slow") | bit_of("admin") | bit_of("dangerous")},
      {"exists", bit_of("fast") | bit_of("read") | bit_of("keyspace")},
      {"get", bit_of("fast") | bit_of("read") | bit_of("string")},
      {"publish", bit_of("fast") | bit_of("pubsub")},
      {"select", bit_of("fast") | bit_of("connection")},
      {"set", bit_of("slow") | bit_of("write") | bit_of("string")}};
  return commands;
}

Status set_user(Acl& acl, std::string_view name, const Views& rules) {
  return acl.set_user(name, rules);
}

std::string text_of_user(const Acl& acl, std::string_view name) {
  return acl.find(name)->text(RuleForm::list);
}

/// What check() says of a command with keys and channels.
struct Asked {
  std::string_view command;
  std::vector<AclKey> keys{};
  std::vector<AclChannel> channels{};
  std::string_view argument{};
};

AclDenied denied(const Acl& acl, std::string_view user, const Asked& asked) {
  const auto command = acl.catalog().find(asked.command);
  REQUIRE(command);
  return acl.find(user)
      ->check({.command = *command,
               .argument = asked.argument,
               .keys = asked.keys,
               .channels = asked.channels})
      .denied;
}

class Host final : public AclHost {
 public:
  AclLookup look_up(std::span<const std::string_view>) override { return {}; }
  std::string client_info() override { return "id=7"; }
  std::string file_name() override { return name; }
  Result<std::string> read_file() override {
    return Error{ErrorCode::bad_option, "No such file or directory"};
  }
  bool write_file(std::string_view) override { return false; }
  std::string name;
};

std::string answer(Acl& acl, AclSession& session, Host& host, const Views& words,
                   Resp dialect = Resp::three) {
  std::string out;
  RespWriter reply{out, dialect};
  AclCall call{acl, session, words, reply, host, Timestamp{Millis{8'500}}};
  REQUIRE(run_acl(call));
  return out;
}

}  // namespace

TEST_CASE("acl: the first user may do everything, and any limit ends that", "[net][acl]") {
  Acl acl{some_commands()};
  CHECK(acl.list() == std::vector<std::string>{"user default on nopass ~* &* +@all"});
  CHECK(acl.find("default")->is_unlimited());
  for (const char* limit : {"-get", "-@geo", "resetkeys", "resetchannels", "reset"}) {
    Acl limited{some_commands()};
    REQUIRE(set_user(limited, "default", {limit}).ok());
    // A category without commands takes nothing away.
    CHECK(limited.find("default")->is_unlimited() == (std::string_view{limit} == "-@geo"));
  }
  REQUIRE(set_user(acl, "a", {"allkeys", "allchannels", "+@all"}).ok());
  CHECK(acl.find("a")->is_unlimited());
}

TEST_CASE("acl: a command comes with its subcommands, a subcommand alone", "[net][acl]") {
  Acl acl{some_commands()};
  REQUIRE(set_user(acl, "a", {"+client", "-CLIENT|kill"}).ok());
  CHECK(denied(acl, "a", {"client|id"}) == AclDenied::ok);
  CHECK(denied(acl, "a", {"client|kill"}) == AclDenied::command);
  REQUIRE(set_user(acl, "b", {"+@slow", "-@admin"}).ok());
  CHECK(denied(acl, "b", {"client|id"}) == AclDenied::ok);
  CHECK(denied(acl, "b", {"client|kill"}) == AclDenied::command);
  REQUIRE(set_user(acl, "c", {"+client|id"}).ok());
  CHECK(denied(acl, "c", {"client|id"}) == AclDenied::ok);
  CHECK(denied(acl, "c", {"client"}) == AclDenied::command);
  CHECK(denied(acl, "c", {"auth"}) == AclDenied::ok);
  CHECK(acl.catalog().find(Views{"client", "ID"}) == acl.catalog().find("client|id"));
  CHECK_FALSE(acl.catalog().find(Views{"client", "x"}));
  CHECK_FALSE(acl.catalog().find(Views{"client|id"}));
}

TEST_CASE("acl: a first argument is allowed by itself until the command is ruled on",
          "[net][acl]") {
  Acl acl{some_commands()};
  REQUIRE(set_user(acl, "a", {"+select|0", "+SELECT|0"}).ok());
  CHECK(text_of_user(acl, "a") == "off resetchannels -@all +select|0");
  CHECK(denied(acl, "a", {.command = "select", .argument = "0"}) == AclDenied::ok);
  CHECK(denied(acl, "a", {.command = "select", .argument = "1"}) == AclDenied::command);
  CHECK(denied(acl, "a", {.command = "select"}) == AclDenied::command);
  REQUIRE(set_user(acl, "a", {"-@fast"}).ok());
  CHECK(denied(acl, "a", {.command = "select", .argument = "0"}) == AclDenied::command);
}

TEST_CASE("acl: keys by pattern and access, channels by pattern", "[net][acl]") {
  Acl acl{some_commands()};
  REQUIRE(set_user(acl, "a", {"+@all", "%R~r*", "%W~w*", "~b*", "&c*"}).ok());
  const auto of_key = [&](std::string_view key, KeyAccess access) {
    return denied(acl, "a", {.command = "get", .keys = {{key, access}}}) == AclDenied::ok;
  };
  CHECK(of_key("r1", KeyAccess::read));
  CHECK_FALSE(of_key("r1", KeyAccess::write));
  CHECK_FALSE(of_key("r1", KeyAccess::both));
  CHECK(of_key("r1", KeyAccess::none));
  CHECK(of_key("w1", KeyAccess::write));
  CHECK(of_key("b1", KeyAccess::both));
  CHECK_FALSE(of_key("x", KeyAccess::none));
  // Two patterns that each permit a half do not permit the whole.
  REQUIRE(set_user(acl, "h", {"+@all", "%R~k*", "%W~k?"}).ok());
  CHECK(denied(acl, "h", {.command = "get", .keys = {{"k1", KeyAccess::both}}}) == AclDenied::key);

  CHECK(denied(acl, "a", {.command = "publish", .channels = {{"c1"}}}) == AclDenied::ok);
  CHECK(denied(acl, "a", {.command = "publish", .channels = {{"d"}}}) == AclDenied::channel);
  CHECK(denied(acl, "a", {.command = "publish", .channels = {{"c1", true}}}) == AclDenied::channel);
  CHECK(denied(acl, "a", {.command = "publish", .channels = {{"c*", true}}}) == AclDenied::ok);
}

TEST_CASE("acl: one selector must allow all of a request", "[net][acl]") {
  Acl acl{some_commands()};
  REQUIRE(set_user(acl, "a", {"+get", "~a*", "(+set", "~b*)"}).ok());
  CHECK(denied(acl, "a", {.command = "get", .keys = {{"a"}}}) == AclDenied::ok);
  CHECK(denied(acl, "a", {.command = "set", .keys = {{"b"}}}) == AclDenied::ok);
  CHECK(denied(acl, "a", {.command = "get", .keys = {{"b"}}}) == AclDenied::key);
  CHECK(denied(acl, "a", {.command = "publish"}) == AclDenied::command);
  // The refusal that came furthest is reported: the selector allowed the first key.
  const std::vector<AclKey> keys{{"b1"}, {"x"}};
  const AclRequest both{.command = *acl.catalog().find("set"), .keys = keys};
  REQUIRE(set_user(acl, "a", {"+set"}).ok());
  CHECK(acl.find("a")->check(both).denied == AclDenied::key);
  CHECK(acl.find("a")->check(both).index == 1);
  // Only the user's own rights make it unlimited.
  REQUIRE(set_user(acl, "b", {"(+@all ~* &*)"}).ok());
  CHECK_FALSE(acl.find("b")->is_unlimited());
  CHECK(denied(acl, "b", {.command = "set", .keys = {{"x"}}}) == AclDenied::ok);
}

TEST_CASE("acl: of rules with a fault none is taken", "[net][acl]") {
  Acl acl{some_commands()};
  REQUIRE(set_user(acl, "a", {"on", ">x", "+get"}).ok());
  const std::string before = text_of_user(acl, "a");
  CHECK(set_user(acl, "a", {"off", "+set", "bogus"}).error().detail ==
        "ERR Error in ACL SETUSER modifier 'bogus': Syntax error");
  CHECK(set_user(acl, "a", {"off", "(\"~x)"}).error().detail ==
        "ERR Error in ACL SETUSER modifier '(\"~x)': Syntax error");
  CHECK_FALSE(set_user(acl, "a", {"(\"~x'\")"}).ok());
  CHECK_FALSE(set_user(acl, "a", {"(~x) +get)"}).ok());
  CHECK(set_user(acl, "a", {"+select|0 1"}).error().detail ==
        "ERR Error in ACL SETUSER modifier '+select|0 1': Syntax error");
  CHECK(text_of_user(acl, "a") == before);
  CHECK_FALSE(set_user(acl, "b", {"on", "bogus"}).ok());
  CHECK(acl.find("b") == nullptr);
  CHECK(set_user(acl, "b c", {}).error().detail ==
        "ERR Usernames can't contain spaces or null characters");
}

TEST_CASE("acl: who may log in", "[net][acl]") {
  Acl acl{some_commands()};
  REQUIRE(set_user(acl, "a", {"on", ">one", ">two"}).ok());
  CHECK(acl.authenticate("a", "one") == acl.find("a"));
  CHECK(acl.authenticate("a", "two") != nullptr);
  CHECK(acl.authenticate("a", "three") == nullptr);
  CHECK(acl.authenticate("a", "") == nullptr);
  CHECK(acl.authenticate("b", "one") == nullptr);
  REQUIRE(set_user(acl, "a", {"off"}).ok());
  CHECK(acl.authenticate("a", "one") == nullptr);
  REQUIRE(set_user(acl, "a", {"on", "<one"}).ok());
  CHECK(acl.authenticate("a", "one") == nullptr);
  REQUIRE(set_user(acl, "a", {"nopass"}).ok());
  CHECK(acl.authenticate("a", "anything") != nullptr);
  REQUIRE(set_user(acl, "a", {"resetpass"}).ok());
  CHECK(acl.authenticate("a", "anything") == nullptr);
  // SHA-256 of "abc", from FIPS 180.
  constexpr std::string_view hex =
      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  CHECK(hex_of(hash_of_password("abc")) == hex);
  REQUIRE(set_user(acl, "a", {"#" + std::string{hex}}).ok());
  CHECK(acl.authenticate("a", "abc") != nullptr);
}

TEST_CASE("acl: a required password is asked of connections that come later", "[net][acl]") {
  Acl acl{some_commands()};
  const AclSession before = acl.open_session();
  CHECK_FALSE(before.needs_auth());
  acl.set_requirepass("secret");
  CHECK_FALSE(before.needs_auth());
  AclSession session = acl.open_session();
  CHECK(session.needs_auth());
  CHECK_FALSE(acl.log_in(session, "default", "wrong"));
  CHECK(session.needs_auth());
  CHECK(acl.log_in(session, "default", "secret"));
  CHECK_FALSE(session.needs_auth());
  acl.set_requirepass("other");
  CHECK(acl.find("default")->passwords().size() == 1);
  AclSession waiting = acl.open_session();
  acl.set_requirepass("");
  CHECK(acl.refresh(waiting) == AclChange::rights);
  CHECK_FALSE(waiting.needs_auth());
}

TEST_CASE("acl: a session learns once of each change of its user", "[net][acl]") {
  Acl acl{some_commands()};
  REQUIRE(set_user(acl, "a", {"on", "nopass"}).ok());
  AclSession session = acl.open_session();
  REQUIRE(acl.log_in(session, "a", ""));
  CHECK(acl.refresh(session) == AclChange::none);
  REQUIRE(set_user(acl, "a", {"+get"}).ok());
  CHECK(acl.refresh(session) == AclChange::rights);
  CHECK(acl.refresh(session) == AclChange::none);
  CHECK(session.user().text(RuleForm::list).ends_with("+get"));
  REQUIRE(set_user(acl, "b", {"on"}).ok());
  CHECK(acl.refresh(session) == AclChange::none);
  // Deleted, and created again before a session checked: it is another user.
  CHECK(acl.delete_users(Views{"a", "a", "nobody"}).value() == 1);
  REQUIRE(set_user(acl, "a", {"on", "nopass"}).ok());
  CHECK(acl.refresh(session) == AclChange::gone);
  CHECK(acl.refresh(session) == AclChange::gone);
  CHECK(acl.delete_users(Views{"b", "default"}).error().detail ==
        "ERR The 'default' user cannot be removed");
  CHECK(acl.find("b") != nullptr);
}

TEST_CASE("acl: an aclfile is taken as a whole or not at all", "[net][acl]") {
  Acl acl{some_commands()};
  REQUIRE(set_user(acl, "a", {"on", ">x", "~k", "%R~r", "&c", "+@read", "-get", "(~z)"}).ok());
  REQUIRE(set_user(acl, "star", {"%RW~*", "~k", "(%WR~* ~l)", "+select|0"}).ok());
  REQUIRE(set_user(acl, "gone", {"on", "nopass"}).ok());
  AclSession session = acl.open_session();
  REQUIRE(acl.log_in(session, "gone", ""));
  REQUIRE(acl.refresh(session) == AclChange::none);
  const auto before = acl.list();
  CHECK(acl.load_file("user b on\n\nuser c (+get\nuser d +nothing\nuser d\n", "f").error().detail ==
        "ERR f:3: Unmatched parenthesis in selector definition."
        "f:4: Error in applying operation '+nothing': Unknown command or category name in ACL. "
        "WARNING: Duplicate user 'd' found on line 5. "
        "WARNING: ACL errors detected, no change to the previously active ACL rules was performed");
  CHECK(acl.list() == before);
  CHECK(acl.refresh(session) == AclChange::none);

  const std::string saved = acl.file_text();
  Acl other{some_commands()};
  CHECK(other.load_file(saved, "f").ok());
  CHECK(other.file_text() == saved);
  CHECK(other.list() == before);

  CHECK(acl.load_file("user a on\n", "f").ok());
  CHECK(acl.list() == std::vector<std::string>{"user a on resetchannels -@all",
                                               "user default on nopass ~* &* +@all"});
  CHECK(acl.refresh(session) == AclChange::gone);
  const Status loaded = acl.load_file(
      std::string(200'000, '\n') + std::string(100'000, 'x') + std::string(100'000, '\n') + "user",
      std::string(40'000, 'f'));
  REQUIRE_FALSE(loaded.ok());
  CHECK(loaded.error().detail.size() < 2 * acl_limits::file_error_bytes_max);
  CHECK(acl.list().size() == 2);
}

TEST_CASE("acl: the log groups equal entries within a minute, and keeps 128", "[net][acl]") {
  DenialLog log;
  const auto at = [](std::int64_t ms) { return Timestamp{Millis{ms}}; };
  const Denial get{.object = "get", .username = "a", .client = "id=1"};
  log.add(get, at(1'000));
  log.add({.object = "set", .username = "a"}, at(2'000));
  log.add({.object = "get", .username = "a", .client = "id=2"},
          at(1'000 + acl_limits::log_grouping_ms));
  auto entries = log.newest(10);
  REQUIRE(entries.size() == 2);
  CHECK(entries[0].count == 2);
  CHECK(entries[0].client == "id=2");
  log.add(get, at(1'001 + 2 * acl_limits::log_grouping_ms));
  CHECK(log.newest(10).size() == 3);
  log.add({.reason = DenialReason::key, .object = "get", .username = "a"}, at(200'000));
  CHECK(log.newest(10).size() == 4);
  CHECK(log.newest(1).size() == 1);

  log.clear();
  for (std::size_t i = 0; i <= acl_limits::log_entries_usual; ++i) {
    CHECK(log.newest(1'000).size() == i);
    log.add({.object = std::to_string(i)}, at(1));
  }
  entries = log.newest(1'000);
  CHECK(entries.size() == acl_limits::log_entries_usual);
  CHECK(entries.front().object == std::to_string(acl_limits::log_entries_usual));
  CHECK(entries.back().object == "1");
  log.add({.object = std::string(acl_limits::logged_bytes_max + 1, 'k')}, at(1));
  CHECK(log.newest(1)[0].object.size() == acl_limits::logged_bytes_max);
}

TEST_CASE("acl: what a user may have is bounded", "[net][acl]") {
  Acl acl{some_commands()};
  const auto fill = [&](std::size_t count, const auto& rule_of, std::string_view fault) {
    std::vector<std::string> rules;
    for (std::size_t i = 0; i < count; ++i) rules.push_back(rule_of(i));
    REQUIRE(acl.set_user("a", Views{rules.begin(), rules.end()}).ok());
    REQUIRE(acl.set_user("a", Views{rules.begin(), rules.end()}).ok());  // nothing new
    const std::string more = rule_of(count);
    const Status status = acl.set_user("a", Views{more});
    REQUIRE_FALSE(status.ok());
    CHECK(status.error().detail.ends_with(fault));
  };
  const auto numbered = [](std::string_view mark) {
    return [mark](std::size_t i) { return std::string{mark} + std::to_string(i); };
  };
  fill(acl_limits::passwords_max, numbered(">"), ": More than 64 passwords");
  fill(acl_limits::patterns_max, numbered("~"), ": More than 4096 patterns");
  fill(acl_limits::patterns_max, numbered("&"), ": More than 4096 patterns");
  fill(acl_limits::arguments_max, numbered("+select|"), ": More than 1024 first arguments");
  const std::vector<std::string_view> selectors(acl_limits::selectors_max, "(+get)");
  CHECK(acl.set_user("s", selectors).ok());
  CHECK(acl.set_user("s", Views{"(+get)"}).error().detail.ends_with(": More than 64 selectors"));

  const std::string pattern(acl_limits::pattern_bytes_max, 'p');
  CHECK(acl.set_user("p", Views{"~" + pattern, "&" + pattern}).ok());
  CHECK_FALSE(acl.set_user("p", Views{"~" + pattern + "p"}).ok());
  CHECK_FALSE(acl.set_user("p", Views{"&" + pattern + "p"}).ok());
  const std::string argument = "+select|" + std::string(acl_limits::argument_bytes_max, 'x');
  CHECK(acl.set_user("p", Views{argument}).ok());
  CHECK_FALSE(acl.set_user("p", Views{argument + "x"}).ok());
  const std::string name(acl_limits::name_bytes_max, 'n');
  CHECK(acl.set_user(name, {}).ok());
  CHECK(acl.set_user(name + "n", {}).error().detail ==
        "ERR The username has 1025 bytes, more than 1024");
}

TEST_CASE("acl: there are as many users as there may be, and not one more", "[net][acl]") {
  Acl acl{some_commands()};
  std::string file;
  for (std::size_t i = 1; i < acl_limits::users_max; ++i) {
    REQUIRE(acl.set_user("u" + std::to_string(i), {}).ok());
    file += "user u" + std::to_string(i) + " on\n";
  }
  CHECK(acl.users().size() == acl_limits::users_max);
  CHECK(acl.set_user("more", {}).error().detail == "ERR There are 10000 users, the limit is 10000");
  CHECK(acl.set_user("u1", Views{"on"}).ok());
  CHECK(acl.load_file("user default on\n" + file, "f").ok());
  CHECK(acl.load_file("user default on\n" + file + "user more on\n", "f")
            .error()
            .detail.starts_with("ERR f:10001: more than 10000 users. "));
  CHECK(acl.load_file(file + "user more on\n", "f").error().detail.starts_with("ERR f"));
}

TEST_CASE("acl: passwords are random, and as long as was asked for", "[net][acl]") {
  Acl acl{some_commands()};
  AclSession session = acl.open_session();
  Host host;
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) seen.insert(answer(acl, session, host, {"ACL", "GENPASS"}));
  CHECK(seen.size() == 100);
  CHECK(seen.begin()->starts_with("$64\r\n"));
  CHECK(answer(acl, session, host, {"ACL", "GENPASS", "1"}).size() == 7 + 1 - 1);
  CHECK(answer(acl, session, host, {"ACL", "GENPASS", "5"}).starts_with("$2\r\n"));
  CHECK(answer(acl, session, host, {"ACL", "GENPASS", "4096"}).starts_with("$1024\r\n"));
  CHECK(answer(acl, session, host, {"ACL", "GENPASS", "4097"}).starts_with("-ERR ACL GENPASS"));
}

TEST_CASE("acl: replies that no server is needed for", "[net][acl]") {
  Acl acl{some_commands()};
  AclSession session = acl.open_session();
  Host host;
  REQUIRE(set_user(acl, "a", {"on", "+get"}).ok());
  CHECK(answer(acl, session, host, {"AUTH", "a", "x"}).starts_with("-WRONGPASS "));
  CHECK(answer(acl, session, host, {"ACL", "LOG"}) ==
        "*1\r\n%7\r\n$5\r\ncount\r\n:1\r\n$6\r\nreason\r\n$4\r\nauth\r\n$7\r\ncontext\r\n"
        "$8\r\ntoplevel\r\n$6\r\nobject\r\n$4\r\nAUTH\r\n$8\r\nusername\r\n$1\r\na\r\n"
        "$11\r\nage-seconds\r\n,0\r\n$11\r\nclient-info\r\n$4\r\nid=7\r\n");
  CHECK(answer(acl, session, host, {"ACL", "HELP"}).starts_with("*27\r\n+ACL <subcommand> "));
  host.name = "users.acl";
  CHECK(answer(acl, session, host, {"ACL", "LOAD"}) ==
        "-ERR Error loading ACLs, opening file 'users.acl': No such file or directory\r\n");
  CHECK(answer(acl, session, host, {"ACL", "SAVE"})
            .starts_with("-ERR There was an error trying to save the ACLs."));
}

TEST_CASE("acl: sessions follow changes that another thread makes", "[net][acl][race]") {
  Acl acl{some_commands()};
  REQUIRE(set_user(acl, "a", {"on", "nopass", "+get"}).ok());
  std::atomic<bool> done{false};
  std::atomic<int> torn{0};
  const auto follow = [&] {
    AclSession session = acl.open_session();
    if (!acl.log_in(session, "a", "")) torn.fetch_add(1, std::memory_order_relaxed);
    // mo: relaxed: only the signal to stop.
    while (!done.load(std::memory_order_relaxed)) {
      if (acl.refresh(session) == AclChange::gone) return;
      const auto get = acl.catalog().find("get");
      const auto set = acl.catalog().find("set");
      const bool may_get = session.user().check({.command = *get}).ok();
      const bool may_set = session.user().check({.command = *set}).ok();
      // mo: relaxed: read after the join.
      if (may_get == may_set) torn.fetch_add(1, std::memory_order_relaxed);
    }
  };
  std::thread one{follow};
  std::thread two{follow};
  for (int i = 0; i < 2'000; ++i) {
    const bool even = i % 2 == 0;
    CHECK(set_user(acl, "a", {even ? "-get" : "+get", even ? "+set" : "-set"}).ok());
  }
  // mo: relaxed: as above.
  done.store(true, std::memory_order_relaxed);
  one.join();
  two.join();
  // mo: relaxed: the threads were joined.
  CHECK(torn.load(std::memory_order_relaxed) == 0);
  AclSession session = acl.open_session();
  REQUIRE(acl.log_in(session, "a", ""));
  CHECK(acl.delete_users(Views{"a"}).value() == 1);
  CHECK(acl.refresh(session) == AclChange::gone);
}

}  // namespace semel::tests

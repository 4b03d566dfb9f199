// What programs that are no friends of the node send to it, and what its operator sees of that.
//
// Reported: an event for the log. Hidden: a word that is replaced because it is a secret.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "tests/support/catch.hpp"

#include "net/commands/audit.hpp"
#include "net/commands/measure.hpp"
#include "tests/net/conversation.hpp"

namespace semel::tests {
namespace {

struct Reported {
  std::string name;
  std::string address;
  std::string user;
  std::string text;
};

struct Watched : Conversation {
  explicit Watched(std::size_t count = 1) : Conversation(count) {
    node.hooks.event = [this](const net::NodeEvent& event) {
      reported.push_back({std::string{event.name}, std::string{event.address},
                          std::string{event.user}, std::string{event.text}});
    };
  }
  std::string talk(std::string_view bytes, std::size_t client = 0) {
    std::string reply;
    connections[client]->receive(bytes, reply);
    return reply;
  }
  [[nodiscard]] std::size_t count(std::string_view name) const {
    return static_cast<std::size_t>(std::count_if(
        reported.begin(), reported.end(), [&](const Reported& each) { return each.name == name; }));
  }
  std::vector<Reported> reported;
};

const std::string post =
    "POST / HTTP/1.1\r\nHost: 127.0.0.1:6379\r\nContent-Type: text/plain\r\nContent-Length: 40\r\n"
    "\r\nSET owned 1\r\nCONFIG SET requirepass mine\r\n";

}  // namespace

TEST_CASE("http: nothing behind the first line of a request is carried out",
          "[net][http][attack][fault-2]") {
  const auto [request, answered] = GENERATE(table<std::string, std::string>(
      {{post, ""},
       {"pOsT /x HTTP/1.1\r\nSET owned 1\r\n", ""},
       {"POST\r\nSET owned 1\r\n", ""},
       {"hOST: x\r\nSET owned 1\r\n", ""},
       {"Host:x\r\nSET owned 1\r\n", ""},
       {request_bytes({"POST", "/"}) + "SET owned 1\r\n", ""},
       {request_bytes({"host:"}) + "SET owned 1\r\n", ""},
       {"PING\r\n" + post, "+PONG\r\n"},
       {request_bytes({"GET", "k"}) + post, "$-1\r\n"},
       {"MULTI\r\nSET owned 1\r\n" + post, "+OK\r\n+QUEUED\r\n"},
       {"SUBSCRIBE c\r\n" + post, "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"}}));
  Watched watched{2};
  CHECK(watched.talk(request) == answered);
  CHECK(watched.connections[0]->closes());
  CHECK(watched.talk("SET owned 2\r\n").empty());
  CHECK(watched.call({"EXISTS", "owned"}, 1) == ":0\r\n");
  CHECK(watched.node.stats.refused_http() == 1);
  REQUIRE(watched.count("http_refused") == 1);
  CHECK(watched.reported.back().address == "127.0.0.1:5000");
}

TEST_CASE("http: a GET is refused by its second line, as are other methods",
          "[net][http][attack][fault-2]") {
  const std::string method = GENERATE("GET", "PUT", "HEAD", "OPTIONS", "DELETE", "PATCH");
  Watched watched{2};
  static_cast<void>(
      watched.talk(method + " / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nSET owned 1\r\nQUIT\r\n"));
  CHECK(watched.connections[0]->closes());
  CHECK(watched.call({"EXISTS", "owned"}, 1) == ":0\r\n");
  CHECK(watched.node.stats.refused_http() == 1);
}

TEST_CASE("http: it is refused before a login and after one, however its bytes are cut",
          "[net][http][attack][fault-2]") {
  const bool logs_in = GENERATE(false, true);
  const std::size_t cut = GENERATE(1U, 3U, 5U, 20U, 47U, 90U);
  Watched watched{2};
  watched.node.acl.set_requirepass("secret");
  if (logs_in) REQUIRE(watched.call({"AUTH", "secret"}) == "+OK\r\n");
  REQUIRE(watched.call({"AUTH", "secret"}, 1) == "+OK\r\n");
  CHECK(watched.talk(post.substr(0, cut)).empty());
  CHECK(watched.talk(post.substr(cut)).empty());
  CHECK(watched.connections[0]->closes());
  CHECK(watched.call({"EXISTS", "owned"}, 1) == ":0\r\n");
}

TEST_CASE("http: a script and an argument may have these words", "[net][http][attack][fault-2]") {
  Watched watched;
  CHECK(watched.call({"SET", "POST", "Host:"}) == "+OK\r\n");
  CHECK(watched.call({"ECHO", "POST"}) == "$4\r\nPOST\r\n");
  CHECK(watched.call({"EVAL", "return redis.pcall('POST').err", "0"}).starts_with("$"));
  CHECK(watched.talk("POSTS\r\n").starts_with("-ERR unknown command"));
  CHECK_FALSE(watched.connections[0]->closes());
  CHECK(watched.node.stats.refused_http() == 0);
}

namespace {

const std::vector<Words> with_secrets{
    {"AUTH", "s3cret"},
    {"AUTH", "ada", "s3cret"},
    {"HELLO", "3", "AUTH", "ada", "s3cret"},
    {"HELLO", "2", "SETNAME", "auth", "AUTH", "ada", "s3cret"},
    {"hello", "3", "auth", "auth", "s3cret", "setname", "x"},
    {"HELLO", "AUTH", "ada", "s3cret"},
    {"CONFIG", "SET", "requirepass", "s3cret"},
    {"CONFIG", "SET", "maxclients", "10", "RequirePass", "s3cret"},
    {"CONFIG", "SET", "masterauth", "s3cret", "tls-key-file-pass", "s3cret"},
    {"ACL", "SETUSER", "ada", "on", ">s3cret", "~*"},
    {"COMMAND", "GETKEYS", "AUTH", "s3cret"},
    {"COMMAND", "GETKEYSANDFLAGS", "HELLO", "3", "AUTH", "ada", "s3cret"},
    {"ACL", "DRYRUN", "default", "AUTH", "ada", "s3cret"},
    {"ACL", "DRYRUN", "default", "COMMAND", "GETKEYS", "CONFIG", "SET", "requirepass", "s3cret"},
    {"COMMAND", "GETKEYS", "ACL", "DRYRUN", "x", "ACL", "SETUSER", "ada", ">s3cret"}};

}  // namespace

TEST_CASE("secrets: neither the slow log nor a monitor nor the log shows one",
          "[net][secrets][attack][fault-9]") {
  const Words words = GENERATE(from_range(with_secrets));
  const bool in_transaction = GENERATE(false, true);
  Watched watched{3};
  watched.node.monitors.allowed.store(true, std::memory_order_relaxed);
  watched.node.slow_log.set_limit_us(0);
  REQUIRE(watched.call({"MONITOR"}, 1) == "+OK\r\n");
  const std::string bytes =
      in_transaction ? request_bytes({"MULTI"}) + request_bytes(words) + request_bytes({"EXEC"})
                     : request_bytes(words);
  static_cast<void>(watched.talk(bytes));
  INFO(words[0] + " " + words[1] + " " + words[2 % words.size()]);
  CHECK(watched.collect(1).find("s3cret") == std::string::npos);
  for (const net::SlowCall& call : watched.node.slow_log.newest(100)) {
    for (const std::string& word : call.args) CHECK(word.find("s3cret") == std::string::npos);
  }
  for (const Reported& reported : watched.reported)
    CHECK(reported.text.find("s3cret") == std::string::npos);
}

TEST_CASE("secrets: commands within commands without end cost one pass",
          "[net][secrets][attack][fault-9]") {
  Words words;
  for (int i = 0; i < 20'000; ++i) {
    words.emplace_back("COMMAND");
    words.emplace_back("GETKEYS");
  }
  words.emplace_back("AUTH");
  words.emplace_back("s3cret");
  const std::vector<std::string_view> views{words.begin(), words.end()};
  const net::CommandRow* const row = net::find_subcommand(*net::find_command("command"), "getkeys");
  const auto shown = net::without_secrets(*row, views);
  CHECK(shown.back() == "(redacted)");
  CHECK(shown[shown.size() - 2] == "AUTH");
}

TEST_CASE("audit: changes of the node or of all its data are reported, with their author",
          "[net][audit][attack][fault-9]") {
  const auto [words, name, text] = GENERATE(table<Words, std::string, std::string>(
      {{{"CONFIG", "SET", "timeout", "7"}, "config_set", "CONFIG SET timeout 7"},
       {{"config", "set", "requirepass", ""}, "config_set", "config set requirepass (redacted)"},
       {{"ACL", "SETUSER", "ada", "on", ">pw"},
        "acl_setuser",
        "ACL SETUSER ada (redacted) (redacted)"},
       {{"ACL", "SETUSER", "ada", "+nosuch"}, "acl_setuser", "ACL SETUSER ada (redacted) -> ERR"},
       {{"ACL", "DELUSER", "ada"}, "acl_deluser", "ACL DELUSER ada"},
       {{"FLUSHALL"}, "flushall", "FLUSHALL"},
       {{"FLUSHDB", "ASYNC"}, "flushdb", "FLUSHDB ASYNC"},
       {{"SWAPDB", "0", "1"}, "swapdb", "SWAPDB 0 1"},
       {{"SCRIPT", "FLUSH"}, "script_flush", "SCRIPT FLUSH"},
       {{"CLIENT", "PAUSE", "0"}, "client_pause", "CLIENT PAUSE 0"},
       {{"CLIENT", "KILL", "ID", "77"}, "client_kill", "CLIENT KILL ID 77"},
       {{"ACL", "LOG", "RESET"}, "acl_log", "ACL LOG RESET"}}));
  Watched watched;
  INFO(text);
  static_cast<void>(watched.call(words));
  const auto found =
      std::find_if(watched.reported.begin(), watched.reported.end(),
                   [&, wanted = name](const Reported& t) { return t.name == wanted; });
  REQUIRE(found != watched.reported.end());
  CHECK(found->text == text);
  CHECK(found->address == "127.0.0.1:5000");
  CHECK(found->user == "default");
}

TEST_CASE("audit: changes in transactions and scripts are reported as well, and reads are not",
          "[net][audit][attack][fault-9]") {
  Watched watched;
  static_cast<void>(watched.talk("MULTI\r\nFLUSHALL\r\nEXEC\r\n"));
  CHECK(watched.count("flushall") == 1);
  static_cast<void>(watched.call({"EVAL", "return redis.call('FLUSHDB')", "0"}));
  CHECK(watched.count("flushdb") == 1);
  watched.reported.clear();
  for (const Words& words : std::vector<Words>{{"CONFIG", "GET", "*"},
                                               {"ACL", "LOG"},
                                               {"ACL", "LIST"},
                                               {"SET", "k", "v"},
                                               {"CLIENT", "LIST"}}) {
    static_cast<void>(watched.call(words));
  }
  CHECK(watched.reported.empty());
}

TEST_CASE("audit: a long request is cut", "[net][audit][attack][fault-9]") {
  Watched watched;
  Words words{"CONFIG", "SET"};
  for (int i = 0; i < 1'000; ++i) words.emplace_back(10'000, 'x');
  static_cast<void>(watched.call(words));
  REQUIRE(watched.count("config_set") == 1);
  CHECK(watched.reported.back().text.size() < 4'096);
}

TEST_CASE("audit: the user default without a password is reported once",
          "[net][audit][attack][fault-4]") {
  Watched watched;
  watched.node.acl.set_requirepass("secret");
  REQUIRE(watched.node.open_users().ok());
  REQUIRE(watched.call({"AUTH", "secret"}) == "+OK\r\n");
  static_cast<void>(watched.call({"ACL", "SETUSER", "ada", "on"}));
  CHECK(watched.count("default_user_open") == 0);
  SECTION("by CONFIG SET") {
    static_cast<void>(watched.call({"CONFIG", "SET", "requirepass", ""}));
  }
  SECTION("by ACL SETUSER") {
    static_cast<void>(watched.call({"ACL", "SETUSER", "default", "nopass"}));
  }
  CHECK(watched.count("default_user_open") == 1);
  static_cast<void>(watched.call({"ACL", "SETUSER", "ada", "off"}));
  CHECK(watched.count("default_user_open") == 1);
}

TEST_CASE("errors: error words of scripts are bounded, those of the node always counted",
          "[net][stats][attack][fault-9]") {
  Watched watched;
  for (int i = 0; i < 500; ++i) {
    static_cast<void>(watched.call(
        {"EVAL", "return redis.error_reply(ARGV[1])", "0", "W" + std::to_string(i) + " text"}));
  }
  static_cast<void>(watched.call({"NOSUCH"}));
  static_cast<void>(watched.call({"SET", "k", "v"}));
  static_cast<void>(watched.call({"HGET", "k", "f"}));
  const net::NodeTotals totals = watched.node.stats.totals();
  CHECK(totals.errors.size() <= net::StatsLane::made_up_errors_max + 8);
  CHECK(totals.errors.at("other") == 500 - net::StatsLane::made_up_errors_max);
  CHECK(totals.errors.at("ERR") == 1);
  CHECK(totals.errors.at("WRONGTYPE") == 1);
  CHECK(totals.error_replies == 502);
}

TEST_CASE("errors: a word that would break a line of INFO or a label is `other`",
          "[net][stats][attack][fault-9]") {
  const std::string word =
      GENERATE(as<std::string>{}, "A:1", "A=1", "A,B", "\x01", "\xff\xfe", std::string(1'000, 'A'));
  Watched watched;
  static_cast<void>(
      watched.call({"EVAL", "return redis.error_reply(ARGV[1])", "0", word + " text"}));
  const net::NodeTotals totals = watched.node.stats.totals();
  REQUIRE(totals.errors.size() == 1);
  CHECK(totals.errors.begin()->first == "other");
}

}  // namespace semel::tests

// Users and rights beside a redis-server: the same ACL commands to both, byte for byte.
//
// Words: *theirs* is the server, *ours* an Acl over the very commands and categories that server
// tells of, so that nothing in the answers may differ, not even an order.
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include "tests/net/acl/run_acl.hpp"
#include "tests/support/catch.hpp"

#include "net/acl/acl_command.hpp"
#include "net/resp/text.hpp"
#include "tests/net/conversation.hpp"
#include "tests/support/raw_client.hpp"
#include "tests/support/redis_or_skip.hpp"
#include "tests/support/resp_client.hpp"

namespace semel::tests {

using namespace net;

namespace {

using Views = std::vector<std::string_view>;

struct TheirCommand {
  std::string name;
  std::int64_t arity;
  std::uint32_t categories;
  bool no_auth;
};

void read_commands(const RespValue& list, std::vector<TheirCommand>& commands) {
  for (const RespValue& row : list.items) {
    TheirCommand command{row.items[0].text, std::stoll(row.items[1].text), 0, false};
    for (const RespValue& flag : row.items[2].items) command.no_auth |= flag.text == "no_auth";
    for (const RespValue& category : row.items[6].items) {
      const auto known = acl_category_of(category.text.substr(1));
      REQUIRE(known);
      command.categories |= 1U << *known;
    }
    commands.push_back(std::move(command));
    read_commands(row.items[9], commands);
  }
}

/// A server moves the commands of a small table bit by bit to where they stay, at each search in
/// it. So each is searched before the order is asked for.
void settle(RespClient& client) {
  for (const RespValue& row : client.call({"COMMAND"}).items) {
    constexpr std::size_t searches = 100;
    Words words{"COMMAND", "INFO"};
    words.insert(words.end(), searches, row.items[0].text + "|nothing");
    static_cast<void>(client.call(words));
  }
}

std::vector<TheirCommand> commands_of(RespClient& client) {
  REQUIRE(client.call({"AUTH", "admin", "x"}).text == "OK");
  settle(client);
  std::vector<TheirCommand> commands;
  read_commands(client.call({"COMMAND"}), commands);
  REQUIRE(commands.size() > 300);
  return commands;
}

std::vector<AclCommand> rows_of(const std::vector<TheirCommand>& commands) {
  std::vector<AclCommand> rows;
  for (const TheirCommand& command : commands) {
    rows.push_back({command.name, command.categories, command.no_auth});
  }
  return rows;
}

/// Asks the server where keys are, and keeps the answers.
class Host final : public AclHost {
 public:
  Host(const std::vector<TheirCommand>& commands, const Acl& acl, RespClient& client)
      : commands_(commands), acl_(acl), client_(client) {}

  AclLookup look_up(std::span<const std::string_view> words) override {
    const auto command = acl_.catalog().find(words);
    if (!command) return {};
    AclLookup asked{.found = AclLookup::Found::yes, .command = *command};
    const auto count = static_cast<std::int64_t>(words.size());
    const std::int64_t arity = commands_[*command].arity;
    if (arity >= 0 ? count != arity : count < -arity) {
      asked.found = AclLookup::Found::wrong_arity;
      return asked;
    }
    const std::size_t behind = acl_.catalog().is_subcommand(*command) ? 2 : 1;
    if (words.size() > behind) asked.argument = words[behind];
    asked.keys = keys_of({words.begin(), words.end()});
    const std::string& name = commands_[*command].name;
    if (name == "publish") asked.channels = {{words[1]}};
    for (std::size_t i = 1; i < words.size() && name.ends_with("subscribe"); ++i) {
      asked.channels.push_back({.name = words[i], .is_pattern = name == "psubscribe"});
    }
    return asked;
  }
  std::string client_info() override { return "id=1"; }
  std::string file_name() override { return file; }
  Result<std::string> read_file() override {
    std::ifstream in{file};
    return std::string{std::istreambuf_iterator<char>{in}, {}};
  }
  bool write_file(std::string_view text) override {
    written = text;
    return true;
  }

  std::string file;
  std::string written;

 private:
  std::vector<AclKey> keys_of(const Words& words) {
    auto& known = keys_[words];
    if (known.items.empty() && known.text.empty()) {
      Words question{"COMMAND", "GETKEYSANDFLAGS"};
      question.insert(question.end(), words.begin(), words.end());
      known = client_.call(question);
    }
    std::vector<AclKey> keys;
    for (const RespValue& key : known.items) {
      unsigned access = 0;
      for (const RespValue& flag : key.items[1].items) {
        if (flag.text == "access") access |= 1U;
        if (flag.text == "update" || flag.text == "insert" || flag.text == "delete") access |= 2U;
      }
      keys.push_back({key.items[0].text, static_cast<KeyAccess>(access)});
    }
    return keys;
  }

  const std::vector<TheirCommand>& commands_;
  const Acl& acl_;
  RespClient& client_;
  std::map<Words, RespValue> keys_;
};

/// One server and one Acl, each with a connection that is not the default user's.
class Pair {
 public:
  explicit Pair(const RedisServer& server)
      : plain_(server.socket_path()),
        theirs_(server.socket_path()),
        commands_(commands_of(plain_)),
        acl_(rows_of(commands_)),
        host(commands_, acl_, plain_),
        session_(acl_.open_session()) {
    const Views rules{"on", "nopass", "+@all", "~*", "&*"};
    REQUIRE(acl_.set_user("admin", rules).ok());
    REQUIRE(ours({"AUTH", "admin", "x"}) == "+OK\r\n");
    REQUIRE(theirs_.log_in("admin", "x"));
  }

  std::string theirs(const Words& words) { return theirs_.call(words); }
  std::string ours(const Words& words) {
    const Views views{words.begin(), words.end()};
    std::string out;
    RespWriter reply{out, dialect_};
    AclCall call{acl_, session_, views, reply, host, Timestamp{Millis{5'000}}};
    if (!run_acl(call)) out = node_.call(words);
    CHECK(acl_.refresh(session_) != AclChange::gone);
    return out;
  }
  void speak(Resp dialect) {
    dialect_ = dialect;
    static_cast<void>(theirs({"HELLO", dialect == Resp::three ? "3" : "2"}));
  }
  /// Empty: no difference.
  std::string difference(const Words& words) {
    const std::string mine = ours(words);
    const std::string other = theirs(words);
    if (mine == other && !mine.empty()) return {};
    std::string text = "\n";
    for (const std::string& word : words) text += tests::printable(word) + " ";
    return text + "\n  ours   " + mine + "  theirs " + other;
  }
  [[nodiscard]] const std::vector<TheirCommand>& commands() const { return commands_; }
  [[nodiscard]] Acl& acl() { return acl_; }

 private:
  RespClient plain_;
  RawClient theirs_;
  const std::vector<TheirCommand> commands_;
  Acl acl_;

 public:
  Host host;

 private:
  AclSession session_;
  Conversation node_;  // its dispatcher refuses requests of wrong names and numbers of words
  Resp dialect_ = Resp::two;
};

class Generator {
  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  template <class List>
  const auto& pick(const List& list) {
    return list[below(std::size(list))];
  }

 public:
  Generator(std::uint64_t seed, const std::vector<TheirCommand>& commands)
      : random_(seed), commands_(commands) {}

  Words next() {
    const std::uint64_t kind = below(20);
    if (kind < 9) return set_user();
    if (kind < 12) return {"ACL", "GETUSER", name()};
    if (kind < 17) return dry_run();
    if (kind == 17) return below(4) == 0 ? Words{"ACL", "DELUSER", name(), name()} : set_user();
    if (kind == 18) return {"ACL", below(2) == 0 ? "LIST" : "users"};
    return pick(odd_);
  }

 private:
  std::string name() {
    static const Words names{"a", "bob", "Bob", "x|y", "default", "nobody"};
    return pick(names);
  }
  std::string cased(std::string text) {
    if (below(8) != 0) return text;
    for (char& c : text) c = below(2) == 0 && c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
    return text;
  }

  Words set_user() {
    Words words{"ACL", cased("setuser"), name()};
    const std::uint64_t count = below(6);
    for (std::uint64_t i = 0; i < count; ++i) words.push_back(rule());
    if (below(60) == 0) words.push_back(pick(broken_));
    return words;
  }

  std::string rule() {
    static const Words words{"on",
                             "off",
                             "nopass",
                             "resetpass",
                             "allkeys",
                             "resetkeys",
                             "allchannels",
                             "reset",
                             "resetchannels",
                             "allcommands",
                             "nocommands",
                             "skip-sanitize-payload",
                             "+@all",
                             "-@all",
                             "sanitize-payload",
                             "~*",
                             "&*",
                             "clearselectors",
                             "",
                             "%RW~*",
                             "%R~*"};
    static const Words passwords{
        ">one",
        ">two",
        "<one",
        ">",
        "<",
        "#2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
        "!2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"};
    const std::uint64_t kind = below(24);
    if (kind < 10) return cased(about_commands());
    if (kind < 15) return about_names();
    if (kind < 20) return cased(pick(words));
    if (kind == 20) return pick(passwords);
    return kind < 23 ? selector() : rule_with_blank();
  }

  std::string about_commands() {
    const std::string sign = below(2) == 0 ? "+" : "-";
    if (below(2) == 0) return sign + "@" + std::string{pick(acl_categories)};
    const std::string& command = pick(commands_).name;
    if (below(5) != 0) return sign + command;
    static const Words arguments{"0", "ID", "id", "xy", "", "a|b"};
    return sign + command + "|" + pick(arguments);
  }

  std::string about_names() {
    static const Words marks{"~", "~", "~", "%R~", "%W~", "%rw~", "&", "&", "%WR~"};
    static const Words patterns{"k*", "k1", "[a-c]?", "", "*x*", "a", "c\\*", "\xff*", "k*"};
    return pick(marks) + pick(patterns);
  }

  std::string selector() {
    std::string text = below(3) == 0 ? "(+@all ~k* " : "(";
    const std::uint64_t count = below(4);
    for (std::uint64_t i = 0; i < count; ++i) {
      text += (i == 0 ? "" : " ") + (below(2) == 0 ? about_commands() : about_names());
    }
    return text + ")";
  }

  std::string rule_with_blank() { return below(12) == 0 ? "~a b" : about_names(); }

  Words dry_run() {
    static const std::vector<Words> requests{{"get", "k1"},
                                             {"SET", "a", "v"},
                                             {"set", "k1", "v", "GET"},
                                             {"mget", "k1", "k2", "a"},
                                             {"mset", "k1", "1", "b", "2"},
                                             {"exists", "zz", "k1"},
                                             {"strlen", "k"},
                                             {"copy", "k1", "ax"},
                                             {"rename", "a", "k1"},
                                             {"del", "k1", "bx"},
                                             {"getdel", "k1"},
                                             {"append", "ax", "1"},
                                             {"publish", "a", "m"},
                                             {"subscribe", "k1", "a"},
                                             {"psubscribe", "k*", "a"},
                                             {"select", "0"},
                                             {"select", "xy"},
                                             {"client", "id"},
                                             {"client", "KILL", "x"},
                                             {"config", "get", "x"},
                                             {"config", "nothing"},
                                             {"object", "encoding", "k1"},
                                             {"auth", "x"},
                                             {"hello"},
                                             {"ping"},
                                             {"get"},
                                             {"nothing", "x"},
                                             {"client|id"},
                                             {"zunionstore", "a", "2", "k1", "k2"},
                                             {"eval", "x", "2", "k1", "a"},
                                             {"xread", "streams", "k1", "a", "0", "0"},
                                             {"lmove", "k1", "a", "left", "left"},
                                             {"sort_ro", "k1"}};
    Words words{"acl", "DRYRUN", name()};
    const Words& request = pick(requests);
    words.insert(words.end(), request.begin(), request.end());
    return words;
  }

  std::mt19937_64 random_;
  const std::vector<TheirCommand>& commands_;
  const Words broken_{"bogus",  "#abc",
                      "!ABC",   "+nothing",
                      "-get|x", "+@nothing",
                      "(on)",   "(~a",
                      "%Q~x",   "%",
                      "%RR~x",  "+",
                      "-",      "+client|kill|x",
                      "+@",     "a\r\nb",
                      "(",      "(+get ~k1",
                      ")",      "( ~k1  +get )"};
  const std::vector<Words> odd_{{"ACL"},
                                {"ACL", "nothing"},
                                {"ACL", std::string(200, 'n'), "x"},
                                {"ACL", "GETUSER"},
                                {"ACL", "LIST", "x"},
                                {"ACL", "SETUSER"},
                                {"ACL", "DELUSER"},
                                {"ACL", "DELUSER", "a", "default"},
                                {"ACL", "DRYRUN", "a"},
                                {"ACL", "CAT", "nothing"},
                                {"ACL", "CAT", "Dangerous"},
                                {"ACL", "CAT", "a", "b"},
                                {"ACL", "CAT"},
                                {"ACL", "GENPASS", "0"},
                                {"ACL", "GENPASS", "4097"},
                                {"ACL", "GENPASS", "x"},
                                {"ACL", "GENPASS", "1", "2"},
                                {"ACL", "LOG", "x"},
                                {"ACL", "LOG", "1", "2"},
                                {"ACL", "WHOAMI"},
                                {"ACL", "SETUSER", "a b", "on"},
                                {"ACL", "LOAD"},
                                {"ACL", "SAVE"},
                                {"AUTH", "a", "b", "c"},
                                {"AUTH"}};
};

const Words with_admin{"--user", "admin", "on", "nopass", "~*", "&*", "+@all"};

}  // namespace

TEST_CASE("acl: a redis-server answers the same to random rules", "[net][acl][redis]") {
  const auto server = redis_or_skip(with_admin);
  if (!server) return;
  const auto seed = Catch::rngSeed();
  INFO("seed " << seed);
  for (const Resp dialect : {Resp::two, Resp::three}) {
    Pair pair{*server};
    pair.speak(dialect);
    for (const char* name : {"a", "bob", "Bob", "x|y", "nobody"}) {
      static_cast<void>(pair.theirs({"ACL", "DELUSER", name}));
    }
    const Words reset{"ACL", "SETUSER", "default", "reset", "on", ">one", "+@all", "~*", "&*"};
    REQUIRE(pair.difference(reset).empty());
    Generator generator{seed, pair.commands()};
    std::string differences;
    int different = 0;
    constexpr int steps = 6'000;
    for (int i = 0; i < steps && different < 5; ++i) {
      const std::string difference = pair.difference(generator.next());
      differences += difference;
      different += difference.empty() ? 0 : 1;
    }
    INFO(differences);
    CHECK(different == 0);
    Acl again{rows_of(pair.commands())};
    CHECK(again.load_file(pair.acl().file_text(), "saved").ok());
    CHECK(again.list() == pair.acl().list());
  }
}

TEST_CASE("acl: a redis-server has the same commands in each category", "[net][acl][redis]") {
  const auto server = redis_or_skip(with_admin);
  if (!server) return;
  Pair pair{*server};
  for (const std::string_view category : acl_categories) {
    CHECK(pair.difference({"ACL", "CAT", std::string{category}}).empty());
    for (const char* first : {"+@all", "-@all"}) {
      for (const char* sign : {"+@", "-@"}) {
        const std::string rule = sign + std::string{category};
        CHECK(pair.difference({"ACL", "SETUSER", "u", first, rule}).empty());
        CHECK(pair.difference({"ACL", "GETUSER", "u"}).empty());
      }
    }
  }
}

TEST_CASE("acl: a redis-server logs in and refuses with the same texts", "[net][acl][redis]") {
  const auto server = redis_or_skip(with_admin);
  if (!server) return;
  Pair pair{*server};
  const auto same = [&](const Words& words) { CHECK(pair.difference(words) == ""); };
  same({"AUTH", "x"});
  same({"ACL", "SETUSER", "u", "on", ">one", "+echo", "+acl|whoami", "+auth", "+client|id"});
  same({"ACL", "SETUSER", "u", "~k*", "&c*", "+set", "+publish", "+acl|list"});
  same({"AUTH", "u", "two"});
  same({"AUTH", "nobody", "one"});
  same({"auth", "u", "one"});
  same({"ACL", "WHOAMI"});
  same({"ACL", "LIST"});
  same({"AUTH", "admin", ""});
  same({"ACL", "SETUSER", "u", "off"});
  same({"AUTH", "u", "one"});
  same({"ACL", "SETUSER", "default", ">pass"});
  same({"AUTH", "pass"});
  same({"ACL", "WHOAMI"});
  same({"AUTH", "admin", "x"});

  // What the log has, but for ages and clients.
  for (const Words& words : std::vector<Words>{{"get", "k"},
                                               {"set", "q", "v"},
                                               {"publish", "q", "v"},
                                               {"client", "kill", "x"},
                                               {"set", "q", "v"}}) {
    RawClient client{server->socket_path()};
    REQUIRE(pair.theirs({"ACL", "SETUSER", "u", "on"}) == "+OK\r\n");
    REQUIRE(pair.ours({"ACL", "SETUSER", "u", "on"}) == "+OK\r\n");
    REQUIRE(client.log_in("u", "one"));
    AclSession session = pair.acl().open_session();
    REQUIRE(pair.acl().log_in(session, "u", "one"));
    const Views views{words.begin(), words.end()};
    const AclLookup asked = pair.host.look_up(views);
    const Verdict verdict = session.user().check(asked.request());
    std::string out;
    RespWriter reply{out, Resp::two};
    AclCall call{pair.acl(), session, views, reply, pair.host, Timestamp{Millis{5'000}}};
    REQUIRE_FALSE(verdict.ok());
    refuse(call, verdict, asked.request());
    CHECK(out == client.call(words));
  }
  const auto log_of = [](std::string reply) {
    std::string kept;
    std::size_t skipped = 0;
    for (std::size_t at = 0; at < reply.size();) {
      const std::size_t end = reply.find("\r\n", at) + 2;
      const std::string line = reply.substr(at, end - at);
      if (line == "age-seconds\r\n" || line == "client-info\r\n") skipped = 3;
      if (skipped > 0 ? --skipped == 2 : true) kept += line;
      at = end;
    }
    return kept;
  };
  CHECK(log_of(pair.ours({"ACL", "LOG"})) == log_of(pair.theirs({"ACL", "LOG"})));
  CHECK(log_of(pair.ours({"ACL", "LOG", "2"})) == log_of(pair.theirs({"ACL", "LOG", "2"})));
  same({"ACL", "LOG", "-1"});
  same({"ACL", "LOG", "Reset"});
  same({"ACL", "LOG"});
}

TEST_CASE("acl: a redis-server says the same about an aclfile", "[net][acl][redis]") {
  std::array<char, 32> room{"/tmp/semel_acl_test.XXXXXX"};
  REQUIRE(mkdtemp(room.data()) != nullptr);
  const std::filesystem::path directory{room.data()};
  const std::string file = directory / "users.acl";
  const auto put = [&](std::string_view text) { std::ofstream{file} << text; };
  const std::string admin = "user admin on nopass ~* &* +@all\n";
  put(admin + "user default on nopass ~* &* +@all\n");
  {
    const auto server = redis_or_skip({"--aclfile", file});
    if (server) {
      struct Case {
        std::string text;
        bool is_bad;
      };
      const std::vector<Case> cases{
          {"user default on nopass ~* &* +@all\n\n  \n# x\nusr a on\nuser\n"
           "user a on +foo +bar >x bogus bogus2\nuser a off\nuser\tb on\n"
           "user c on >a   ~x \"q\"\r\nuser d (~x  +get) +\n",
           true},
          {"user b on (~x +get) (~y -@all) ~k >x\nuser default off\n", false},
          {"user  on +get\nuser b resetpass", false},
          {"", false}};
      for (const auto& [text, is_bad] : cases) {
        Pair pair{*server};
        pair.host.file = file;
        put(admin + text);
        // Theirs closes the connection of admin after a LOAD that succeeds, so another one asks.
        RawClient loader{server->socket_path()};
        REQUIRE(loader.log_in("admin", "x"));
        const std::string loaded = loader.call({"ACL", "LOAD"});
        const std::string mine = pair.ours({"ACL", "LOAD"});
        CHECK((mine == loaded || (loaded.empty() && !is_bad)));
        CHECK(mine.starts_with(is_bad ? "-ERR " : "+OK"));
        Pair after{*server};
        CHECK(pair.ours({"ACL", "LIST"}) == after.theirs({"ACL", "LIST"}));
        REQUIRE(after.theirs({"ACL", "SAVE"}) == pair.ours({"ACL", "SAVE"}));
        CHECK(pair.host.written == pair.host.read_file().value());
      }
    }
  }
  std::filesystem::remove_all(directory);
}

}  // namespace semel::tests

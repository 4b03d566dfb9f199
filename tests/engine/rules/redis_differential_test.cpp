// The truth table against a real redis-server: the same random commands, the same answers.
//
// Words: a *command* is one line for the server and the same thing as a StoreOp; a *form* says how
// the outcome of that op reads as a reply; *near* times are relative to the server's clock and are
// compared with a tolerance, *far* ones are absolute, beyond any near one, and compared exactly.
// A list stands for "another kind": a claim on our side.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

#include "engine/rules/numbers.hpp"
#include "engine/rules/string_rules.hpp"
#include "semel/store.hpp"
#include "tests/support/emulated.hpp"
#include "tests/support/record_map.hpp"
#include "tests/support/redis_server.hpp"
#include "tests/support/resp_client.hpp"

namespace semel::tests {
namespace {

constexpr std::int64_t far_unix_ms = 4'000'000'000'000;  // the year 2096
constexpr std::int64_t tolerance_ms = 120'000;
constexpr std::int64_t near_step_ms = 1'000'000;  // two near times never come close
constexpr std::size_t value_bytes_max = 1024 * 1024;

enum class Form { stored, value, text, number, applied, found, type, due_ms, due_s, has_ttl };

struct Command {
  std::vector<std::string> words;
  Form form = Form::value;
  Verb verb = Verb::get;
  Condition condition = Condition::always;
  bool get = false;
  ExpireRule rule{};
  Expiry expiry{};
  std::string key{};
  std::string value{};
  std::int64_t amount = 0;
  std::int64_t end = -1;
  long double by_float = 0;

  [[nodiscard]] std::string show() const {
    std::string line;
    for (const std::string& word : words) line.append(printable(word)).append(" ");
    return line;
  }
};

class Generator {
 public:
  Generator(std::uint64_t seed, std::int64_t unix_now) : random_(seed), unix_now_(unix_now) {}

  Command next() {
    Command command;
    command.key = "k" + std::to_string(below(key_count));
    switch (below(14)) {
      case 0:
      case 1:
      case 2:
        make_set(command);
        break;
      case 3:
        make_set_relative(command);
        break;
      case 4:
      case 5:
        make_read(command);
        break;
      case 6:
        make_getex(command);
        break;
      case 7:
      case 8:
        make_counter(command);
        break;
      case 9:
        // arm64's long double has 113 bits, that of a server on the machine's own x86 has 64.
        if (is_emulated) {
          make_counter(command);
        } else {
          make_float(command);
        }
        break;
      case 10:
        make_range(command);
        break;
      case 11:
      case 12:
        make_expire(command);
        break;
      default:
        make_key(command);
    }
    return command;
  }

  [[nodiscard]] std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  [[nodiscard]] bool chance(unsigned percent) { return below(100) < percent; }
  template <class List>
  [[nodiscard]] auto& pick(List& list) {
    return list[below(std::size(list))];
  }

  static constexpr std::uint64_t key_count = 5;

 private:
  std::string value() {
    static const std::string fixed[] = {"",
                                        "0",
                                        "10",
                                        "-5",
                                        "007",
                                        " 1",
                                        "1 ",
                                        "+1",
                                        "-0",
                                        "-",
                                        "9223372036854775807",
                                        "9223372036854775808",
                                        "-9223372036854775808",
                                        "-9223372036854775809",
                                        "99999999999999999999999",
                                        "abc",
                                        "3.14",
                                        "1e5",
                                        "inf",
                                        "-infinity",
                                        "nan",
                                        "0x1A",
                                        "0x1p-3",
                                        "1e4931",
                                        "1e5000",
                                        "1e-5000",
                                        "1e-4940",
                                        ".5",
                                        "5.",
                                        "1e",
                                        "\tx",
                                        "\v1",
                                        "0.1",
                                        "-0.00000000000000000001"};
    switch (below(4)) {
      case 0:
        return std::to_string(static_cast<std::int64_t>(below(2000)) - 1000);
      case 1: {  // something like a number
        static constexpr char letters[] = "0123456789012345+-.eExXinfa ";
        std::string text;
        for (std::uint64_t i = below(9); i > 0; --i) text += letters[below(sizeof(letters) - 1)];
        return text;
      }
      case 2: {  // any bytes
        std::string text;
        for (std::uint64_t i = below(40); i > 0; --i) text += static_cast<char>(below(256));
        return text;
      }
      default:
        return pick(fixed);
    }
  }

  std::int64_t integer() {
    using Limits = std::numeric_limits<std::int64_t>;
    static constexpr std::int64_t edges[] = {
        Limits::min(), Limits::min() + 1, Limits::max(), Limits::max() - 1, -1, 0, 1};
    return chance(30) ? pick(edges) : static_cast<std::int64_t>(below(80)) - 40;
  }

  /// A ttl that was not used before, so that no two near ends are closer than a step.
  std::int64_t near_ttl_ms() {
    const std::int64_t order = static_cast<std::int64_t>((near_count_++ * 7919) % 100'003);
    return (order + 1) * near_step_ms;
  }
  std::int64_t far_ms() { return far_unix_ms + static_cast<std::int64_t>(below(8)) * 1000; }

  /// EX, PX, EXAT, PXAT, or nothing; also an end that has passed and a ttl that is none.
  void add_expiry(Command& command) {
    std::int64_t ms = 0;
    switch (below(8)) {
      case 0:
        ms = near_ttl_ms();
        command.words.insert(command.words.end(), {"PX", std::to_string(ms)});
        command.expiry = Expiry::in(Millis{ms});
        break;
      case 1:
        ms = near_ttl_ms();
        command.words.insert(command.words.end(), {"EX", std::to_string(ms / 1000)});
        command.expiry = Expiry::in(Millis{ms});
        break;
      case 2:
        ms = far_ms();
        command.words.insert(command.words.end(), {"EXAT", std::to_string(ms / 1000)});
        command.expiry = at(ms);
        break;
      case 3:
        ms = far_ms() + static_cast<std::int64_t>(below(1000));
        command.words.insert(command.words.end(), {"PXAT", std::to_string(ms)});
        command.expiry = at(ms);
        break;
      case 4:
        ms = 1 + static_cast<std::int64_t>(below(1'000'000));
        command.words.insert(command.words.end(), {"PXAT", std::to_string(ms)});
        command.expiry = at(ms);
        break;
      case 5:
        ms = -static_cast<std::int64_t>(below(2));
        command.words.insert(command.words.end(), {"EX", std::to_string(ms)});
        command.expiry = Expiry::in(Millis{ms * 1000});
        break;
      default:
        break;
    }
  }
  static Expiry at(std::int64_t unix_ms) { return Expiry::at(Timestamp{Millis{unix_ms}}); }

  void make_set(Command& command) {
    command.verb = Verb::set;
    command.form = Form::stored;
    command.value = value();
    command.words = {"SET", command.key, command.value};
    if (chance(30)) {
      command.words.push_back("GET");
      command.get = true;
      command.form = Form::value;
    }
    if (chance(50)) {
      const bool absent = chance(50);
      command.words.push_back(absent ? "NX" : "XX");
      command.condition = absent ? Condition::if_absent : Condition::if_present;
    }
    if (chance(15)) {
      command.words.push_back("KEEPTTL");
      command.expiry = Expiry::keep();
    } else {
      add_expiry(command);
    }
  }

  /// The older names of set.
  void make_set_relative(Command& command) {
    command.verb = Verb::set;
    command.form = Form::stored;
    command.value = value();
    const std::int64_t ms = chance(20) ? 0 : near_ttl_ms();
    switch (below(4)) {
      case 0:
        command.words = {"SETNX", command.key, command.value};
        command.condition = Condition::if_absent;
        command.form = Form::applied;
        break;
      case 1:
        command.words = {"GETSET", command.key, command.value};
        command.get = true;
        command.form = Form::value;
        break;
      case 2:
        command.words = {"SETEX", command.key, std::to_string(ms / 1000), command.value};
        command.expiry = Expiry::in(Millis{ms});
        break;
      default:
        command.words = {"PSETEX", command.key, std::to_string(ms), command.value};
        command.expiry = Expiry::in(Millis{ms});
    }
  }

  void make_read(Command& command) {
    struct Read {
      const char* name;
      Verb verb;
      Form form;
    };
    static constexpr Read reads[] = {{"GET", Verb::get, Form::value},
                                     {"EXISTS", Verb::exists, Form::found},
                                     {"TYPE", Verb::type, Form::type},
                                     {"STRLEN", Verb::strlen, Form::number},
                                     {"PEXPIRETIME", Verb::expire_time, Form::due_ms},
                                     {"EXPIRETIME", Verb::expire_time, Form::due_s},
                                     {"PTTL", Verb::expire_time, Form::has_ttl},
                                     {"TTL", Verb::expire_time, Form::has_ttl}};
    const Read& read = pick(reads);
    command.verb = read.verb;
    command.form = read.form;
    command.words = {read.name, command.key};
  }

  void make_getex(Command& command) {
    command.verb = Verb::getex;
    command.words = {"GETEX", command.key};
    command.expiry = Expiry::keep();
    if (chance(30)) {
      command.words.push_back("PERSIST");
      command.expiry = Expiry::clear();
    } else {
      add_expiry(command);
    }
  }

  void make_counter(Command& command) {
    command.form = Form::number;
    command.amount = chance(40) ? 1 : integer();
    command.verb = chance(50) ? Verb::incr_by : Verb::decr_by;
    const bool up = command.verb == Verb::incr_by;
    if (command.amount == 1 && chance(50)) {
      command.words = {up ? "INCR" : "DECR", command.key};
    } else {
      command.words = {up ? "INCRBY" : "DECRBY", command.key, std::to_string(command.amount)};
    }
  }

  void make_float(Command& command) {
    command.verb = Verb::incr_by_float;
    command.form = Form::value;
    do {
      command.value = value();
    } while (!engine::parse_float(command.value, command.by_float));
    command.words = {"INCRBYFLOAT", command.key, command.value};
    command.value.clear();
  }

  void make_range(Command& command) {
    command.amount = integer();
    switch (below(3)) {
      case 0:
        command.verb = Verb::getrange;
        command.form = Form::text;
        command.end = integer();
        command.words = {chance(50) ? "GETRANGE" : "SUBSTR", command.key,
                         std::to_string(command.amount), std::to_string(command.end)};
        break;
      case 1:
        command.verb = Verb::setrange;
        command.form = Form::number;
        command.value = value();
        command.words = {"SETRANGE", command.key, std::to_string(command.amount), command.value};
        break;
      default:
        command.verb = Verb::append;
        command.form = Form::number;
        command.value = value();
        command.words = {"APPEND", command.key, command.value};
    }
  }

  void make_expire(Command& command) {
    command.verb = Verb::expire;
    command.form = Form::applied;
    const std::int64_t near = chance(10) ? -1000 : near_ttl_ms();
    const std::int64_t far = chance(10) ? 1000 : far_ms();
    switch (below(4)) {
      case 0:
        command.words = {"EXPIRE", command.key, std::to_string(near / 1000)};
        command.expiry = near > 0 ? Expiry::in(Millis{near}) : at(unix_now_ + near);
        break;
      case 1:
        command.words = {"PEXPIRE", command.key, std::to_string(near)};
        command.expiry = near > 0 ? Expiry::in(Millis{near}) : at(unix_now_ + near);
        break;
      case 2:
        command.words = {"EXPIREAT", command.key, std::to_string(far / 1000)};
        command.expiry = at(far);
        break;
      default:
        command.words = {"PEXPIREAT", command.key, std::to_string(far)};
        command.expiry = at(far);
    }
    const auto flag = [&](unsigned percent, const char* word, bool& field) {
      field = chance(percent);
      if (field) command.words.emplace_back(word);
    };
    flag(15, "NX", command.rule.only_without_ttl);
    flag(15, "XX", command.rule.only_with_ttl);
    flag(15, "GT", command.rule.only_later);
    flag(15, "LT", command.rule.only_earlier);
  }

  void make_key(Command& command) {
    switch (below(4)) {
      case 0:
        command.verb = Verb::del;
        command.form = Form::applied;
        command.words = {chance(50) ? "DEL" : "UNLINK", command.key};
        break;
      case 1:
        command.verb = Verb::getdel;
        command.words = {"GETDEL", command.key};
        break;
      default:
        command.verb = Verb::persist;
        command.form = Form::applied;
        command.words = {"PERSIST", command.key};
    }
  }

  std::mt19937_64 random_;
  std::int64_t unix_now_;
  std::uint64_t near_count_ = 0;
};

std::string integer_reply(std::int64_t value) {
  return ':' + std::to_string(value);
}

std::string error_reply(const Command& command, ErrorCode code) {
  std::string prefix = '-' + std::string{resp_prefix_of(code)} + ' ';
  if (code == ErrorCode::invalid_expire) {
    std::string name = command.words[0];
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return prefix.append(sentence_of(code)).append(" in '").append(name).append("' command");
  }
  if (code == ErrorCode::value_too_long) {
    return prefix.append("string exceeds maximum allowed size (proto-max-bulk-len)");
  }
  if (code == ErrorCode::syntax) {  // only EXPIRE's flags get here
    return prefix.append(command.rule.only_without_ttl
                             ? "NX and XX, GT or LT options at the same time are not compatible"
                             : "GT and LT options at the same time are not compatible");
  }
  return prefix.append(sentence_of(code));
}

std::string due_reply(const StoreOutcome& outcome, Form form) {
  if (!outcome.found) return integer_reply(-2);
  if (outcome.due == no_end) return integer_reply(-1);
  const std::int64_t ms = outcome.due.time_since_epoch().count();
  return integer_reply(form == Form::due_ms ? ms : (ms + 500) / 1000);
}

std::string expected_reply(const Command& command, const StoreOutcome& outcome) {
  if (outcome.error != ErrorCode::ok) return error_reply(command, outcome.error);
  switch (command.form) {
    case Form::stored:
      return outcome.applied ? "+OK" : "nil";
    case Form::value:
      return outcome.has_value ? printable(outcome.value) : "nil";
    case Form::text:
      return printable(outcome.value);
    case Form::number:
      return integer_reply(outcome.number);
    case Form::applied:
      return integer_reply(outcome.applied ? 1 : 0);
    case Form::found:
      return integer_reply(outcome.found ? 1 : 0);
    case Form::type:
      if (!outcome.found) return "+none";
      return outcome.kind == Kind::string ? "+string" : "+list";
    case Form::due_ms:
    case Form::due_s:
    case Form::has_ttl:
      return due_reply(outcome, command.form);
  }
  return "no form";
}

/// Near ends differ by the time the commands took; so does what remains of any ttl.
bool agrees(const Command& command, const StoreOutcome& outcome, const RespValue& reply,
            const std::string& expected) {
  const bool is_time = command.form >= Form::due_ms && outcome.found && outcome.due != no_end;
  if (!is_time) return reply.show() == expected;
  if (reply.type != RespValue::Type::integer) return false;
  const std::int64_t got = std::atoll(reply.text.c_str());
  if (command.form == Form::has_ttl) return got > 0;
  const std::int64_t due_ms = outcome.due.time_since_epoch().count();
  if (due_ms >= far_unix_ms) return reply.show() == expected;
  const std::int64_t got_ms = command.form == Form::due_ms ? got : got * 1000;
  return std::llabs(got_ms - due_ms) <= tolerance_ms;
}

std::int64_t unix_ms_of(RespClient& client) {
  const RespValue time = client.call({"TIME"});
  if (time.items.size() != 2) return 0;
  return std::atoll(time.items[0].text.c_str()) * 1000 +
         std::atoll(time.items[1].text.c_str()) / 1000;
}

/// Null, with a warning that shows in the report: no redis-server here.
std::unique_ptr<RedisServer> start_or_skip() {
  std::unique_ptr<RedisServer> server = RedisServer::start({"--proto-max-bulk-len", "1mb"});
  if (server == nullptr) WARN("SKIPPED: no redis-server in PATH, nothing was compared");
  return server;
}

/// The same key as another kind on both sides.
void make_other_kind(RespClient& client, RecordMap& map, const std::string& key) {
  static_cast<void>(client.call({"DEL", key}));
  REQUIRE(client.call({"RPUSH", key, "x"}).show() == ":1");
  map.put(key, {.kind = Kind::claim, .value = "opaque", .due = no_end, .version = 0});
}

/// Values and ends of both sides, key by key.
void compare_all(RespClient& client, RecordMap& map, Timestamp now) {
  for (std::uint64_t i = 0; i < Generator::key_count; ++i) {
    Command get{.words = {"GET", "k" + std::to_string(i)}, .key = "k" + std::to_string(i)};
    Command due{.words = {"PEXPIRETIME", get.key},
                .form = Form::due_ms,
                .verb = Verb::expire_time,
                .key = get.key};
    for (const Command& command : {get, due}) {
      const StoreOutcome outcome = map.apply({.verb = command.verb, .key = command.key}, now);
      const RespValue reply = client.call(command.words);
      const std::string expected = expected_reply(command, outcome);
      INFO(command.show() << "expected " << expected << ", redis " << reply.show());
      REQUIRE(agrees(command, outcome, reply, expected));
    }
  }
}

}  // namespace

TEST_CASE("random commands are answered as redis-server answers them", "[engine][store][redis]") {
  const auto server = start_or_skip();
  if (server == nullptr) return;
  RespClient client{server->socket_path()};

  const std::uint64_t seed = Catch::rngSeed();
  const std::int64_t unix_now = unix_ms_of(client);
  const Timestamp now{Millis{unix_now}};
  Generator generator{seed, unix_now};
  RecordMap map{value_bytes_max};

  constexpr int command_count = 40'000;
  std::string before[3];
  for (int i = 0; i < command_count; ++i) {
    if (generator.below(40) == 0) {
      make_other_kind(client, map, "k" + std::to_string(generator.below(Generator::key_count)));
    }
    const Command command = generator.next();
    Arithmetic arithmetic;
    arithmetic.by_float = command.by_float;
    const StoreOutcome outcome = map.apply({.verb = command.verb,
                                            .condition = command.condition,
                                            .get = command.get,
                                            .rule = command.rule,
                                            .expiry = command.expiry,
                                            .key = command.key,
                                            .value = command.value,
                                            .amount = command.amount,
                                            .end = command.end,
                                            .arithmetic = &arithmetic},
                                           now);
    const RespValue reply = client.call(command.words);
    const std::string expected = expected_reply(command, outcome);
    if (!agrees(command, outcome, reply, expected)) {
      for (const std::string& line : before) UNSCOPED_INFO("before: " << line);
      FAIL("seed " << seed << ", command " << i << ": " << command.show() << "\nexpected "
                   << expected << "\nredis    " << reply.show());
    }
    before[i % 3] = command.show() + " -> " + expected;
    if (i % 1000 == 0) compare_all(client, map, now);
  }
  compare_all(client, map, now);
}

TEST_CASE("the longest value is the same as redis-server's", "[engine][store][redis]") {
  const auto server = start_or_skip();
  if (server == nullptr) return;
  RespClient client{server->socket_path()};
  RecordMap map{value_bytes_max};
  const Timestamp now{Millis{unix_ms_of(client)}};
  const auto last = static_cast<std::int64_t>(value_bytes_max) - 1;

  const auto compare = [&](const Command& command) {
    const StoreOutcome outcome = map.apply({.verb = command.verb,
                                            .key = command.key,
                                            .value = command.value,
                                            .amount = command.amount},
                                           now);
    CHECK(client.call(command.words).show() == expected_reply(command, outcome));
    return outcome.error;
  };
  const auto setrange = [&](std::int64_t offset) {
    return compare({.words = {"SETRANGE", "k", std::to_string(offset), "x"},
                    .form = Form::number,
                    .verb = Verb::setrange,
                    .key = "k",
                    .value = "x",
                    .amount = offset});
  };
  CHECK(setrange(last + 1) == ErrorCode::value_too_long);
  CHECK(setrange(std::numeric_limits<std::int64_t>::max()) == ErrorCode::value_too_long);
  CHECK(setrange(last) == ErrorCode::ok);
  const Command append{.words = {"APPEND", "k", "y"},
                       .form = Form::number,
                       .verb = Verb::append,
                       .key = "k",
                       .value = "y"};
  CHECK(compare(append) == ErrorCode::value_too_long);
}

TEST_CASE("globs match as redis-server's KEYS", "[engine][store][redis][glob]") {
  const auto server = start_or_skip();
  if (server == nullptr) return;
  RespClient client{server->socket_path()};
  std::mt19937_64 random{Catch::rngSeed()};
  const auto word = [&](std::string_view letters, std::uint64_t length_max) {
    std::string text;
    for (std::uint64_t i = random() % (length_max + 1); i > 0; --i) {
      text += letters[random() % letters.size()];
    }
    return text;
  };

  std::vector<std::string> keys{""};
  for (int i = 0; i < 60; ++i) keys.push_back(word("aabbc-]^[\\*?", 6));
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  for (const std::string& key : keys) REQUIRE(client.call({"SET", key, ""}).show() == "+OK");

  for (int i = 0; i < 10'000; ++i) {
    const std::string pattern = word("aabc**?[[]]^-\\", 9);
    if (pattern == "*") continue;  // KEYS answers that without matching
    const RespValue reply = client.call({"KEYS", pattern});
    std::vector<std::string> expected;
    for (const RespValue& item : reply.items) expected.push_back(item.text);
    std::sort(expected.begin(), expected.end());
    std::vector<std::string> matched;
    std::copy_if(keys.begin(), keys.end(), std::back_inserter(matched),
                 [&](const std::string& key) { return glob_match(pattern, key); });
    INFO("pattern " << printable(pattern) << ", seed " << Catch::rngSeed());
    REQUIRE(matched == expected);
  }
}

}  // namespace semel::tests

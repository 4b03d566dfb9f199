// SORT where a dialogue with a redis-server does not look: rights, bounds, elements of sorted sets.
#include "tests/support/catch.hpp"

#include "engine/kinds/element_keys.hpp"
#include "engine/object_api/object_calls.hpp"
#include "engine/types/object_limits.hpp"
#include "net/sets/sort_words.hpp"
#include "semel/memory_journal.hpp"
#include "tests/net/conversation.hpp"

namespace semel::tests {
namespace {

using engine::ObjectEdit;

void add_list(Conversation& node, Bytes key, const std::vector<std::string>& elements) {
  const auto done =
      engine::change_object(*node.engine, {0, key}, Kind::list, [&](ObjectEdit& list) {
        for (const std::string& element : elements) list.insert_at(list.size(), element);
        return ErrorCode::ok;
      });
  REQUIRE(done.ok());
}

void add_sorted(Conversation& node, Bytes key,
                const std::vector<std::pair<double, std::string>>& members) {
  const auto done =
      engine::change_object(*node.engine, {0, key}, Kind::sorted_set, [&](ObjectEdit& set) {
        for (const auto& [score, member] : members) {
          const auto bytes = engine::encode_score(score);
          set.put(std::string{bytes.data(), bytes.size()} + member);
        }
        return ErrorCode::ok;
      });
  REQUIRE(done.ok());
}

std::string line_of(const std::string& reply) {
  std::string_view rest{reply};
  return take_value(rest).value().show();
}

}  // namespace

TEST_CASE("sort: lists, sets and sorted sets", "[net][objects][sort]") {
  Conversation node;
  add_list(node, "l", {"3", "1", "10", "2"});
  add_sorted(node, "z", {{3, "1"}, {1, "20"}, {2, "3"}});
  static_cast<void>(node.call({"SADD", "s", "7", "-1", "x"}));
  const auto sort = [&](const Words& words) { return line_of(node.call(words)); };
  CHECK(sort({"SORT", "l"}) == R"(["1" "2" "3" "10"])");
  CHECK(sort({"SORT", "l", "ALPHA", "DESC"}) == R"(["3" "2" "10" "1"])");
  CHECK(sort({"SORT", "l", "BY", "none", "DESC", "LIMIT", "1", "2"}) == R"(["10" "1"])");
  CHECK(sort({"SORT", "z"}) == R"(["1" "3" "20"])");
  CHECK(sort({"SORT", "z", "BY", "none"}) == R"(["20" "3" "1"])");
  CHECK(sort({"SORT", "z", "BY", "none", "DESC"}) == R"(["1" "3" "20"])");
  CHECK(sort({"SORT", "s", "ALPHA"}) == R"(["-1" "7" "x"])");
  CHECK(sort({"SORT", "s"}) == "-ERR One or more scores can't be converted into double");
}

TEST_CASE("sort: patterns make keys and fields", "[net][objects][sort]") {
  const auto place = [](std::string_view pattern) {
    const auto found = net::sort_place(pattern, "E");
    if (!found) return std::string{"none"};
    return found->key + (found->field ? "|" + std::string{*found->field} : "");
  };
  CHECK(place("a*b") == "aEb");
  CHECK(place("*") == "E");
  CHECK(place("a*b*") == "aEb*");
  CHECK(place("a*->f") == "aE|f");
  CHECK(place("a*b->f->g") == "aEb|f->g");
  CHECK(place("a->b*") == "a->bE");
  CHECK(place("a*->") == "aE->");
  CHECK(place("->*->x") == "->E|x");
  CHECK(place("ab") == "none");
  CHECK(place(Bytes{"a\0*", 3}) == "none");
  CHECK(place(Bytes{"a*\0->f", 6}) == std::string("aE\0->f", 6));
  CHECK(place(Bytes{"a*->\0f", 6}) == std::string("aE->\0f", 6));
}

TEST_CASE("sort: weights are numbers as strtod reads them", "[net][objects][sort]") {
  CHECK(net::sort_number("1e3") == 1000.0);
  CHECK(net::sort_number("0x10") == 16.0);
  CHECK(net::sort_number(" 7") == 7.0);
  CHECK(net::sort_number("") == 0.0);
  CHECK(net::sort_number(Bytes{"1\0x", 3}) == 1.0);
  CHECK(net::sort_number("-inf").has_value());
  for (const char* text : {"x", "1 ", " ", "nan", "1e400", "1e-400", "1,5"}) {
    CHECK_FALSE(net::sort_number(text).has_value());
  }
}

TEST_CASE("sort: texts of weights are limited together", "[net][objects][sort]") {
  Conversation node;
  constexpr std::size_t weight = 1'000'000;
  static_cast<void>(node.call({"SET", "w1", std::string(weight, 'x')}));
  const std::size_t fits = limits::sort_weights_bytes_max / (weight + sizeof(std::size_t));
  add_list(node, "l", std::vector<std::string>(fits, "1"));
  CHECK(node.call({"SORT", "l", "BY", "w*", "ALPHA", "LIMIT", "0", "1"}) == "*1\r\n$1\r\n1\r\n");
  add_list(node, "l", {"1"});
  CHECK(node.call({"SORT", "l", "BY", "w*", "ALPHA", "LIMIT", "0", "1"})
            .starts_with("-ERR the weights of SORT are limited to 67108864 bytes"));
}

TEST_CASE("sort: a result that is too long is not stored", "[net][objects][sort]") {
  MemoryJournal journal;  // an object that it gets has a limit
  Conversation node{1, &journal};
  static_cast<void>(node.call({"SET", "w1", std::string(600'000, 'x')}));
  add_list(node, "l", {"1", "1"});
  CHECK(node.call({"SORT", "l", "GET", "w*", "STORE", "d"})
            .starts_with("-ERR value exceeds the limit"));
  CHECK(node.call({"EXISTS", "d"}) == ":0\r\n");
  add_list(node, "l", std::vector<std::string>(40, "1"));
  CHECK(node.call({"SORT", "l", "GET", "w*", "STORE", "d"})
            .starts_with("-ERR value exceeds the limit"));
}

TEST_CASE("sort: patterns need the right to read every key", "[net][objects][sort][acl]") {
  Conversation node;
  add_list(node, "l", {"1"});
  const auto with = [&](std::initializer_list<std::string> rules, const Words& words) {
    Words user{"ACL", "SETUSER", "u", "reset", "on", "nopass", "+@all"};
    user.insert(user.end(), rules);
    REQUIRE(node.call(user) == "+OK\r\n");
    REQUIRE(node.call({"AUTH", "u", "x"}) == "+OK\r\n");
    const std::string reply = node.call(words);
    REQUIRE(node.call({"AUTH", "default", ""}) == "+OK\r\n");
    return reply;
  };
  const std::string by = "-ERR BY option of SORT denied due to insufficient ACL permissions.\r\n";
  const std::string get = "-ERR GET option of SORT denied due to insufficient ACL permissions.\r\n";
  const std::string found = "*1\r\n$1\r\n1\r\n";
  CHECK(with({"~l"}, {"SORT", "l"}) == found);
  CHECK(with({"~l"}, {"SORT", "l", "BY", "nosort"}) == found);
  CHECK(with({"~l"}, {"SORT", "l", "BY", "w*"}) == by);
  CHECK(with({"~l"}, {"SORT", "l", "GET", "#"}) == get);
  CHECK(with({"~l"}, {"SORT_RO", "l", "GET", "#"}) == get);
  CHECK(with({"~l"}, {"SORT", "l", "BY", "w*", "FOO"}) == by);
  CHECK(with({"~l"}, {"SORT", "l", "FOO", "BY", "w*"}) == "-ERR syntax error\r\n");
  CHECK(with({"~l"}, {"SORT", "l", "STORE", "d"}).starts_with("-NOPERM "));
  CHECK(with({"%R~*"}, {"SORT", "l", "GET", "#"}) == found);
  CHECK(with({"%R~*"}, {"SORT", "l", "STORE", "d"}).starts_with("-NOPERM "));
  CHECK(with({"%W~*", "%R~l"}, {"SORT", "l", "GET", "#"}) == get);
  CHECK(with({"~l*", "~**"}, {"SORT", "l", "GET", "#"}) == get);
  CHECK(with({"~l", "(+sort ~*)"}, {"SORT", "l", "GET", "#"}) == found);
  CHECK(with({"~l", "(+get ~*)"}, {"SORT", "l", "GET", "#"}) == get);
}

TEST_CASE("sort: COMMAND GETKEYS finds the key and the last destination", "[net][objects][sort]") {
  Conversation node;
  const auto keys = [&](Words words) {
    words.insert(words.begin(), {"COMMAND", "GETKEYS"});
    return line_of(node.call(words));
  };
  CHECK(keys({"SORT", "l"}) == R"(["l"])");
  CHECK(keys({"SORT", "l", "STORE", "d"}) == R"(["l" "d"])");
  CHECK(keys({"SORT", "l", "STORE", "d", "STORE", "e"}) == R"(["l" "e"])");
  CHECK(keys({"SORT", "l", "BY", "STORE", "GET", "STORE", "ALPHA"}) == R"(["l"])");
  CHECK(keys({"SORT", "l", "LIMIT", "STORE", "x", "STORE"}) == R"(["l"])");
  CHECK(keys({"SORT_RO", "l", "STORE", "d"}) == R"(["l"])");
}

}  // namespace semel::tests

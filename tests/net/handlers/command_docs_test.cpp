// The arguments of COMMAND DOCS and the fields of INFO, beside those of a redis-server.
#include <set>
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

#include "net/commands/command_arguments.hpp"
#include "net/commands/command_docs.hpp"
#include "tests/net/conversation.hpp"
#include "tests/support/redis_or_skip.hpp"
#include "tests/support/resp_client.hpp"

namespace semel::tests {
namespace {

/// The element behind `name` in a flat list of names and values. Null: there is none.
const RespValue* value_of(const RespValue& fields, std::string_view name) {
  for (std::size_t i = 0; i + 1 < fields.items.size(); i += 2) {
    if (fields.items[i].text == name) return &fields.items[i + 1];
  }
  return nullptr;
}

/// What a client must know of an argument: "(integer=EX?)". Names are left out.
std::string shape_of(const RespValue& argument) {
  std::string text = "(" + value_of(argument, "type")->text;
  if (const RespValue* token = value_of(argument, "token")) text += "=" + token->text;
  if (const RespValue* flags = value_of(argument, "flags")) {
    for (const RespValue& flag : flags->items) text += " " + flag.text;
  }
  if (const RespValue* parts = value_of(argument, "arguments")) {
    for (const RespValue& part : parts->items) text += shape_of(part);
  }
  return text + ")";
}

/// Of the documentation of one command, in RESP2.
std::string shapes_in(const RespValue& docs) {
  std::string text;
  const RespValue* const arguments = value_of(docs, "arguments");
  if (arguments == nullptr) return text;
  for (const RespValue& argument : arguments->items) text += shape_of(argument);
  return text;
}

std::string shape_of(const net::CommandArgument& argument) {
  std::string text = "(" + std::string{argument.type};
  if (!argument.token.empty()) text += "=" + std::string{argument.token};
  if (argument.is_optional) text += " optional";
  if (argument.is_multiple) text += " multiple";
  for (const net::CommandArgument& part : argument.parts) text += shape_of(part);
  return text + ")";
}

std::string shapes_in(std::string_view words) {
  std::string text;
  for (const auto& argument : net::arguments_of("x", words)) text += shape_of(argument);
  return text;
}

RespValue ask(Conversation& one, const Words& words) {
  const std::string bytes = one.call(words);
  std::string_view rest = bytes;
  return take_value(rest).value_or(RespValue{});
}

/// Documented in another way: by more words (SET), in another form, or not by redis-server.
const std::set<std::string> own_docs{
    "client|kill", "client|list",  "client|tracking", "cluster|keyslot", "command|getkeys",
    "config|get",  "command|list", "debug",           "function|list",   "command|getkeysandflags",
    "psubscribe",  "set",          "geosearch",       "geosearchstore",  "xread",
    "xreadgroup",  "xtrim",        "bitfield_ro",     "module|loadex",   "migrate"};

}  // namespace

TEST_CASE("COMMAND DOCS: arguments are read from the words for people",
          "[net][handlers][once-again-19]") {
  CHECK(shapes_in("") == "");
  CHECK(shapes_in("key value") == "(key)(string)");
  CHECK(shapes_in("key [key ...]") == "(key multiple)");
  CHECK(shapes_in("[key ...]") == "(key optional multiple)");
  CHECK(shapes_in("key value [key value ...]") == "(block multiple(key)(string))");
  CHECK(shapes_in("[NX | XX] [GET]") ==
        "(oneof optional(pure-token=NX)(pure-token=XX))(pure-token=GET optional)");
  CHECK(shapes_in("[EX seconds | KEEPTTL]") == "(oneof optional(integer=EX)(pure-token=KEEPTTL))");
  CHECK(shapes_in("[AUTH username password]") == "(block=AUTH optional(string)(string))");
  CHECK(shapes_in("ON|OFF [COUNT count]") ==
        "(oneof(pure-token=ON)(pure-token=OFF))(integer=COUNT optional)");
  CHECK(shapes_in("host port or NO ONE") ==
        "(oneof(block(string)(integer))(block(pure-token=NO)(pure-token=ONE)))");
  CHECK(shapes_in("KEYS n key [key ...]") == "(block=KEYS(integer)(key multiple))");
}

TEST_CASE("COMMAND DOCS: each command with words has arguments, also inside its container",
          "[net][handlers][once-again-19]") {
  Conversation one;
  for (const net::CommandRow& row : net::all_commands()) {
    const bool has_words = !net::docs_of(row).words.empty();
    const RespValue docs = ask(one, {"COMMAND", "DOCS", std::string{row.name}});
    INFO(row.name);
    REQUIRE(docs.items.size() == 2);
    const bool is_container = value_of(docs.items[1], "subcommands") != nullptr;
    CHECK((shapes_in(docs.items[1]) != "") == (has_words && !is_container));
  }
}

TEST_CASE("COMMAND DOCS: arguments are those of redis-server",
          "[net][handlers][redis][once-again-19]") {
  const auto server = redis_or_skip();
  if (!server) return;
  RespClient client{server->socket_path()};
  Conversation one;
  std::size_t compared = 0;
  for (const net::CommandRow& row : net::all_commands()) {
    const std::string name{row.name};
    const RespValue theirs = client.call({"COMMAND", "DOCS", name});
    if (theirs.items.size() != 2 || own_docs.contains(name)) continue;
    if (value_of(theirs.items[1], "subcommands") != nullptr) continue;
    const RespValue ours = ask(one, {"COMMAND", "DOCS", name});
    REQUIRE(ours.items.size() == 2);
    INFO(name);
    CHECK(shapes_in(ours.items[1]) == shapes_in(theirs.items[1]));
    ++compared;
  }
  CHECK(compared > 150);
}

TEST_CASE("INFO: each field of redis-server is there", "[net][handlers][redis][once-again-19]") {
  const auto server = redis_or_skip();
  if (!server) return;
  RespClient client{server->socket_path()};
  const std::string theirs = client.call({"INFO", "everything"}).text;
  Conversation one;
  const std::string ours = "\n" + one.call({"INFO", "everything"});
  std::size_t compared = 0;
  for (std::size_t at = 0; at < theirs.size();) {
    const std::size_t end = std::min(theirs.find('\n', at), theirs.size());
    const std::string line = theirs.substr(at, end - at);
    at = end + 1;
    const std::size_t colon = line.find(':');
    const bool is_of_calls =
        line.starts_with("cmdstat_") || line.starts_with("latency_percentiles");
    if (colon == std::string::npos || is_of_calls) continue;
    INFO(line);
    CHECK(ours.find("\n" + line.substr(0, colon + 1)) != std::string::npos);
    ++compared;
  }
  CHECK(compared > 130);
}

}  // namespace semel::tests

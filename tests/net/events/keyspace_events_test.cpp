// Keyspace events: those of every command, in their order, and those of ends.
//
// Words: a *client* is a connection; the *listener* is the one that subscribes to events.
#include <functional>

#include "net/events/keyspace_events.hpp"

#include "tests/support/catch.hpp"

#include "net/resp/text.hpp"
#include "tests/net/dialogue.hpp"

namespace semel::tests {
namespace {

/// The bulks of a message, the last two: where, and what.
std::string as_text(const std::string& value) {
  std::string_view rest{value};
  const std::vector<RespValue> parts = take_value(rest).value().items;
  return parts.at(parts.size() - 2).text + "=" + parts.back().text;
}

/// "event=key event=key", by __keyevent@0__ channels; other databases' with their number.
std::string events_in(const std::string& heard) {
  std::string all;
  for (const std::string& value : values_of(heard)) {
    std::string text = as_text(value);
    if (!text.starts_with("__keyevent@")) continue;
    text.erase(0, std::string_view{"__keyevent@"}.size());
    const std::size_t mark = text.find("__:");
    const std::string db = text.substr(0, mark);
    text.erase(0, mark + 3);
    if (db != "0") text = db + ":" + text;
    all += all.empty() ? text : " " + text;
  }
  return all;
}

}  // namespace

TEST_CASE("events: letters are read and shown as redis-server does it", "[net][events]") {
  LocalNode local;
  net::KeyspaceEvents& events = local.node.events;
  const auto shown = [&](std::string_view letters) {
    CHECK(events.set_flags(letters).ok());
    return events.flags();
  };
  CHECK(events.flags().empty());
  CHECK(shown("KEA") == "AKE");
  CHECK(shown("KEg$lshzxet") == "g$lshzxetKE");
  CHECK(shown("tdxe") == "xetd");
  CHECK(shown("KEg$lshzxetd") == "AKE");
  CHECK(shown("nmEK") == "nKEm");
  CHECK(shown("KAn") == "AnK");  // redis-server 7.0 shows AK, which would not set it again
  CHECK(events.set_flags("Kq").error().detail ==
        "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.");
  CHECK(events.flags() == "AnK");
  CHECK(shown("").empty());
}

TEST_CASE("events: without K and E, or without subscribers, nothing is published",
          "[net][events]") {
  LocalNode local;
  NodeClient client{local.node, local.batch, 1};
  NodeClient listener{local.node, local.batch, 2};
  listener.say("PSUBSCRIBE *");
  CHECK(local.node.events.set_flags("A").ok());
  CHECK_FALSE(local.node.events.wants('$'));
  client.say("SET k 1");
  CHECK(listener.heard().empty());
  CHECK(local.node.events.set_flags("K$").ok());
  CHECK(local.node.events.wants('$'));
  CHECK_FALSE(local.node.events.wants('g'));
  client.say("SET k 1 EX 100");
  const std::string heard = listener.heard();
  CHECK(values_of(heard).size() == 1);
  CHECK(as_text(heard) == "__keyspace@0__:k=set");
}

TEST_CASE("events: commands publish the events of redis-server, in its order", "[net][events]") {
  LocalNode local;
  CHECK(local.node.events.set_flags("KEAnm").ok());
  NodeClient client{local.node, local.batch, 1};
  NodeClient listener{local.node, local.batch, 2};
  listener.say("PSUBSCRIBE __key*");
  const auto events_of = [&](std::string_view line) {
    client.say(line);
    return events_in(listener.heard());
  };
  CHECK(events_of("SET a 1 EX 100") == "new=a set=a expire=a");
  CHECK(events_of("SET a 1 NX").empty());
  CHECK(events_of("SET z 1 XX GET") == "keymiss=z");
  CHECK(events_of("SET a 1 PXAT 1") == "set=a expire=a expired=a");
  CHECK(events_of("EXISTS a b") == "keymiss=a keymiss=b");
  CHECK(events_of("MSET a 1 b 2 a 3") == "new=a set=a new=b set=b set=a");
  CHECK(events_of("DEL a none a b") == "del=a del=b");
  CHECK(events_of("INCRBYFLOAT f 1.5") == "new=f incrbyfloat=f");
  CHECK(events_of("EXPIRE f -1") == "del=f");
  CHECK(events_of("GETEX f EX 0") == "keymiss=f");
  CHECK(events_of("SET a 1") == "new=a set=a");
  CHECK(events_of("COPY a b DB 1") == "1:new=b 1:copy_to=b");
  CHECK(events_of("MOVE a 2") == "2:new=a move_from=a 2:move_to=a");
  CHECK(events_of("RENAME a b").empty());
  client.say("SELECT 2");
  CHECK(events_of("RENAME a b") == "2:new=b 2:rename_from=a 2:rename_to=b");
}

TEST_CASE("events: a pipeline publishes the same events as single commands", "[net][events]") {
  const Words lines{"SET a 1",    "INCR a",   "GET none",  "EXPIRE a 100", "GETEX a PERSIST",
                    "APPEND a x", "GETDEL a", "SETNX a 1", "PERSIST a",    "DEL a"};
  std::string apart;
  std::string together;
  for (const bool batched : {false, true}) {
    LocalNode local;
    CHECK(local.node.events.set_flags("KEAnm").ok());
    NodeClient client{local.node, local.batch, 1};
    NodeClient listener{local.node, local.batch, 2};
    listener.say("PSUBSCRIBE __key*");
    std::string bytes;
    for (const std::string& line : lines) {
      if (batched) {
        bytes += request_bytes(words_in(line));
      } else {
        client.send(line + "\r\n");  // an inline command is carried out by itself
      }
    }
    if (batched) client.send(bytes);
    (batched ? together : apart) = listener.heard();
  }
  CHECK(together == apart);
  CHECK(events_in(together) ==
        "new=a set=a incrby=a keymiss=none expire=a persist=a append=a del=a new=a set=a del=a");
}

TEST_CASE("events: a transaction's come behind it in the order of its changes", "[net][events]") {
  LocalNode local;
  CHECK(local.node.events.set_flags("EA").ok());
  NodeClient client{local.node, local.batch, 1};
  NodeClient listener{local.node, local.batch, 2};
  listener.say("PSUBSCRIBE __key*");
  client.say("HELLO 3");
  client.say("PSUBSCRIBE __keyevent@0__:del");
  client.say("MULTI");
  client.say("SET a 1 EX 10");
  client.say("DEL a");
  client.say("INCR a");
  CHECK(listener.heard().empty());
  CHECK(client.say("EXEC") ==
        "*3\r\n+OK\r\n:1\r\n:1\r\n>4\r\n$8\r\npmessage\r\n$18\r\n__keyevent@0__:del\r\n"
        "$18\r\n__keyevent@0__:del\r\n$1\r\na\r\n");
  CHECK(events_in(listener.heard()) == "set=a expire=a del=a incrby=a");
}

TEST_CASE("events: an end by ttl is published, when it is found and when it is swept",
          "[net][events]") {
  ManualClock clock;
  LocalNode local{{.clock = &clock}};
  CHECK(local.node.events.set_flags("EA").ok());
  NodeClient client{local.node, local.batch, 1};
  NodeClient listener{local.node, local.batch, 2};
  client.say("SET unheard 1 PX 10");
  clock.advance(Millis{20});
  local.engine->advance();
  listener.say("PSUBSCRIBE __key*");
  local.node.events.drain();
  CHECK(listener.heard().empty());

  client.say("SET a 1 PX 10");
  client.say("SET b 1 PX 10");
  clock.advance(Millis{10});
  CHECK(client.say("SET a 2") == "+OK\r\n");
  local.engine->advance();
  local.node.events.drain();
  const std::string heard = events_in(listener.heard());
  CHECK(heard.starts_with("set=a expire=a set=b expire=b "));
  CHECK(heard.find("expired=b") != std::string::npos);
  // The end of the old one is published before the new one.
  CHECK(heard.find("expired=a") < heard.rfind("set=a"));
  CHECK(local.node.events.lost() == 0);

  CHECK(local.node.events.set_flags("Eg").ok());
  client.say("SET c 1 PX 10");
  clock.advance(Millis{20});
  local.engine->advance();
  local.node.events.drain();
  CHECK(events_in(listener.heard()) == "expire=c");
}

TEST_CASE("events: unpublished ends are kept up to a limit, and then counted",
          "[net][events][limits]") {
  ManualClock clock;
  LocalNode local{{.clock = &clock}};
  constexpr std::size_t more = 3;
  CHECK(local.node.events.set_flags("Ex").ok());
  NodeClient listener{local.node, local.batch, 2};
  listener.say("PSUBSCRIBE __key*");
  Store store = local.engine->store();
  for (std::size_t i = 0; i < net::KeyspaceEvents::waiting_max + more; ++i) {
    REQUIRE(store.set(std::to_string(i), "v", {.expiry = Expiry::in(Millis{5})}).ok());
  }
  clock.advance(Millis{10});
  while (local.engine->advance() == 0) {
  }
  CHECK(local.node.events.lost() == more);
  local.node.events.drain();
  CHECK(values_of(listener.heard()).size() == net::KeyspaceEvents::waiting_max);

  constexpr std::size_t key_bytes = 64 * 1024;
  constexpr std::size_t keys_max = net::KeyspaceEvents::waiting_bytes_max / key_bytes;
  for (std::size_t i = 0; i <= keys_max; ++i) {
    std::string key = std::to_string(i);
    key.resize(key_bytes, 'k');
    REQUIRE(store.set(key, "v", {.expiry = Expiry::in(Millis{5})}).ok());
  }
  clock.advance(Millis{10});
  while (local.engine->advance() == 0) {
  }
  CHECK(local.node.events.lost() == more + 1);
  local.node.events.drain();
  CHECK(values_of(listener.heard()).size() == keys_max);
}

}  // namespace semel::tests

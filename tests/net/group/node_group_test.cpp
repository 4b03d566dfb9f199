// Nodes of a group that one process embeds: each has an engine, a node and connections of its own,
// and reaches the others over loopback.
#include "net/group/node_group.hpp"

#include <unistd.h>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/net/claims/claims_fixture.hpp"
#include "tests/replication/node/group.hpp"

namespace semel::tests {
namespace {

using net::Setting;

class EmbeddedNode {
 public:
  EmbeddedNode(unsigned id, const std::string& peers, const std::string& directory) {
    assign(Setting::node_id, std::to_string(id));
    assign(Setting::cluster_id, "5e3e1");
    assign(Setting::peer, peers);
    assign(Setting::dir, directory);
    assign(Setting::cluster_forward, "yes");
    REQUIRE(group_.is_wanted());
    require(group_.check());
    require(group_.prepare());
    Options engine;
    engine.memory_bytes = std::size_t{16} << 20;
    require(group_.open(engine, [](const net::NodeGroup::Event&) {}));
    node_.emplace(group_.engine(), settings_);
    require(group_.start(*node_));
  }
  ~EmbeddedNode() { group_.stop(); }
  EmbeddedNode(const EmbeddedNode&) = delete;
  EmbeddedNode& operator=(const EmbeddedNode&) = delete;

  [[nodiscard]] net::Node& node() { return *node_; }
  [[nodiscard]] net::NodeGroup& group() { return group_; }

 private:
  void assign(Setting setting, const std::string& text) {
    require(settings_.assign(setting, text, {}));
  }
  static void require(const Status& status) {
    INFO((status ? std::string{} : status.error().message()));
    REQUIRE(status);
  }
  net::Settings settings_;
  net::NodeGroup group_{settings_};
  std::optional<net::Node> node_;
};

class EmbeddedGroup {
 public:
  EmbeddedGroup() {
    std::filesystem::create_directories(path_);
    std::string peers;
    for (unsigned id = 1; id <= count; ++id) {
      peers +=
          (id == 1 ? "" : " ") + std::to_string(id) + "=127.0.0.1:" + std::to_string(free_port());
    }
    for (unsigned id = 1; id <= count; ++id) {
      nodes_[id] = std::make_unique<EmbeddedNode>(id, peers, path_ + "/" + std::to_string(id));
    }
  }
  ~EmbeddedGroup() {
    nodes_.clear();
    std::filesystem::remove_all(path_);
  }
  EmbeddedGroup(const EmbeddedGroup&) = delete;
  EmbeddedGroup& operator=(const EmbeddedGroup&) = delete;

  static constexpr unsigned count = 3;
  [[nodiscard]] EmbeddedNode& at(unsigned id) { return *nodes_.at(id); }
  /// With the newest level of features. False: not in time.
  [[nodiscard]] bool wait_ready() {
    return Group::wait_for([&] {
      for (auto& [id, node] : nodes_) {
        if (!node->group().ready()) return false;
        if (!node->node().services().group->lacks_objects().empty()) return false;
      }
      return true;
    });
  }

 private:
  const std::string path_ =
      std::filesystem::temp_directory_path() / ("semel-embedded-" + std::to_string(getpid()));
  std::map<unsigned, std::unique_ptr<EmbeddedNode>> nodes_;
};

/// The reply to a line, however long the group takes.
std::string answer(Client& client, std::string_view line) {
  std::string reply = client.say(line);
  while (reply == "(waits)" || reply == "(nothing)") reply = client.hear_when_woken();
  return reply;
}

}  // namespace

TEST_CASE("embedded group: a claim that one node grants is in flight and then done at the others",
          "[net][group]") {
  EmbeddedGroup group;
  REQUIRE(group.wait_ready());
  Client first{group.at(1).node()};
  Client second{group.at(2).node()};
  Client third{group.at(3).node()};
  CHECK(answer(first, "SEMEL.NAMESPACE DECLARE pay") == "+OK");
  CHECK(answer(first, "SEMEL.CLAIM pay order:7 LEASE 60000").starts_with("outcome granted"));
  CHECK(answer(second, "SEMEL.CLAIM pay order:7").starts_with("outcome in_flight"));
  CHECK(answer(first, "SEMEL.COMPLETE pay order:7 % paid").starts_with("outcome ok"));
  const std::string repeat = answer(third, "SEMEL.CLAIM pay order:7");
  CHECK(repeat.starts_with("outcome replay"));
  CHECK_THAT(repeat, Catch::Contains("paid"));
}

TEST_CASE("embedded group: a string is read at another node as it was written", "[net][group]") {
  EmbeddedGroup group;
  REQUIRE(group.wait_ready());
  Client writer{group.at(1).node()};
  Client reader{group.at(2).node()};
  CHECK(answer(writer, "SET k v") == "+OK");
  CHECK(answer(reader, "GET k") == "v");
}

TEST_CASE("embedded group: a transaction at any node sees that what it watched has changed",
          "[net][group]") {
  EmbeddedGroup group;
  REQUIRE(group.wait_ready());
  for (unsigned id = 1; id <= EmbeddedGroup::count; ++id) {
    CAPTURE(id);
    Client watches{group.at(id).node()};
    Client writes{group.at(id % EmbeddedGroup::count + 1).node()};
    CHECK(answer(writes, "SET stock 1") == "+OK");
    CHECK(answer(watches, "WATCH stock") == "+OK");
    CHECK(answer(writes, "SET stock 7") == "+OK");
    CHECK(answer(watches, "MULTI") == "+OK");
    CHECK(answer(watches, "INCR stock") == "+QUEUED");
    CHECK(answer(watches, "EXEC") == "nil");
    CHECK(answer(watches, "WATCH stock") == "+OK");
    CHECK(answer(watches, "MULTI") == "+OK");
    CHECK(answer(watches, "INCR stock") == "+QUEUED");
    CHECK(answer(watches, "EXEC") == "[8]");
  }
}

TEST_CASE("embedded group: an element pushed at one node serves a client that waits at another",
          "[net][group][lists][waits]") {
  EmbeddedGroup group;
  REQUIRE(group.wait_ready());
  Client pusher{group.at(1).node(), net::Resp::two};
  Client first{group.at(2).node(), net::Resp::two};
  Client second{group.at(2).node(), net::Resp::two};
  // Each parks before the next comes: it has had the log's answer by the time of another one.
  CHECK(first.say("BLPOP q r 0") == "(waits)");
  CHECK(answer(pusher, "PING") == "+PONG");
  CHECK(second.say("BLMOVE q done LEFT RIGHT 0") == "(waits)");
  CHECK(answer(pusher, "RPUSH q one two three").find("3") != std::string::npos);
  const auto told = [](Client& client) {
    std::string reply = "(nothing)";
    while (reply == "(nothing)" || reply == "(waits)") reply = client.hear_when_woken();
    return reply;
  };
  const std::string one = told(first);
  const std::string two = told(second);
  INFO(one << " and " << two);
  CHECK(one.find("q") != std::string::npos);
  const bool in_order =
      one.find("one") != std::string::npos && two.find("two") != std::string::npos;
  const bool crossed = one.find("two") != std::string::npos && two.find("one") != std::string::npos;
  CHECK((in_order || crossed));  // the log may have the two requests in either order
  CHECK(answer(pusher, "LLEN q").find("1") != std::string::npos);
  CHECK(answer(pusher, "LLEN done").find("1") != std::string::npos);
}

TEST_CASE("embedded group: many waits at all nodes get each element once",
          "[net][group][lists][waits]") {
  EmbeddedGroup group;
  REQUIRE(group.wait_ready());
  std::vector<std::unique_ptr<Client>> waiting;
  for (unsigned id = 1; id <= EmbeddedGroup::count; ++id) {
    for (int i = 0; i < 20; ++i) {
      waiting.push_back(std::make_unique<Client>(group.at(id).node(), net::Resp::two));
      REQUIRE(waiting.back()->say("BRPOP q 0") == "(waits)");
    }
  }
  Client pusher{group.at(2).node(), net::Resp::two};
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    static_cast<void>(answer(pusher, "LPUSH q e" + std::to_string(i)));
  }
  std::map<std::string, int> got;
  for (const auto& client : waiting) {
    std::string reply = "(waits)";
    while (reply == "(nothing)" || reply == "(waits)") reply = client->hear_when_woken();
    ++got[reply];
  }
  CHECK(got.size() == waiting.size());
  CHECK(answer(pusher, "EXISTS q") == "0");
}

TEST_CASE("embedded group: a wait ends at its timeout, and what a client that left got comes back",
          "[net][group][lists][waits]") {
  EmbeddedGroup group;
  REQUIRE(group.wait_ready());
  Client waits{group.at(3).node(), net::Resp::two};
  CHECK(answer(waits, "BLPOP none 0.05") == "nil");
  CHECK(answer(waits, "BLMOVE none other LEFT LEFT 0.05") == "nil");
  CHECK(answer(waits, "BLPOP none x") == "-ERR timeout is not a float or out of range");
  REQUIRE(waits.say("BLPOP q 0") == "(waits)");
  Client pusher{group.at(1).node(), net::Resp::two};
  static_cast<void>(answer(pusher, "RPUSH q one"));
  waits.disconnect();  // it may have been answered, and has not read it
  CHECK(Group::wait_for([&] { return answer(pusher, "LLEN q") == "1"; }));
}

TEST_CASE("embedded group: an entry added at one node serves clients that wait at all nodes",
          "[net][group][streams][waits]") {
  EmbeddedGroup group;
  REQUIRE(group.wait_ready());
  Client pusher{group.at(1).node(), net::Resp::two};
  REQUIRE(answer(pusher, "XADD s 1-1 f old") == "1-1");
  REQUIRE(answer(pusher, "XGROUP CREATE s g $") == "+OK");
  std::vector<std::unique_ptr<Client>> readers;
  std::vector<std::unique_ptr<Client>> consumers;
  for (unsigned id = 1; id <= EmbeddedGroup::count; ++id) {
    readers.push_back(std::make_unique<Client>(group.at(id).node(), net::Resp::two));
    REQUIRE(readers.back()->say("XREAD BLOCK 0 STREAMS none s 0 1-1") == "(waits)");
    consumers.push_back(std::make_unique<Client>(group.at(id).node(), net::Resp::two));
    REQUIRE(consumers.back()->say("XREADGROUP GROUP g c" + std::to_string(id) +
                                  " COUNT 1 BLOCK 0 STREAMS s >") == "(waits)");
  }
  const auto told = [](Client& client) {
    std::string reply = "(nothing)";
    while (reply == "(nothing)" || reply == "(waits)") reply = client.hear_when_woken();
    return reply;
  };
  std::map<std::string, int> got;
  for (unsigned id = 1; id <= EmbeddedGroup::count; ++id) {
    REQUIRE(answer(pusher, "XADD s 2-" + std::to_string(id) + " f new") ==
            "2-" + std::to_string(id));
  }
  for (const auto& client : readers) CHECK(told(*client).find("2-1") != std::string::npos);
  for (const auto& client : consumers) ++got[told(*client)];
  CHECK(got.size() == consumers.size());  // each entry went to one of them
  CHECK(answer(pusher, "XPENDING s g").find("3") != std::string::npos);
}

TEST_CASE("embedded group: a wait for the entries that are still to come, and its end",
          "[net][group][streams][waits]") {
  EmbeddedGroup group;
  REQUIRE(group.wait_ready());
  for (unsigned id = 1; id <= EmbeddedGroup::count; ++id) {
    CAPTURE(id);
    const std::string key = "s" + std::to_string(id);
    Client pusher{group.at(1).node(), net::Resp::two};
    Client waits{group.at(id).node(), net::Resp::two};
    REQUIRE(answer(pusher, "XADD " + key + " 1-1 f old") == "1-1");
    CHECK(answer(waits, "XREAD BLOCK 30 STREAMS " + key + " $") == "nil");
    REQUIRE(waits.say("XREAD BLOCK 0 STREAMS " + key + " $") == "(waits)");
    std::string reply = "(nothing)";
    // Those that were added before the node had looked do not count.
    for (int i = 1; reply == "(nothing)" || reply == "(waits)"; ++i) {
      REQUIRE(answer(pusher, "XADD " + key + " 2-" + std::to_string(i) + " f new") ==
              "2-" + std::to_string(i));
      reply = waits.hear();
    }
    CHECK(reply.find("new") != std::string::npos);
    CHECK(reply.find("old") == std::string::npos);

    REQUIRE(answer(pusher, "XGROUP CREATE " + key + " g $") == "+OK");
    const std::string read = "XREADGROUP GROUP g c BLOCK ";
    CHECK(answer(waits, read + "30 STREAMS " + key + " >") == "nil");
    CHECK(answer(waits, read + "x STREAMS " + key + " >") ==
          "-ERR timeout is not an integer or out of range");
    REQUIRE(waits.say(read + "0 STREAMS " + key + " >") == "(waits)");
    REQUIRE(answer(pusher, "XGROUP DESTROY " + key + " g") == "1");
    // It wakes with the next change at the latest.
    REQUIRE(answer(pusher, "XADD " + key + " 3-1 f v") == "3-1");
    reply = "(nothing)";
    while (reply == "(nothing)" || reply == "(waits)") reply = waits.hear_when_woken();
    CHECK(reply.find("NOGROUP") != std::string::npos);
    REQUIRE(waits.say("XREAD BLOCK 0 STREAMS none $") == "(waits)");
    waits.disconnect();
  }
}

TEST_CASE("embedded group: fields of a hash end at all nodes alike", "[net][group][hash]") {
  EmbeddedGroup group;
  REQUIRE(group.wait_ready());
  Client first{group.at(1).node(), net::Resp::two};
  Client second{group.at(2).node(), net::Resp::two};
  CHECK(answer(first, "HSETEX h EX 1000 FIELDS 2 a 1 b 2") == "1");
  CHECK(answer(second, "HTTL h FIELDS 2 a b") == "[1000 | 1000]");
  CHECK(answer(second, "HPERSIST h FIELDS 1 b") == "[1]");
  // Scripts that the nodes do not know: what they leave of a hash is carried whole.
  CHECK(answer(first,
               "EVAL 'redis.call(\"HSET\",KEYS[1],\"c\",\"3\") return "
               "redis.call(\"HEXPIRE\",KEYS[1],500,\"FIELDS\",1,\"b\")[1]' 1 h") == "1");
  CHECK(answer(second, "HTTL h FIELDS 3 a b c") == "[1000 | 500 | -1]");
  CHECK(answer(second, "TTL h") == "-1");
  CHECK(answer(second,
               "EVAL 'redis.call(\"HDEL\",KEYS[1],\"c\") return "
               "#redis.call(\"HPERSIST\",KEYS[1],\"FIELDS\",2,\"a\",\"b\")' 1 h") == "2");
  CHECK(answer(first, "HTTL h FIELDS 3 a b c") == "[-1 | -1 | -2]");
  CHECK(answer(second, "HPEXPIRE h 40 FIELDS 1 a") == "[1]");
  CHECK(Group::wait_for([&] { return answer(first, "HLEN h") == "1"; }));
  CHECK(answer(second, "HGETDEL h FIELDS 2 a b") == "[nil | 2]");
  CHECK(answer(first, "EXISTS h") == "0");
}

TEST_CASE("embedded group: bits and HyperLogLogs are the same bytes at each node",
          "[net][group][bits]") {
  EmbeddedGroup group;
  REQUIRE(group.wait_ready());
  Client first{group.at(1).node()};
  Client second{group.at(2).node()};
  Client third{group.at(3).node()};
  CHECK(answer(first, "SETBIT k 7 1") == "0");
  CHECK(answer(second, "BITFIELD k SET u8 8 97 INCRBY u8 8 1") == "[0 | 98]");
  CHECK(answer(third, "BITOP NOT t k") == "2");
  CHECK(answer(first, "BITCOUNT t") == "12");
  CHECK(answer(second, "GET k") ==
        "\x01"
        "b");
  // What the nodes would make dense is not a matter of the setting of one of them.
  CHECK(answer(second, "CONFIG SET hll-sparse-max-bytes 0") == "+OK");
  for (Client* const node : {&first, &second, &third}) {
    CHECK(answer(*node, "PFADD h a b c") == (node == &first ? "1" : "0"));
    CHECK(answer(*node, "PFCOUNT h") == "3");
    CHECK(answer(*node, "PFMERGE m h") == "+OK");
    CHECK(answer(*node, "STRLEN m") == "27");
  }
  const std::string bytes = answer(first, "GET m");
  CHECK(answer(second, "GET m") == bytes);
  CHECK(answer(third, "GET m") == bytes);
}

}  // namespace semel::tests

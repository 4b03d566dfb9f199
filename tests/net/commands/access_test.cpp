// Users' rights where the table alone does not tell the keys: claims, MSETEX, HELLO.
#include "tests/support/catch.hpp"

#include "semel/local_redis.hpp"
#include "tests/net/conversation.hpp"

namespace semel::tests {
namespace {

/// A client that has logged in as a user with `rules`.
LocalRedis::Client client_with(LocalRedis& redis, std::initializer_list<std::string_view> rules) {
  std::vector<std::string_view> words{"ACL", "SETUSER", "u", "reset", "on", ">secret"};
  words.insert(words.end(), rules);
  REQUIRE(redis.call(words).is_ok());
  LocalRedis::Client client = redis.connect();
  REQUIRE(client.call({"AUTH", "u", "secret"}).is_ok());
  return client;
}

bool is_denied(const Reply& reply) {
  return reply.is_error() && reply.text.starts_with("NOPERM");
}

}  // namespace

TEST_CASE("rights: a claim lies under its namespace and key", "[net][acl]") {
  auto redis = LocalRedis::open().value();
  auto client = client_with(*redis, {"+@all", "~jobs:mine*"});
  CHECK_FALSE(client.call({"SEMEL.CLAIM", "jobs", "mine1"}).is_error());
  CHECK(is_denied(client.call({"SEMEL.CLAIM", "jobs", "other"})));
  CHECK(is_denied(client.call({"SEMEL.CLAIM", "mine", "mine"})));
  CHECK(is_denied(client.call({"SEMEL.CLAIMS", "jobs", "KEYS", "2", "mine2", "other"})));
  CHECK(is_denied(client.call({"SEMEL.COMPLETES", "jobs", "1", "other", "5", "r"})));
  CHECK(is_denied(client.call({"SEMEL.WAIT", "0", "jobs", "other"})));
  CHECK(is_denied(client.call({"SEMEL.GETCLAIM", "jobs", "other"})));
  CHECK_FALSE(client.call({"SEMEL.GETCLAIM", "jobs", "mine1"}).is_error());
  CHECK(is_denied(client.call({"MSETEX", "2", "jobs:mine3", "v", "else", "v"})));
  CHECK(redis->call({"EXISTS", "jobs:mine2", "jobs:mine3", "else"}).integer == 0);
}

TEST_CASE("rights: a user that may only read cannot claim, and may look", "[net][acl]") {
  auto redis = LocalRedis::open().value();
  REQUIRE_FALSE(redis->call({"SEMEL.CLAIM", "jobs", "a"}).is_error());
  auto client = client_with(*redis, {"+@all", "%R~jobs:*"});
  CHECK(is_denied(client.call({"SEMEL.CLAIM", "jobs", "a"})));
  CHECK(is_denied(client.call({"SEMEL.FORGET", "jobs", "a"})));
  CHECK_FALSE(client.call({"SEMEL.GETCLAIM", "jobs", "a"}).is_error());
}

TEST_CASE("rights: pipelined commands are judged like others", "[net][acl]") {
  auto redis = LocalRedis::open().value();
  auto client = client_with(*redis, {"-@all", "+get", "+set", "~a*"});
  const std::vector<std::vector<std::string>> commands = {
      {"SET", "a1", "v"}, {"SET", "b", "v"}, {"GET", "a1"}, {"INCR", "a2"}, {"GET", "b"}};
  const auto replies = client.pipeline(commands);
  REQUIRE(replies.size() == 5);
  CHECK(replies[0].is_ok());
  CHECK(is_denied(replies[1]));
  CHECK(replies[2].text == "v");
  CHECK(is_denied(replies[3]));
  CHECK(is_denied(replies[4]));
}

TEST_CASE("rights: whose user is deleted is closed at once, also while it waits", "[net][acl]") {
  Conversation f{4};
  for (const char* name : {"idle", "waiting"}) {
    f.call({"ACL", "SETUSER", name, "on", ">p", "+@all", "~*", "&*"});
  }
  CHECK(f.call({"AUTH", "idle", "p"}, 1) == "+OK\r\n");
  CHECK(f.call({"AUTH", "waiting", "p"}, 2) == "+OK\r\n");
  CHECK(f.call({"SEMEL.CLAIM", "jobs", "k"}).starts_with("*"));
  CHECK(f.call({"SEMEL.WAIT", "0", "jobs", "k"}, 2).empty());
  CHECK(f.call({"ACL", "DELUSER", "idle", "waiting"}) == ":2\r\n");
  for (const std::size_t client : {0U, 1U, 2U, 3U}) {
    f.collect(client);
    INFO(client);
    CHECK(f.connections[client]->closes() == (client == 1 || client == 2));
  }
}

TEST_CASE("rights: a user that deletes itself gets a reply, and nothing after that is run",
          "[net][acl]") {
  Conversation f;
  f.call({"ACL", "SETUSER", "me", "on", ">p", "+@all", "~*"});
  CHECK(f.call({"AUTH", "me", "p"}) == "+OK\r\n");
  std::string reply;
  f.connections[0]->receive(request_bytes({"ACL", "DELUSER", "me"}) + request_bytes({"PING"}),
                            reply);
  CHECK(reply == ":1\r\n");
  CHECK(f.connections[0]->closes());
}

TEST_CASE("rights: a subscriber that may not hear its channels any more is closed at once",
          "[net][acl]") {
  Conversation f{6};
  const auto change = [&](const Words& rules) {
    Words words{"ACL", "SETUSER", "u"};
    words.insert(words.end(), rules.begin(), rules.end());
    REQUIRE(f.call(words) == "+OK\r\n");
  };
  change({"on", ">p", "+@all", "~*", "resetchannels", "&a", "&b*", "(+@all &c)"});
  for (std::size_t client = 1; client < 6; ++client) f.call({"AUTH", "u", "p"}, client);
  CHECK(f.call({"SUBSCRIBE", "a"}, 1).starts_with("*3"));
  CHECK(f.call({"PSUBSCRIBE", "b*"}, 2).starts_with("*3"));
  CHECK(f.call({"SSUBSCRIBE", "b1"}, 3).starts_with("*3"));
  CHECK(f.call({"SUBSCRIBE", "c"}, 4).starts_with("*3"));
  const auto closed = [&] {
    std::string who;
    for (std::size_t client = 0; client < 6; ++client) {
      f.collect(client);
      if (f.connections[client]->closes()) who += std::to_string(client);
    }
    return who;
  };
  change({"&d"});
  CHECK(closed().empty());
  change({"-@all"});  // what it may call is another matter
  CHECK(closed().empty());
  change({"resetchannels", "&b1", "&a"});
  CHECK(closed() == "2");  // the very pattern must be allowed
  change({"clearselectors"});
  CHECK(closed() == "24");
  change({"resetchannels"});
  CHECK(closed() == "1234");  // 5 listens to nothing
}

TEST_CASE("login: before it nothing but logging in is answered", "[net][acl]") {
  auto redis = LocalRedis::open().value();
  REQUIRE(redis->call({"CONFIG", "SET", "requirepass", "secret"}).is_ok());
  auto client = redis->connect();
  for (const std::string_view name : {"GET", "MULTI", "CONFIG", "SEMEL.CLAIM", "PING"}) {
    const Reply refused = client.call({name, "k"});
    REQUIRE(refused.is_error());
  }
  CHECK(client.call({"PING"}).text == "NOAUTH Authentication required.");
  CHECK(client.call({"HELLO", "3"}).text.starts_with("NOAUTH HELLO must be called with"));
  CHECK(client.call({"HELLO", "3", "AUTH", "default", "wrong"}).text.starts_with("WRONGPASS"));
  CHECK(client.talk("*11\r\n") == "-ERR Protocol error: unauthenticated multibulk length\r\n");

  auto other = redis->connect();
  CHECK(other.call({"HELLO", "3", "AUTH", "default", "secret", "SETNAME", "me"}).type ==
        Reply::Type::map);
  CHECK(other.call({"ACL", "WHOAMI"}).text == "default");
  CHECK(other.call({"CLIENT", "GETNAME"}).text == "me");
  CHECK(other.call({"RESET"}).text == "RESET");
  CHECK(other.call({"PING"}).text == "NOAUTH Authentication required.");
}

}  // namespace semel::tests

// The settings of a gateway, read from TOML.
#include "gateway/config/policy_file.hpp"

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "gateway/rules/outcome.hpp"
#include "tests/support/catch.hpp"

namespace {

using semel::Millis;
using semel::gateway::Guard;
using semel::gateway::Meaning;
using semel::gateway::Route;
using semel::gateway::Settings;

std::vector<std::string> errors_of(const std::string& content) {
  Settings settings;
  return read_policies(content, "f", settings);
}

std::string route(const std::string& lines) {
  return "[[route]]\nname = \"a\"\npath = \"/a\"\n" + lines + "\n";
}

constexpr char whole_file[] = R"(
[gateway]
listen = ":8443"
upstream = "http://127.0.0.1:8080"
durability = "logged"
memory = "64mb"
head-timeout = "5s"
default = "refuse"

[[route]]
name = "pay"
methods = ["POST"]
path = "/pay/**"
guard = "idempotency-key"
scope = ["header:X-Tenant", "authorization"]
fingerprint = ["method", "json", "header:X-Currency"]
on-5xx = "keep"
on-timeout = "release"
release-statuses = [503]
keep = "2h"
wait = "3s"
record-bytes = "64kb"

[[key]]
id = "k1"
secret = "0123456789abcdef"
)";

}  // namespace

TEST_CASE("policies: a whole file is read", "[gateway][policy]") {
  Settings settings;
  const auto errors = read_policies(whole_file, "f", settings);
  INFO((errors.empty() ? "" : errors.front()));
  REQUIRE(errors.empty());
  CHECK(settings.listen == ":8443");
  CHECK(settings.durability == semel::Durability::logged);
  CHECK(settings.memory_bytes == std::size_t{64} << 20);
  CHECK(settings.head_timeout == Millis{5'000});
  CHECK(settings.default_guard == Guard::refuse);
  REQUIRE(settings.routes.size() == 1);
  const Route& pay = settings.routes[0];
  CHECK(pay.guard == Guard::idempotency_key);
  CHECK(pay.scope.authorization);
  CHECK(pay.scope.headers == std::vector<std::string>{"X-Tenant"});
  CHECK(pay.fingerprint.json);
  CHECK_FALSE(pay.fingerprint.body);
  CHECK_FALSE(pay.fingerprint.path);
  CHECK(pay.on_5xx == Meaning::keep);
  CHECK(pay.on_timeout == Meaning::release);
  CHECK(pay.on_broken == Meaning::in_doubt);
  CHECK(pay.release_statuses == std::vector<unsigned>{503});
  CHECK(pay.keep_for == Millis{7'200'000});
  CHECK(pay.record_bytes == std::size_t{64} * 1024);
  CHECK(settings.keys.at(0).id == "k1");
  CHECK(check_settings(settings).ok());
}

TEST_CASE("policies: each mistake is one line with its place", "[gateway][policy]") {
  const std::string wrong[] = {"[gateway]\nlisten = 1\n",
                               "[gateway]\nlistne = \":1\"\n",
                               "[gateway]\nthreads = 65\n",
                               "[gateway]\nhead-timeout = \"x\"\n",
                               "[gateway]\ndurability = \"quorum\"\n",
                               "[gateway]\nmemory = \"1mb\"\n",
                               "gateway = 1\n",
                               "[other]\n",
                               "route = 1\n",
                               route("guard = \"none\""),
                               route("methods = \"POST\""),
                               route("methods = [1]"),
                               route("scope = [\"tenant\"]"),
                               route("scope = [\"header:\"]"),
                               route("fingerprint = [\"all\"]"),
                               route("on-timeout = \"keep\""),
                               route("release-statuses = [199]"),
                               route("release-statuses = 503"),
                               route("record-bytes = 16777217"),
                               route("lease = \"10ms\""),
                               route("") + route(""),
                               "[[route]]\nname = \"A\"\npath = \"/a\"\n",
                               "[[route]]\nname = \"a\"\npath = \"a\"\n",
                               "[[route]]\nname = \"a\"\n",
                               "[[key]]\nid = \"k\"\nsecret = \"short\"\n",
                               "[[key]]\nsecret = \"0123456789abcdef\"\n",
                               "[gateway\n"};
  for (const std::string& content : wrong) {
    const auto errors = errors_of(content);
    INFO(content);
    REQUIRE(errors.size() == 1);
    INFO(errors.front());
    CHECK(errors.front().starts_with("f"));
  }
  CHECK(errors_of(route("")).empty());
}

TEST_CASE("policies: limits hold at n and at n + 1", "[gateway][policy][limits]") {
  CHECK(errors_of("[gateway]\nthreads = 64\n").empty());
  CHECK(errors_of(route("record-bytes = 16777216")).empty());
  std::string many;
  for (std::size_t i = 0; i < semel::gateway::limits::routes_max; ++i) {
    many += "[[route]]\nname = \"r" + std::to_string(i) + "\"\npath = \"/\"\n";
  }
  CHECK(errors_of(many).empty());
  CHECK(errors_of(many + route("")).size() == 1);
}

TEST_CASE("settings: what belongs together is checked", "[gateway][policy]") {
  Settings settings;
  settings.listen = ":0";
  settings.upstream = "http://localhost:1";
  CHECK(check_settings(settings).ok());
  const auto refused = [&](auto change) {
    Settings changed = settings;
    change(changed);
    return !check_settings(changed).ok();
  };
  CHECK(refused([](Settings& s) { s.listen = ""; }));
  CHECK(refused([](Settings& s) { s.listen = "localhost"; }));
  CHECK(refused([](Settings& s) { s.listen = ":65536"; }));
  CHECK(refused([](Settings& s) { s.upstream = "ftp://a"; }));
  CHECK(refused([](Settings& s) { s.upstream = "http://a/path"; }));
  CHECK(refused([](Settings& s) { s.upstream = "http://user@a"; }));
  CHECK(refused([](Settings& s) { s.upstream = "http://:80"; }));
  CHECK(refused([](Settings& s) { s.admin = ":9000"; }));
  CHECK(refused([](Settings& s) { s.tls_cert = "a.pem"; }));
  const auto refused_route = [&](auto change) {
    return refused([&](Settings& s) { change(s.routes.emplace_back()); });
  };
  CHECK_FALSE(refused_route([](Route&) {}));
  CHECK(refused_route([](Route& r) { r.scope.authorization = false; }));
  CHECK(refused_route([](Route& r) { r.scope.shared = true; }));
  CHECK(refused_route([](Route& r) { r.scope.key_id = true; }));
  CHECK(refused_route([](Route& r) {
    r.fingerprint = {.method = false, .path = false, .query = false, .body = false};
  }));
}

TEST_CASE("settings: addresses", "[gateway][policy]") {
  using semel::gateway::parse_address;
  using semel::gateway::parse_upstream;
  CHECK(parse_address(":8443")->host.empty());
  CHECK(parse_address("[::1]:80")->host == "::1");
  CHECK_FALSE(parse_address("::1:80").ok());
  CHECK(parse_upstream("https://a")->port == "443");
  CHECK(parse_upstream("https://a")->is_tls);
  CHECK(parse_upstream("http://[::1]:8080/")->host == "::1");
  CHECK(parse_upstream("http://[::1]:8080/")->port == "8080");
}

TEST_CASE("gateway page: its examples are right, and each outcome is on it", "[gateway][page]") {
  std::ifstream file{SEMEL_GATEWAY_PAGE};
  const std::string page{std::istreambuf_iterator<char>{file}, {}};
  std::string toml;
  const std::string fence = "```toml\n";
  for (std::size_t at = page.find(fence); at != std::string::npos; at = page.find(fence, at)) {
    at += fence.size();
    toml += page.substr(at, page.find("```", at) - at);
  }
  const std::string file_line = "secret-file = \"shop-1.secret\"";
  REQUIRE(toml.find(file_line) != std::string::npos);
  toml.replace(toml.find(file_line), file_line.size(), "secret = \"0123456789abcdef\"");
  const auto errors = errors_of(toml);
  INFO((errors.empty() ? "" : errors.front()));
  CHECK(errors.empty());
  for (std::size_t i = 0; i < semel::gateway::outcome_count; ++i) {
    std::string name{name_of(static_cast<semel::gateway::Outcome>(i))};
    for (char& c : name) c = c == '_' ? '-' : c;
    INFO(name);
    CHECK(page.find("`" + name + "`") != std::string::npos);
  }
}

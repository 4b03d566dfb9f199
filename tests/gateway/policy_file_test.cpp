// The settings of a gateway, read from TOML.
#include "gateway/config/policy_file.hpp"

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "gateway/config/settings_check.hpp"
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

std::string guarded(const std::string& lines) {
  return route("guard = \"idempotency-key\"\n" + lines);
}

/// Of a whole configuration: what the file says, and what check_settings() finds in it.
std::vector<std::string> all_errors_of(const std::string& content) {
  Settings settings;
  std::vector<std::string> errors = read_policies(content, "f", settings);
  settings.listen = ":0";
  settings.upstream = "http://localhost:1";
  const std::vector<std::string> more = check_settings(settings);
  errors.insert(errors.end(), more.begin(), more.end());
  return errors;
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
signature = true

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
  CHECK(check_settings(settings).empty());
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
                               guarded("scope = [\"tenant\"]"),
                               guarded("scope = [\"header:\"]"),
                               guarded("fingerprint = [\"all\"]"),
                               guarded("on-timeout = \"keep\""),
                               guarded("release-statuses = [199]"),
                               guarded("release-statuses = 503"),
                               guarded("record-bytes = 16777217"),
                               guarded("lease = \"10ms\""),
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

TEST_CASE("policies: what can never match is an error that names it",
          "[gateway][policy][between-6]") {
  const auto named = [](const std::string& content, const std::string& what) {
    const auto errors = all_errors_of("[gateway]\ndefault = \"refuse\"\n" + content);
    INFO(content);
    REQUIRE(errors.size() == 1);
    INFO(errors.front());
    CHECK(errors.front().find(what) != std::string::npos);
  };
  for (const char* const method :
       {"post", "Post", "POST ", " POST", "FETCH", "TRACE", "CONNECT", "*"}) {
    named(guarded("methods = [\"" + std::string{method} + "\"]"), "'" + std::string{method} + "'");
  }
  named(guarded("methods = []"), "methods is empty");
  named(guarded("methods = [\"PUT\", \"PUT\"]"), "'PUT' twice");
  for (const char* const path : {"/x/../pay", "/./pay", "/pay/.", "/pay;v=1", "//pay", "/p%61y",
                                 "/pay?a=1", "/pay#a", "/pay\\\\x", "/pay\\u0001", "pay", ""}) {
    const auto errors =
        all_errors_of("[[route]]\nname = \"a\"\npath = \"" + std::string{path} + "\"\n");
    INFO(path);
    CHECK(errors.size() == 1);
  }
  const std::string all = "[[route]]\nname = \"all\"\npath = \"/**\"\n";
  named(all + guarded(""), "'all' in front");
  named(all + guarded("methods = [\"POST\"]"), "POST never gets here");
  named(guarded("methods = [\"GET\"]") + "[[route]]\nname = \"b\"\npath = \"/a\"\n" +
            "methods = [\"HEAD\"]\n",
        "HEAD never gets here");
  CHECK(all_errors_of("[gateway]\ndefault = \"pass\"\n" + guarded("methods = [\"POST\"]") + all)
            .empty());
}

TEST_CASE("policies: what has no effect is an error that names it",
          "[gateway][policy][between-6]") {
  const std::string lines[] = {"keep = \"1h\"",
                               "lease = \"1m\"",
                               "wait = \"1s\"",
                               "on-5xx = \"release\"",
                               "on-timeout = \"release\"",
                               "on-broken = \"release\"",
                               "on-lease-end = \"release\"",
                               "release-statuses = [503]",
                               "too-large = \"done\"",
                               "record-bytes = 100",
                               "scope = [\"header:X-Tenant\"]",
                               "fingerprint = [\"body\"]",
                               "key-required = true",
                               "token-header = \"X-Token\"",
                               "token-ttl = \"1m\"",
                               "token-route = \"b\"",
                               "debounce = \"1s\"",
                               "signature-keys = [\"k\"]",
                               "signature-headers = [\"X-Limit\"]",
                               "signature-window = \"1s\"",
                               "signature-ahead = \"1s\"",
                               "body-bytes = 1",
                               "method-override = \"ignore\""};
  for (const std::string& line : lines) {
    const auto errors = all_errors_of(route(line));
    INFO(line);
    REQUIRE(errors.size() == 1);
    CHECK(errors.front().find(line.substr(0, line.find(' ')) + " has no effect") !=
          std::string::npos);
  }
  CHECK(all_errors_of(route("guard = \"refuse\"\ntimeout = \"1s\"")).size() == 2);  // no default
  CHECK(errors_of(guarded("upgrade = true")).size() == 1);
  CHECK(errors_of(guarded("upgrade = false")).empty());
  CHECK(errors_of(guarded("fingerprint = [\"body\", \"json\"]")).size() == 1);
  for (const char* const name : {"X_Tenant", "X Tenant", "X.Tenant", "Connection", "TE"}) {
    INFO(name);
    CHECK(errors_of(guarded("scope = [\"header:" + std::string{name} + "\"]")).size() == 1);
    CHECK(errors_of(guarded("fingerprint = [\"header:" + std::string{name} + "\"]")).size() == 1);
  }
  CHECK(all_errors_of("[[key]]\nid = \"k\"\nsecret = \"0123456789abcdef\"\n").size() == 1);
}

TEST_CASE("policies: where a route guards, the default is said",
          "[gateway][policy][between-2][between-6]") {
  for (const std::string& lines :
       {std::string{"guard = \"idempotency-key\""}, std::string{"guard = \"debounce\""},
        std::string{"guard = \"refuse\""}}) {
    const auto errors = all_errors_of(route(lines));
    REQUIRE(errors.size() == 1);
    CHECK(errors.front().find("default is missing: route 'a' guards") == 0);
    CHECK(all_errors_of("[gateway]\ndefault = \"pass\"\n" + route(lines)).empty());
    CHECK(all_errors_of("[gateway]\ndefault = \"refuse\"\n" + route(lines)).empty());
  }
  CHECK(all_errors_of(route("")).empty());
}

TEST_CASE("policies: all mistakes are reported at once", "[gateway][policy][between-6]") {
  const auto errors =
      all_errors_of("[gateway]\nadmin = \"0.0.0.0:1\"\ntls-key = \"k\"\nupstream-ca = \"c\"\n" +
                    guarded("methods = [\"post\"]\nscope = [\"shared\", \"authorization\"]"));
  CHECK(errors.size() == 6);
}

TEST_CASE("policies: limits hold at n and at n + 1", "[gateway][policy][limits]") {
  CHECK(errors_of("[gateway]\nthreads = 64\n").empty());
  CHECK(errors_of(guarded("record-bytes = 16777216")).empty());
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
  CHECK(check_settings(settings).empty());
  const auto refused = [&](auto change) {
    Settings changed = settings;
    change(changed);
    return !check_settings(changed).empty();
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

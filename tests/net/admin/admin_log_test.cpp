// Words: lines come out of a log that writes to a string, at a time that the test sets.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>
#include "tests/support/catch.hpp"

#include "net/admin/log.hpp"

namespace semel::tests {
namespace {

using net::Log;
using net::LogForm;
using net::LogLevel;
using net::LogOptions;

constexpr std::int64_t some_time = 1'767'323'045'678;  // 2026-01-02T03:04:05.678Z
constexpr auto some_ts = "ts=2026-01-02T03:04:05.678Z ";

struct Written {
  explicit Written(LogOptions options = {}) {
    options.stream = &out;
    log = Log::open(options, clock).value();
  }
  [[nodiscard]] std::string text() {
    std::string all = out.str();
    out.str("");
    return all;
  }
  [[nodiscard]] std::vector<std::string> lines() {
    std::vector<std::string> all;
    std::istringstream in{text()};
    for (std::string line; std::getline(in, line);) all.push_back(line);
    return all;
  }

  ManualClock clock{Millis{1'000'000}, some_time};
  std::ostringstream out;
  std::unique_ptr<Log> log;
};

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "semel-log-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] std::string file(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

std::string content_of(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

}  // namespace

TEST_CASE("log: an event is a line of logfmt", "[net][log]") {
  Written written;
  written.log->info("started", {{"port", 6379}, {"version", "0.1.0"}});
  CHECK(written.text() ==
        "ts=2026-01-02T03:04:05.678Z level=info event=started port=6379 version=0.1.0\n");
  written.log->warning("slow");
  written.log->error("broken", {{"ratio", 0.5}, {"again", true}, {"left", -3}});
  CHECK(written.text() == std::string{some_ts} + "level=warning event=slow\n" + some_ts +
                              "level=error event=broken ratio=0.5 again=true left=-3\n");
}

TEST_CASE("log: an event is a line of JSON", "[net][log]") {
  Written written{{.form = LogForm::json}};
  written.log->info("started", {{"port", 6379},
                                {"version", "0.1.0"},
                                {"tls", false},
                                {"big", std::numeric_limits<std::uint64_t>::max()},
                                {"none", std::numeric_limits<double>::quiet_NaN()}});
  CHECK(written.text() ==
        R"({"ts":"2026-01-02T03:04:05.678Z","level":"info","event":"started","port":6379,)"
        R"("version":"0.1.0","tls":false,"big":18446744073709551615,"none":"nan"})"
        "\n");
}

TEST_CASE("log: no value breaks a line", "[net][log]") {
  struct Case {
    std::string value, escaped;
    bool is_plain = false;
  };
  const std::vector<Case> cases = {
      {"plain-1.2:3/[::1]", "plain-1.2:3/[::1]", true},
      {"", ""},
      {"a b", "a b"},
      {"a=b", "a=b"},
      {"a\"b", R"(a\"b)"},
      {"a\\b", R"(a\\b)"},
      {"a\nlevel=error event=fake", R"(a\nlevel=error event=fake)"},
      {"\r\t", R"(\r\t)"},
      {std::string{"\0\x1b[2J\x7f", 6}, "\\u0000\\u001b[2J\\u007f"},
      {"\xc2\x9b", "\\u009b"},
      {"\xc3\xa9\xe2\x82\xac", "\xc3\xa9\xe2\x82\xac"},
      {"\xff{}\xc3", "\\\\xff{}\\\\xc3"},
      {"{} %s", "{} %s"},
  };
  Written logfmt{{.burst = 1'000}};
  Written json{{.form = LogForm::json, .burst = 1'000}};
  for (const Case& one : cases) {
    logfmt.log->info("e", {{"v", one.value}});
    const std::string quoted = one.is_plain ? one.escaped : '"' + one.escaped + '"';
    CHECK(logfmt.text() == some_ts + std::string{"level=info event=e v="} + quoted + "\n");
    json.log->info("e", {{"v", one.value}});
    CHECK(json.text() == R"({"ts":"2026-01-02T03:04:05.678Z","level":"info","event":"e","v":")" +
                             one.escaped + "\"}\n");
  }
}

TEST_CASE("log: values, fields and names have bounds", "[net][log]") {
  Written written;
  const std::string longest(net::log_value_bytes_max, 'a');
  written.log->info("e", {{"v", longest}});
  CHECK(written.text() == some_ts + ("level=info event=e v=" + longest) + "\n");
  written.log->info("e", {{"v", longest + "b"}});
  CHECK(written.text() == some_ts + ("level=info event=e v=\"" + longest) + "...\"\n");

  written.log->info("e", {{"ts", 1}, {"Bad name=", 2}, {"", 3}, {"repeated", 4}});
  CHECK(written.text() == some_ts + std::string{"level=info event=e ts_=1 _ad_name_=2 _=3 "
                                                "repeated_=4\n"});
  const std::vector<net::LogField> fields(net::log_fields_max + 1, {"f", 1});
  const std::string body = net::log_body(LogForm::logfmt, LogLevel::notice, "e", fields);
  CHECK(static_cast<std::size_t>(std::count(body.begin(), body.end(), 'f')) ==
        net::log_fields_max + 1);  // one is that of "info"
}

TEST_CASE("log: times are those of the calendar", "[net][log]") {
  CHECK(net::log_time(0) == "1970-01-01T00:00:00.000Z");
  CHECK(net::log_time(-1) == "1969-12-31T23:59:59.999Z");
  CHECK(net::log_time(1'709'164'799'999) == "2024-02-28T23:59:59.999Z");
  CHECK(net::log_time(1'709'164'800'000) == "2024-02-29T00:00:00.000Z");
  CHECK(net::log_time(std::numeric_limits<std::int64_t>::max()) == "9999-12-31T23:59:59.999Z");
  CHECK(net::log_time(std::numeric_limits<std::int64_t>::min()) == "0000-01-01T00:00:00.000Z");
}

TEST_CASE("log: the level decides what is written, and changes at run time", "[net][log]") {
  Written written;
  const auto names = [&] {
    written.log->debug("a");
    written.log->verbose("b");
    written.log->info("c");
    written.log->warning("d");
    written.log->error("e");
    std::string all;
    for (const std::string& line : written.lines()) all += line.back();
    written.clock.advance(Millis{1'000});
    return all;
  };
  CHECK(names() == "cde");
  written.log->set_level(LogLevel::debug);
  CHECK(names() == "abcde");
  CHECK(written.log->writes(LogLevel::debug));
  written.log->set_level(LogLevel::verbose);
  CHECK(names() == "bcde");
  written.log->set_level(LogLevel::warning);
  CHECK(names() == "de");
  CHECK_FALSE(written.log->writes(LogLevel::notice));
  CHECK(written.log->writes(LogLevel::error));
}

TEST_CASE("log: a key is a hash unless keys are asked for", "[net][log]") {
  Written one, other;
  const auto line_of = [](Written& written, const std::string& key) {
    written.log->info("e", {written.log->field_of_key(key)});
    return written.text();
  };
  const std::string begin = std::string{some_ts} + "level=info event=e key_hash=";
  const std::string hashed = line_of(one, "order:7");
  REQUIRE(hashed.size() == begin.size() + 17);
  CHECK(hashed.starts_with(begin));
  CHECK(hashed.find_first_not_of("0123456789abcdef\n", begin.size()) == std::string::npos);
  CHECK(hashed == line_of(one, "order:7"));
  CHECK(hashed != line_of(one, "order:8"));
  CHECK(hashed != line_of(other, "order:7"));  // another secret
  CHECK(line_of(one, std::string(1'000, 'k')) != line_of(other, std::string(1'000, 'k')));

  one.log->set_keys(true);
  CHECK(line_of(one, "order 7\n") ==
        std::string{some_ts} + "level=info event=e key=\"order 7\\n\"\n");
  one.log->set_keys(false);
  CHECK(line_of(one, "order:7") == hashed);
}

TEST_CASE("log: a burst of one event is folded", "[net][log]") {
  Written written{{.burst = 3}};
  const auto burst = [&](int count) {
    for (int i = 0; i < count; ++i) written.log->warning("refused", {{"client", i}});
    return written.lines();
  };
  const std::string line = std::string{some_ts} + "level=warning event=refused client=";
  CHECK(burst(3) == std::vector<std::string>{line + "0", line + "1", line + "2"});
  CHECK(burst(100).empty());
  written.log->info("other");
  CHECK(written.lines().size() == 1);  // has a bound of its own
  written.clock.advance(Millis{999});
  written.log->tick();
  CHECK(written.lines().empty());

  SECTION("until its second is over and the log ticks") {
    written.clock.advance(Millis{1});
    written.log->tick();
    // Written with the time of the last of them.
    CHECK(written.lines() == std::vector<std::string>{line + "99 repeated=100"});
    written.log->tick();
    CHECK(written.lines().empty());
    CHECK(burst(1).size() == 1);
  }
  SECTION("until the next one after its second") {
    written.clock.advance(Millis{1});
    const auto lines = burst(1);
    REQUIRE(lines.size() == 2);
    CHECK(lines[0] == line + "99 repeated=100");
    CHECK(lines[1] == "ts=2026-01-02T03:04:06.678Z level=warning event=refused client=0");
  }
  SECTION("until the log ends") {
    written.log.reset();
    CHECK(written.lines() == std::vector<std::string>{line + "99 repeated=100"});
  }
  SECTION("also where the level has been raised since") {
    written.log->set_level(LogLevel::warning);
    written.clock.advance(Millis{1});
    written.log->tick();
    CHECK(written.lines().size() == 1);
  }
}

TEST_CASE("log: a repetition in JSON is a number", "[net][log]") {
  Written written{{.form = LogForm::json, .burst = 1}};
  for (int i = 0; i < 3; ++i) written.log->info("e");
  written.log.reset();
  CHECK(written.lines().back() ==
        R"({"ts":"2026-01-02T03:04:05.678Z","level":"info","event":"e","repeated":2})");
}

TEST_CASE("log: events beyond all that are known share one bound", "[net][log]") {
  Written written{{.burst = 1}};
  for (int i = 0; i < 1'000; ++i) written.log->info("e" + std::to_string(i));
  CHECK(written.lines().size() == 257);
  written.log.reset();
  CHECK(written.lines().size() == 1);
}

TEST_CASE("log: a file is appended to, and reopened after it was renamed", "[net][log]") {
  const Folder folder;
  const std::string path = folder.file("logs/semel.log");
  const ManualClock clock{Millis{1'000'000}, some_time};
  auto log = Log::open({.file = path}, clock).value();
  log->info("one");
  log.reset();
  log = Log::open({.file = path}, clock).value();
  log->info("two");
  const std::string both =
      some_ts + std::string{"level=info event=one\n"} + some_ts + "level=info event=two\n";
  CHECK(content_of(path) == both);

  std::filesystem::rename(path, path + ".1");
  log->info("three");
  CHECK(log->reopen().ok());
  log->info("four");
  CHECK(content_of(path + ".1") == both + some_ts + "level=info event=three\n");
  CHECK(content_of(path) == some_ts + std::string{"level=info event=four\n"});
}

TEST_CASE("log: a file that cannot be opened or written is reported", "[net][log]") {
  const Folder folder;
  const ManualClock clock;
  const auto error_of = [&clock](const LogOptions& options) {
    return Log::open(options, clock).error().detail;
  };
  CHECK(error_of({.file = "/proc/nowhere/semel.log"}).find("/proc/nowhere/semel.log") !=
        std::string::npos);
  CHECK(error_of({.burst = 0}) == "log: burst is 0; it must be from 1 to 1000000");
  CHECK(error_of({.burst = 1'000'001}) == "log: burst is 1000001; it must be from 1 to 1000000");

  const auto full = Log::open({.file = "/dev/full"}, clock).value();
  full->info("one");
  full->info("two");
  CHECK(full->lines_lost() == 2);
}

TEST_CASE("log: threads write whole lines", "[net][log][race]") {
  Written written{{.burst = 1'000'000}};
  constexpr int thread_count = 4;
  constexpr int line_count = 500;
  std::vector<std::thread> threads;
  for (int t = 0; t < thread_count; ++t) {
    threads.emplace_back([&written, t] {
      for (int i = 0; i < line_count; ++i) {
        written.log->info("e", {{"v", t * line_count + i}, written.log->field_of_key("k")});
        if (i % 50 == 0) written.log->tick();
        written.log->set_level(i % 2 == 0 ? LogLevel::debug : LogLevel::notice);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::vector<std::string> lines = written.lines();
  CHECK(lines.size() == thread_count * line_count);
  const std::set<std::string> distinct{lines.begin(), lines.end()};
  CHECK(distinct.size() == lines.size());
  for (const std::string& line : lines) {
    REQUIRE(line.starts_with(some_ts));
    REQUIRE(line.find("ts=", 1) == std::string::npos);
  }
}

}  // namespace semel::tests

// Text of configuration files, TOML and redis.conf: settings or complaints, nothing else.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "net/config/config_file.hpp"
#include "tests/fuzz/check.hpp"

namespace semel::tests {
namespace {

void check_lines(const net::Findings& findings, std::string_view path) {
  for (const auto* lines : {&findings.errors, &findings.warnings}) {
    for (const std::string& line : *lines) {
      check(line.find(path) != std::string::npos, "does not name its file: " + line);
      check(line.find('\n') == std::string::npos, "more than a line: " + line);
    }
  }
}

}  // namespace
}  // namespace semel::tests

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace semel::tests;
  using namespace semel::net;
  const std::string_view input{reinterpret_cast<const char*>(data), size};
  std::vector<Assignment> assignments;
  Findings toml;
  read_toml(input, "semel.toml", assignments, toml);
  check_lines(toml, "semel.toml");
  Findings redis;
  read_redis_conf(input, "redis.conf", assignments, redis);
  check_lines(redis, "redis.conf");
  return 0;
}

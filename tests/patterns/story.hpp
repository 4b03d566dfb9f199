// What the stories of breaks_*_test.cpp share.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "semel/local_redis.hpp"

namespace semel::tests {

/// A Redis on a clock that the story moves. Words are parted by single blanks.
class Redis {
 public:
  explicit Redis(const LocalRedis::Options& options = {})
      : redis_(LocalRedis::open(options).value()) {}

  std::string say(std::string_view line) {
    std::vector<std::string_view> words;
    for (std::size_t end = 0; end != std::string_view::npos; line.remove_prefix(end + 1)) {
      end = line.find(' ');
      words.push_back(line.substr(0, end));
      if (end == std::string_view::npos) break;
    }
    ++calls_;
    return to_text(redis_->call(words));
  }
  void later(Millis time) { redis_->advance(time); }
  [[nodiscard]] int calls() const noexcept { return calls_; }
  [[nodiscard]] LocalRedis& local() noexcept { return *redis_; }

 private:
  std::unique_ptr<LocalRedis> redis_;
  int calls_ = 0;
};

inline constexpr std::string_view ok = "OK";
inline constexpr std::string_view nil = "(nil)";
inline constexpr std::string_view zero = "(integer) 0";
inline constexpr std::string_view one = "(integer) 1";

inline std::string text(std::int64_t number) {
  return std::to_string(number);
}

}  // namespace semel::tests

// The title of the process, as ps and pgrep show it: redis-server's, by proc-title-template.
//
// Linux shows the memory in which the program found its arguments. That of the environment lies
// behind it, and is moved out of the way.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/mutex.hpp"
#include "net/settings/settings.hpp"

namespace semel::tool {

/// What the variables of a template stand for.
struct TitleFacts {
  std::string title{};        ///< how the program was called
  std::string listen_addr{};  ///< its first address
  std::string port{};
  std::string tls_port{};
  std::string unix_socket{};
  std::string config_file{};
};

/// None: it names a variable that is none, does not close one, or is empty. Spaces at its end go.
[[nodiscard]] std::optional<std::string> title_of(std::string_view title_template,
                                                  const TitleFacts& facts);

/// What a node with these settings says of itself. redis-server has no free port: "auto" is 0.
[[nodiscard]] TitleFacts title_facts(const net::Settings& settings);

class ProcessTitle {
 public:
  /// `words`: all arguments of main(), whose texts are overwritten. Moves the environment; to be
  /// called before there are threads, once in a process.
  explicit ProcessTitle(std::span<char* const> words);

  /// As much of it as there is room for. Thread-safe.
  void show(std::string_view title);

 private:
  base::Mutex mutex_;
  std::span<char> room_ SEMEL_GUARDED_BY(mutex_);
};

}  // namespace semel::tool

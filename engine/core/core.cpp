#include "engine/core/core.hpp"

#include <algorithm>
#include <string>

namespace semel::engine {

Core::Core(const Options& options, const Clock& clock)
    : options_(options),
      clock_(clock),
      reserved_(region_.reserve(options.memory_bytes, options.memory_room_bytes)),
      arena_(region_),
      keys_(region_, options_),
      cold_(options_, keys_, region_),
      versions_(options.first_version, options.replicated),
      threads_(arena_, keys_) {}

Core::~Core() = default;

[[gnu::cold]] Status Core::start() {
  const std::string limit = std::to_string(options_.memory_bytes) + " bytes";
  if (!reserved_ || !arena_.is_ready()) return Error{ErrorCode::out_of_address_space, limit};
  SEMEL_CHECK(keys_.start(region_, threads_));
  SEMEL_CHECK(insight_.start(options_, region_));
  return options_.cold == nullptr ? Status{Done{}} : cold_.attach(versions_);
}

}  // namespace semel::engine

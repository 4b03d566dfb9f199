#include "engine/object_api/any_number.hpp"

#include "base/random.hpp"
#include "engine/api/engine_impl.hpp"

namespace semel::engine {

std::uint64_t any_number(Engine& engine) {
  const ThreadContext& own = impl_of(engine).core().context();
  if (own.decision != nullptr) [[unlikely]] {
    // The next version of the entry tells its choices apart.
    return base::mix_bits(own.decision->secret ^ base::mix_bits(own.version_next));
  }
  static constinit thread_local std::uint64_t state = 0;
  if (state == 0) state = base::random_number();
  return base::next_random(state);
}

}  // namespace semel::engine

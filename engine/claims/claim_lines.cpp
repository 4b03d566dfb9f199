#include "engine/claims/claim_lines.hpp"

#include <vector>

#include "engine/claims/claim_attempt.hpp"

namespace semel::engine {
namespace {

/// Keys as the wait queue knows them.
class LineKeys {
 public:
  LineKeys(const Claims& claims, std::span<const std::string> keys) {
    const Bytes prefix = ClaimsParts::names_of(claims).prefix();
    const std::uint8_t db = claims.policy().db;
    names_.reserve(keys.size());
    refs_.reserve(keys.size());
    for (const std::string& key : keys) {
      refs_.push_back({db, names_.emplace_back(std::string{prefix}.append(key))});
    }
  }
  [[nodiscard]] std::span<const KeyRef> refs() const noexcept { return refs_; }

 private:
  std::vector<std::string> names_;  // reserved at once: refs_ point into it
  std::vector<KeyRef> refs_;
};

}  // namespace

bool is_logged(Engine& engine) noexcept {
  return static_cast<bool>(impl_of(engine).log_for_call());
}

Verdict claim_in_line(Claims& claims, const ClaimRequest& request, ClaimOutcome& outcome,
                      Seen& seen) {
  const ClaimContext context{claims.engine(), ClaimsParts::names_of(claims)};
  const TableKey key{context.prefix, request.key};
  return try_claim(context, request, key.bytes(), Arrival::waits, outcome, seen);
}

ErrorCode wait_in_lines(Claims& claims, std::span<const std::string> keys, Attempt& attempt,
                        Timestamp deadline) {
  Engine::Impl& impl = impl_of(claims.engine());
  const LineKeys lines{claims, keys};
  return impl.wait_queue().wait(attempt, lines.refs(), deadline, impl.clock());
}

ErrorCode wait_in_lines(Claims& claims, std::span<const std::string> keys,
                        std::unique_ptr<Attempt>& attempt, std::unique_ptr<Receiver>& receiver,
                        Timestamp deadline, WaitTicket& ticket) {
  const LineKeys lines{claims, keys};
  return impl_of(claims.engine())
      .wait_queue()
      .wait(attempt, receiver, lines.refs(), deadline, ticket);
}

void run_receiver(Claims& claims, Receiver& receiver) noexcept {
  impl_of(claims.engine()).core().callbacks().run(Callback::waiter, [&] { receiver.answered(); });
}

}  // namespace semel::engine

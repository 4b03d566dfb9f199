#include "semel/patterns/steps.hpp"

#include "engine/claims/memos.hpp"

namespace semel {

Result<std::optional<std::string>> Steps::recall(Bytes name) {
  used_ = true;
  return engine::recall_memo(claims_, {.key = key_, .epoch = epoch_, .step = name});
}

Status Steps::remember(Bytes name, Bytes bytes) {
  used_ = true;
  return engine::keep_memo(claims_, {.key = key_, .epoch = epoch_, .step = name, .bytes = bytes});
}

OwnerOutcome Steps::complete(Bytes result, ResultKeeping keeping) {
  const OwnerCall call{.key = key_, .epoch = epoch_, .payload = result, .keeping = keeping};
  return used_ ? engine::complete_with_memos(claims_, call) : claims_.complete(call);
}

}  // namespace semel

#include "semel/patterns/steps.hpp"

#include "engine/claims/memos.hpp"

namespace semel {

Result<std::optional<std::string>> Steps::recall(Bytes name) {
  used_ = true;
  const engine::Memo memo{.key = key_, .epoch = epoch_, .step = name};
  return is_guarded_ ? engine::recall_memo(claims_, memo) : engine::recall_memo(own_, memo);
}

Status Steps::remember(Bytes name, Bytes bytes) {
  used_ = true;
  const engine::Memo memo{.key = key_, .epoch = epoch_, .step = name, .bytes = bytes};
  return is_guarded_ ? engine::keep_memo(claims_, memo) : engine::keep_memo(own_, memo);
}

OwnerOutcome Steps::complete(Bytes result, ResultKeeping keeping) {
  if (!is_guarded_) {
    OwnerOutcome none;  // there is no claim
    none.answer = OwnerAnswer::unknown;
    return none;
  }
  return claims_.complete({.key = key_, .epoch = epoch_, .payload = result, .keeping = keeping});
}

}  // namespace semel

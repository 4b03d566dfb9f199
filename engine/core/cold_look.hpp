// What one call has learnt about the cold copy of its key: ColdSide::ask.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/rules/claim_codec.hpp"
#include "engine/rules/record.hpp"
#include "semel/cold.hpp"

namespace semel::engine {

enum class ColdAnswer : std::uint8_t {
  absent,
  present,  ///< dead or alive: see ColdLook::copy()
  unknown,  ///< ColdSide::read() knows more
};

class ColdLook {
 public:
  /// A copy as a decision sees it.
  struct Copy {
    ColdRecord record;
    Scratch scratch;
    RecordView view;
  };

  ColdLook() noexcept = default;

  std::uint64_t stamp = 0;  ///< of the store, before it was asked; 0: not asked
  std::uint64_t rank = 0;
  std::uint8_t stored_db = 0;
  bool found = false;
  ErrorCode error = ErrorCode::ok;

  [[nodiscard]] Copy& copy() {
    if (!copy_) copy_ = std::make_unique<Copy>();
    return *copy_;
  }

 private:
  std::unique_ptr<Copy> copy_;  // most keys that are not in the table are nowhere
};

}  // namespace semel::engine

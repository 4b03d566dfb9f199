// Where a node of a group looks before its log is asked.
#pragma once

#include "semel/claims.hpp"

namespace semel::net {

class ClaimRepeats {
 public:
  /// Answers a claim whose work is done from what this node has. False: the log decides.
  [[nodiscard]] virtual bool repeat_claim(const Claims& claims, const ClaimRequest& request,
                                          ClaimOutcome& outcome) = 0;

 protected:
  ~ClaimRepeats() = default;
};

}  // namespace semel::net

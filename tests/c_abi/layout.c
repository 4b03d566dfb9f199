/* Where the last member of each struct lies, for bindings that describe the structs in other
 * languages. */
#include <stddef.h>
#include <stdio.h>

#include "semel.h"

#define LAYOUT(type, last)                                             \
  printf("%s %lu %s %lu\n", #type, (unsigned long)sizeof(type), #last, \
         (unsigned long)offsetof(type, last))

int main(void) {
  LAYOUT(semel_buffer, length);
  LAYOUT(semel_bytes, length);
  LAYOUT(semel_fingerprint, digest);
  LAYOUT(semel_options, work_max_ms);
  LAYOUT(semel_stats, accepting);
  LAYOUT(semel_set_options, version);
  LAYOUT(semel_set_result, stored);
  LAYOUT(semel_value, version);
  LAYOUT(semel_rate_terms, refill);
  LAYOUT(semel_rate, reset_after_ms);
  LAYOUT(semel_policy, sliding_max_ms);
  LAYOUT(semel_request, given);
  LAYOUT(semel_claim_outcome, error);
  LAYOUT(semel_owner_call, given);
  LAYOUT(semel_owner_outcome, error);
  LAYOUT(semel_claim_view, fingerprint);
  LAYOUT(semel_decision, seen);
  LAYOUT(semel_work, takeover);
  LAYOUT(semel_once_outcome, retry_after_ms);
  LAYOUT(semel_consumed, retry_after_ms);
  LAYOUT(semel_debounce_terms, keep_ms);
  LAYOUT(semel_debounce_call, replaced);
  LAYOUT(semel_debounce_turn, state);
  LAYOUT(semel_debounce_view, state);
  LAYOUT(semel_lock_options, given);
  LAYOUT(semel_call_identity, arguments_length);
  return 0;
}

// Debounce after the last call. The rule is in patterns/trailing_debounce.cpp.
#include <algorithm>

#include "bindings/c/requests.hpp"
#include "semel/patterns/trailing_debounce.hpp"

using namespace semel;

static_assert(SEMEL_UNANSWERED == static_cast<int>(TrailingState::unanswered));
static_assert(SEMEL_DEBOUNCE_IDLE == static_cast<int>(TrailingState::idle));
static_assert(SEMEL_DEBOUNCE_QUIET == static_cast<int>(TrailingState::quiet));
static_assert(SEMEL_DEBOUNCE_DUE == static_cast<int>(TrailingState::due));
static_assert(SEMEL_DEBOUNCE_RUNNING == static_cast<int>(TrailingState::running));

namespace {

[[nodiscard]] TrailingTerms terms_of(const semel_debounce_terms& given) noexcept {
  TrailingTerms terms;
  terms.quiet = Millis{given.quiet_ms};
  terms.max_wait =
      given.max_wait_ms != 0 ? Millis{given.max_wait_ms} : std::max(terms.max_wait, terms.quiet);
  if (given.keep_ms != 0) terms.keep = Millis{given.keep_ms};
  return terms;
}

/// What an error has to say, of a payload as well.
[[nodiscard]] int say_about(const Error& error, const semel_engine& engine, std::size_t key_length,
                            std::size_t payload_length = 0) noexcept {
  const bool is_said = error.code == ErrorCode::bad_option;  // which term, and its limits
  return is_said ? c::say(error) : c::say_outcome(error.code, engine, key_length, payload_length);
}

/// Puts what the caller needs for its run; false: there is no memory for it.
[[nodiscard]] bool put_run(const TrailingTurn& from, semel_debounce_turn& to) noexcept {
  if (!c::put(to.payload, from.payload) || !c::put(to.key, from.key)) return false;
  to.epoch = from.claim.epoch;
  return true;
}

void fill_view(c::Answer<semel_debounce_view>& to, const TrailingView& from) noexcept {
  to.set(to->key, from.key);
  to->state = static_cast<int>(from.state);
  to->due_in_ms = from.due_in.count();
}

}  // namespace

int semel_debounce(semel_claims* claims, const void* key, size_t key_length, const void* payload,
                   size_t payload_length, const semel_debounce_terms* terms,
                   semel_debounce_call* call) {
  if (claims == nullptr || terms == nullptr) return c::say_null("claims or terms");
  const semel_engine& engine = *claims->engine;
  if (const int error = c::check_process(engine)) return error;
  if (const int error = c::check_key(engine, key, key_length)) return error;
  if (const int error = c::check_value(engine, payload, payload_length, "payload")) return error;
  semel_debounce_terms given;
  if (const int error = c::read_sized(terms, given); error != SEMEL_OK) return error;
  c::Answer answer{call};
  if (answer.error() != SEMEL_OK) return answer.error();
  return c::guarded([&] {
    const Result<TrailingCall> stored =
        call_trailing(claims->claims, c::bytes_of(key, key_length),
                      c::bytes_of(payload, payload_length), terms_of(given));
    if (!stored.ok()) {
      return answer.deliver(say_about(stored.error(), engine, key_length, payload_length));
    }
    answer->due_in_ms = stored->due_in.count();
    answer->replaced = stored->replaced ? 1 : 0;
    return answer.deliver(SEMEL_OK);
  });
}

int semel_debounce_run(semel_claims* claims, const semel_request* request,
                       semel_debounce_turn* turn, semel_claim_outcome* outcome) {
  if (claims == nullptr || turn == nullptr) return c::say_null("claims or turn");
  const semel_engine& engine = *claims->engine;
  if (const int error = c::check_process(engine)) return error;
  semel_request given;
  if (const int error = c::read_sized(request, given); error != SEMEL_OK) return error;
  if (const int error = c::check_claim(given, true)) return error;
  c::Answer shown{turn};
  if (shown.error() != SEMEL_OK) return shown.error();
  c::Answer answer{outcome};
  if (answer.error() != SEMEL_OK) return answer.error();
  return c::guarded([&] {
    if (given.wait_ms != 0) {
      return c::say(ErrorCode::bad_option, "wait_ms: nothing but time ends a quiet time");
    }
    Result<TrailingTurn> taken = take_trailing(claims->claims, c::request_of(given));
    if (!taken.ok()) {
      answer->error = c::number_of(taken.error().code);
      const int error = shown.deliver(say_about(taken.error(), engine, given.key_length));
      return answer.deliver(error);
    }
    ClaimOutcome& claim = taken->claim;
    const bool runs = semel::detail::is_granted(claim);
    if (runs && !put_run(*taken, *shown.operator->())) {
      c::take_back(claims->claims, taken->key, claim);
      semel_buffer_free(&shown->payload);
    }
    shown->state = static_cast<int>(taken->state);
    shown->due_in_ms = taken->due_in.count();
    c::fill_claim(answer, claim);
    const int error = shown.deliver(c::say_outcome(claim.error, engine, given.key_length));
    return answer.deliver(error);
  });
}

int semel_debounce_end(semel_claims* claims, const void* key, size_t key_length, semel_uint64 epoch,
                       int how, semel_owner_outcome* outcome) {
  if (claims == nullptr) return c::say_null("claims");
  const semel_engine& engine = *claims->engine;
  if (const int error = c::check_process(engine)) return error;
  if (const int error = c::check_key(engine, key, key_length)) return error;
  c::Answer answer{outcome};
  if (answer.error() != SEMEL_OK) return answer.error();
  return c::guarded([&] {
    if (how != SEMEL_DEBOUNCE_DONE && how != SEMEL_DEBOUNCE_AGAIN) {
      return c::say(ErrorCode::bad_option,
                    "how = " + std::to_string(how) + ", allowed SEMEL_DEBOUNCE_DONE, .._AGAIN");
    }
    const TrailingEnd end = how == SEMEL_DEBOUNCE_DONE ? TrailingEnd::done : TrailingEnd::again;
    const OwnerOutcome ended =
        end_trailing(claims->claims, c::bytes_of(key, key_length), epoch, end);
    c::fill_owner(answer, ended);
    return answer.deliver(c::say_outcome(ended.error, engine, key_length));
  });
}

int semel_debounces(semel_claims* claims, semel_debounce_view* views, size_t count, size_t* found) {
  if (claims == nullptr || views == nullptr || found == nullptr) {
    return c::say_null("claims, views or found");
  }
  *found = 0;
  if (const int error = c::check_process(*claims->engine)) return error;
  return c::guarded([&] {
    if (const int error = c::check_items(views, count, limits::debounces_max)) return error;
    const auto all = debounces(claims->claims, count);
    if (!all.ok()) return c::say(all.error());
    SEMEL_ASSERT(all->size() <= count);
    *found = all->size();
    return c::fill_items(views, *all, fill_view);
  });
}

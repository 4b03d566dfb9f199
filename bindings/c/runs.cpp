// Runs in two halves: for work that does not end on the stack of the call that began it.
#include "bindings/c/runs.hpp"

#include <memory>
#include <utility>

#include "bindings/c/steps.hpp"
#include "bindings/c/wait.hpp"

using namespace semel;

/// One of `once` and `handling` is there. A run that is deleted without an end was abandoned.
struct semel_run {
  semel_run(semel_claims& space, std::unique_ptr<semel_wait>&& from)
      : claims(space), wait(std::move(from)) {}

  semel_claims& claims;
  std::unique_ptr<semel_wait> wait;  // has the bytes of the request
  OnceCall call;
  semel_work work{};
  std::optional<detail::GuardedRun> once;
  std::optional<detail::Consumption> handling;
};

namespace {

/// Hands the begun run over to the caller.
int deliver(std::unique_ptr<semel_run>&& made, bool runs, Work* work, semel_run** run,
            const semel_work** shown) noexcept {
  *shown = nullptr;
  SEMEL_ASSERT(runs == (work != nullptr));
  if (runs) {
    made->work = c::c_work_of(*work);
    *shown = &made->work;
  }
  *run = made.release();
  return SEMEL_OK;
}

/// SEMEL_OK: `steps` are those of the run's work.
[[nodiscard]] int steps_of(semel_run* run, Steps*& steps) noexcept {
  if (run == nullptr) return c::say_null("run");
  if (const int error = c::check_process(*run->claims.engine)) return error;
  Work* work = nullptr;
  if (run->once && run->once->runs()) work = &run->once->work();
  if (run->handling && run->handling->runs()) work = &run->handling->work();
  if (work == nullptr) {
    return c::guarded([] { return c::say(ErrorCode::bad_option, "the run has no work"); });
  }
  steps = &work->steps();
  return SEMEL_OK;
}

/// Checks the arguments that end a run; after an error the run goes on.
[[nodiscard]] int check_end(const semel_run& run, bool is_its_kind, bool has_work, int how,
                            const void* data, std::size_t length) noexcept {
  if (const int error = c::check_process(*run.claims.engine)) return error;
  if (const int error = c::check_bytes(data, length, "data")) return error;
  return c::guarded([&] {
    if (!is_its_kind) return c::say(ErrorCode::bad_option, "the run was begun by another function");
    if (!has_work || c::is_work(how)) return int{SEMEL_OK};
    return c::say(ErrorCode::bad_option, "how = " + std::to_string(how) + ", no SEMEL_WORK_..");
  });
}

}  // namespace

int semel_once_begin(semel_wait* wait, const semel_work** work, semel_run** run) {
  if (wait == nullptr || work == nullptr || run == nullptr) {
    return c::say_null("wait, work or run");
  }
  *run = nullptr;
  *work = nullptr;
  semel_claims& claims = wait->claims;
  if (const int error = c::check_process(*claims.engine)) return error;
  return c::guarded([&] {
    if (wait->lock != nullptr) {
      return c::say(ErrorCode::bad_option, "a wait for a lock cannot begin a run");
    }
    std::unique_ptr<semel_wait> from{wait};
    from->leave();
    auto made = std::make_unique<semel_run>(claims, std::move(from));
    made->call = c::call_of(wait->given, *claims.engine);
    made->call.key = wait->key;
    wait->taken = true;
    made->once.emplace(claims.claims, made->call, std::move(wait->final_outcome()),
                       detail::Pickup::later);
    Work* const begun = made->once->runs() ? &made->once->work() : nullptr;
    return deliver(std::move(made), begun != nullptr, begun, run, work);
  });
}

int semel_once_end(semel_run* run, int how, const void* data, size_t length,
                   semel_once_outcome* outcome) {
  if (run == nullptr) return SEMEL_OK;
  const bool has_work = run->once && run->once->runs();
  if (const int error = check_end(*run, run->once.has_value(), has_work, how, data, length)) {
    return error;
  }
  c::Answer answer{outcome};
  if (answer.error() != SEMEL_OK) return answer.error();
  return c::guarded([&] {
    std::string bytes{c::bytes_of(data, length)};
    const std::unique_ptr<semel_run> ends{run};
    detail::GuardedRun& once = *run->once;
    const bool has_value = once.runs() && c::finish(run->claims.claims.policy(), once, how, bytes);
    if (has_value) answer.set(answer->value, bytes);
    if (once.stored()) answer.set(answer->value, *once.stored());
    c::fill(answer, once.report());
    return answer.deliver(
        c::say_report(once.report().error, *run->claims.engine, run->wait->given.key_length));
  });
}

int semel_consume_begin(semel_claims* claims, const semel_request* request, const semel_work** work,
                        semel_run** run) {
  if (claims == nullptr || work == nullptr || run == nullptr) {
    return c::say_null("claims, work or run");
  }
  *run = nullptr;
  *work = nullptr;
  if (const int error = c::check_process(*claims->engine)) return error;
  semel_request given;
  if (const int error = c::read_sized(request, given); error != SEMEL_OK) return error;
  if (const int error = c::check(given); error != SEMEL_OK) return error;
  if (const int error = c::check_message(given)) return error;
  return c::guarded([&] {
    auto made =
        std::make_unique<semel_run>(*claims, std::make_unique<semel_wait>(*claims, given, -1));
    ClaimRequest asked = c::request_of(made->wait->given);
    asked.key = made->wait->key;
    made->handling.emplace(claims->claims, c::message_of(asked),
                           c::options_of(given, asked, *claims->engine));
    Work* const begun = made->handling->runs() ? &made->handling->work() : nullptr;
    return deliver(std::move(made), begun != nullptr, begun, run, work);
  });
}

int semel_consume_end(semel_run* run, int how, const void* data, size_t length,
                      semel_consumed* consumed) {
  if (run == nullptr) return SEMEL_OK;
  const bool has_work = run->handling && run->handling->runs();
  if (const int error = check_end(*run, run->handling.has_value(), has_work, how, data, length)) {
    return error;
  }
  c::Answer answer{consumed};
  if (answer.error() != SEMEL_OK) return answer.error();
  return c::guarded([&] {
    std::string bytes{c::bytes_of(data, length)};
    const std::unique_ptr<semel_run> ends{run};
    detail::Consumption& handling = *run->handling;
    if (handling.runs()) c::finish(handling, how, std::move(bytes));
    c::fill(answer, handling.consumed());
    return answer.deliver(
        c::say_report(handling.consumed().error, *run->claims.engine, run->wait->given.key_length));
  });
}

int semel_run_recall(semel_run* run, const void* name, size_t name_length, semel_buffer* memo) {
  if (memo == nullptr) return c::say_null("memo");
  Steps* steps = nullptr;
  if (const int error = steps_of(run, steps)) return error;
  const semel_engine& engine = *run->claims.engine;
  if (const int error = c::check_step(engine, name, name_length, nullptr, 0)) return error;
  return c::guarded([&] { return c::recall(*steps, c::bytes_of(name, name_length), *memo); });
}

int semel_run_remember(semel_run* run, const void* name, size_t name_length, const void* memo,
                       size_t memo_length) {
  Steps* steps = nullptr;
  if (const int error = steps_of(run, steps)) return error;
  const semel_engine& engine = *run->claims.engine;
  if (const int error = c::check_step(engine, name, name_length, memo, memo_length)) return error;
  return c::guarded([&] {
    return c::remember(*steps, c::bytes_of(name, name_length), c::bytes_of(memo, memo_length));
  });
}

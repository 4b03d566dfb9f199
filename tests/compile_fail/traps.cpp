// What must not compile, line by line: check.py asks the compiler, and wants an error in each line
// that says `refused` and in no other.
#include <memory>
#include <optional>
#include <type_traits>

#define X(one) one  // a user's own: no header may want this name

#include "semel/patterns/guards.hpp"
#include "semel/semel.hpp"

namespace {

using namespace semel;

enum class Answer : unsigned char { first, repeat };

template <class T>
concept AsksInAnIf = std::is_constructible_v<bool, Result<T>>;
static_assert(!AsksInAnIf<bool> && !AsksInAnIf<int> && !AsksInAnIf<double> && !AsksInAnIf<Answer>);
static_assert(!AsksInAnIf<void*> && !AsksInAnIf<std::optional<int>> && !AsksInAnIf<SetResult>);
static_assert(AsksInAnIf<std::string> && AsksInAnIf<Claims> && AsksInAnIf<Done>);
static_assert(AsksInAnIf<std::unique_ptr<Engine>> && AsksInAnIf<std::shared_ptr<Engine>>);

void work();

void refused(Engine& engine, Claims& claims, SeenBefore& seen) {
  Store store = engine.store();
  if (store.setnx("k", "v")) work();                               // refused
  if (!store.setnx("k", "v")) return;                              // refused
  while (store.setnx("k", "v")) work();                            // refused
  if (seen.is_first({"k"})) work();                                // refused
  if (store.set("k", "v", {.condition = Condition::if_absent})) {  // refused
    work();
  }
  if (store.del("k") && true) work();                          // refused
  const bool made = static_cast<bool>(store.setnx("k", "v"));  // refused
  if (made || store.incr_by("n", 1)) work();                   // refused
  if (store.get("k")) work();                                  // refused
  if (store.type("k")) work();                                 // refused
  if (store.compare_and_set("k", 0, "v")) work();              // refused
  if (transition(store, "k", "new", "paid")) work();           // refused
  if (decrement_if_at_least(store, "k", 1)) work();            // refused
  if (claims.resolve("k", Resolution::released)) work();       // refused
  if (auto gone = claims.forget("k"); gone) work();            // refused
  if (Result<Answer> answer{Answer::repeat}) work();           // refused
  static_cast<void>(store.exists("k") ? 1 : 2);                // refused
  static_cast<void>(engine.impl());                            // refused
}

Status accepted(Engine& engine, Claims& claims, SeenBefore& seen) {
  Store store = engine.store();
  if (store.setnx("k", "v").ok()) work();
  if (const auto made = store.setnx("k", "v"); made.has_value() && *made) work();
  if (*seen.is_first({"k"})) work();
  if (store.setnx("k", "v").value()) work();
  SEMEL_TRY(first, seen.is_first({"k"}));
  if (first) work();
  SEMEL_TRY(found, store.get("k"));
  if (found) work();
  if (Status named = store.rename("k", "l"); !named) return named;
  if (const auto view = claims.get("k")) work();
  if (const auto opened = Engine::open(); !opened) return opened.error();
  return Done{};
}

int use_both(Engine& engine, Claims& claims, SeenBefore& seen) {
  refused(engine, claims, seen);
  return accepted(engine, claims, seen) ? 0 : 1;
}
static_assert(X(1) == 1);

}  // namespace

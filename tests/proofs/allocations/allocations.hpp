// What the proof of failing allocations is made of: things to be called, and what is asked of each
// after a call of which one allocation has failed.
//
// Words: site = an allocation of a call that was made to fail; fresh = on the thread's first call.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "semel/claims.hpp"
#include "semel/engine.hpp"
#include "semel/journal.hpp"

namespace semel::proofs {

extern const std::string long_key;   // longer than any buffer on a stack
extern const std::string long_text;  // and than a string's own

/// Takes everything, and needs no memory.
class PlainJournal final : public Journal {
 public:
  Ticket append(std::span<const Mutation>) override { return 1; }
  Status wait(Ticket, Durability) override { return Done{}; }
  Ticket newest() const override { return 1; }
};

using Contents = std::map<std::string, std::string>;
/// All records, in a form that can be compared.
[[nodiscard]] Contents contents_of(Engine& engine);
/// The first rule of the engine's own that is broken, or a call that no longer works.
[[nodiscard]] std::string what_is_wrong_with(Engine& engine, Claims& claims);

/// What is called.
class Subject {
 public:
  virtual ~Subject() = default;
  /// What a call that is refused must leave as it was.
  [[nodiscard]] virtual Contents contents() = 0;
  /// The sentence of what is wrong afterwards, or empty. The last call.
  [[nodiscard]] virtual std::string what_is_wrong() = 0;
};

enum class Answer {
  passed,
  refused,  // nothing was changed
  untold,   // it is not known what was changed: the connection is closed, or it says so
};

struct Call {
  std::string name;
  std::function<std::unique_ptr<Subject>(bool journalled)> make;
  std::function<Answer(Subject&)> run;
  bool every_way = true;   // with a journal and without, fresh and not
  bool frees_all = false;  // refused, it has left no allocation behind
};
using Calls = std::vector<Call>;

/// An engine in which there is something of everything.
class Setting final : public Subject {
 public:
  explicit Setting(bool journalled);
  [[nodiscard]] Contents contents() override { return contents_of(*engine); }
  [[nodiscard]] std::string what_is_wrong() override;

  ManualClock clock;
  PlainJournal journal;
  Options options;
  int answers = 0;
  Epoch held = 0;
  Epoch held_long = 0;
  Epoch waited = 0;
  Epoch reserved = 0;  // of the token "reserved"
  WaitTicket tickets[3]{};
  std::unique_ptr<Engine> engine;
  std::unique_ptr<Claims> ns;
  std::unique_ptr<Claims> tokens;
};

template <class T>
Answer of(const Result<T>& result) {
  return result.has_value() ? Answer::passed : Answer::refused;
}
inline Answer of(ErrorCode error) {
  return error == ErrorCode::ok ? Answer::passed : Answer::refused;
}
/// A call on a Setting.
[[nodiscard]] Call on_setting(std::string name, std::function<Answer(Setting&)> run);
/// Work that ran is done, and what did not run has left no grant behind; else the process ends.
[[nodiscard]] Answer of_work(Claims& claims, Bytes key, bool ran);

void add_store(Calls& calls);
void add_claims(Calls& calls);
void add_patterns(Calls& calls);
void add_c(Calls& calls);
#if SEMEL_PROVES_NODE
void add_node(Calls& calls);
#endif

}  // namespace semel::proofs

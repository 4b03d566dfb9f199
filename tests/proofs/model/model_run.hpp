// One run of the model proof: a random sequence of operations on one engine, each outcome compared
// with the oracle's, and now and then everything with everything.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "semel/semel.hpp"
#include "tests/proofs/linearizability/history.hpp"
#include "tests/proofs/model/oracle.hpp"
#include "tests/proofs/random.hpp"

namespace semel::proofs {

struct Profile {
  const char* name;
  std::size_t key_count;
  std::uint64_t operations;
  std::uint64_t check_every;   ///< operations between two looks at everything
  std::uint64_t verify_every;  ///< operations between two check_invariants()
  std::size_t value_bytes_max;
  std::size_t memory_bytes;
};

/// All keys of all databases as they must be.
using World = std::array<std::unordered_map<std::string, KeyState>, limits::db_count>;

class ModelRun {
 public:
  ModelRun(const Profile& profile, std::uint64_t seed);
  ~ModelRun();

  /// False: the engine and the oracle differ; printed on stdout.
  [[nodiscard]] bool run();
  [[nodiscard]] std::uint64_t operations() const noexcept { return operations_; }

 private:
  static constexpr std::uint8_t db_count = 4;
  static constexpr std::size_t namespace_count = 7;
  static constexpr std::size_t remembered_operations = 20;
  static constexpr std::size_t waiters_at_once_max = 40;

  struct Names {
    std::string name;
    Policy policy;
    std::optional<Claims> claims;
  };
  struct Waiter {
    std::uint64_t id;
    std::size_t names;
    ClaimCall call;
    Timestamp deadline;
  };
  struct Answered {
    std::uint64_t id;
    ClaimOutcome outcome;
  };

  void open();

  // Choices (model_store.cpp, model_claims.cpp).
  [[nodiscard]] std::string some_key();
  [[nodiscard]] std::string some_value();
  [[nodiscard]] Expiry some_expiry();
  [[nodiscard]] StoreCall some_store_call();
  void add_operand(StoreCall& call);
  void add_write_details(StoreCall& call);
  [[nodiscard]] std::string some_operand(const StoreCall& call);
  [[nodiscard]] Version some_version(const StoreCall& call);
  [[nodiscard]] ClaimCall some_claim_call(std::size_t names);
  [[nodiscard]] OwnedOwnerCall some_owner_call(std::size_t names);

  // Operations. Each compares and moves the oracle on.
  void one_operation();
  void rare_operation();
  void do_store();
  void do_store_batch();
  void do_section();
  void do_multi_key();
  void do_multi_read(Store store, std::uint8_t db);
  void do_multi_write(Store store, std::uint8_t db);
  void do_rename(Store store, std::uint8_t db);
  void do_copy(Store store, std::uint8_t db);
  void do_claim();
  void do_owner_call();
  void do_claim_batch();
  void do_claim_all();
  void do_complete_batch();
  void do_claim_view();
  void do_operator_call();
  void do_issue();
  void do_wait();
  [[nodiscard]] bool is_held(std::size_t names, const std::string& key);
  void wait_for(std::size_t names, const ClaimCall& call);
  void do_session();
  void do_time();
  void do_advance();
  void do_flush();
  void do_swap();
  void do_size();

  // Whole state (model_whole.cpp).
  void compare_everything();
  void compare_with(Engine& engine, const char* what, bool learns);
  void compare_snapshot();
  void compare_replay();
  void compare_new_version(Engine& engine);
  void verify();

  // Bookkeeping.
  [[nodiscard]] KeyState& state(std::uint8_t db, const std::string& key) { return world_[db][key]; }
  [[nodiscard]] bool is_there(std::uint8_t db, const std::string& key) {
    return answers(state(db, key), now());
  }
  [[nodiscard]] Ms now() const { return to_ms(clock_.now()); }
  [[nodiscard]] Moment moment() const;
  [[nodiscard]] std::uint32_t session_number(SessionId session) const;
  [[nodiscard]] std::string table_key(std::size_t names, const std::string& key) const {
    return names_[names].name + ":" + key;
  }
  void judge(const char* what, Complaint complaint);
  void expect(bool right, const std::string& what);
  void note(std::string text);
  void note(Step step);
  void judge_claim(std::size_t names, const ClaimCall& call, const ClaimOutcome& seen);
  void judge_store(const StoreCall& call, const StoreOutcome& seen);
  void take_answers();
  void take_answer(const Answered& answered);
  void check_waiters();
  void fail(const std::string& what);

  const Profile profile_;
  const std::uint64_t seed_;
  Random random_;
  ManualClock clock_;
  MemoryJournal journal_;
  std::unique_ptr<Engine> engine_;
  std::vector<Names> names_;
  std::vector<std::string> keys_;
  World world_;
  std::unordered_map<std::string, std::deque<Epoch>> epochs_;  // by table key, newest last
  std::map<SessionId, std::uint32_t> session_numbers_;
  std::vector<SessionId> open_sessions_;
  std::uint64_t dead_sessions_ = 0;
  std::map<std::string, std::list<Waiter>> waiters_;  // by table key, in order of arrival
  std::vector<Answered> answered_;
  std::uint64_t waiter_ids_ = 0;
  std::size_t waiting_ = 0;
  std::deque<std::variant<std::string, Step>> recent_;
  std::uint64_t operations_ = 0;
  bool failed_ = false;
};

}  // namespace semel::proofs

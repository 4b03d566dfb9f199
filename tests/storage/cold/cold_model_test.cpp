// An engine that spills all the time beside one that has memory for everything: the same calls must
// get the same answers. The second engine is the oracle.
#include <map>
#include <random>

#include "engine/api/engine_impl.hpp"
#include "semel/engine_host.hpp"
#include "tests/storage/cold/cold_fixture.hpp"

namespace semel::tests {

using namespace std::chrono_literals;

namespace {

using Random = std::mt19937_64;

template <class T>
ErrorCode code_of(const Result<T>& result) {
  return result.ok() ? ErrorCode::ok : result.error().code;
}

class Twins {
 public:
  Twins(std::uint64_t seed, bool restarts) : random_(seed), restarts_(restarts) {
    start();
    oracle_ = Engine::open({.clock = &clock_}).value();
  }

  void run(int steps) {
    for (step_ = 0; step_ < steps; ++step_) {
      const unsigned what = pick(100);
      if (what < 55) {
        store_call();
      } else if (what < 75) {
        claim_call();
      } else if (what < 77) {
        batch_call();
      } else if (what < 79) {
        section_call();
      } else if (what < 86) {
        clock_.advance(Millis{pick(3) == 0 ? pick(4'000) : pick(200)});
      } else if (what < 92) {
        both([](Engine& engine) {
          while (engine.advance() == 0) {
          }
        });
      } else if (what < 96) {
        // Records without an end keep their generations.
        if (life_->cold.store->stats().generations > 12) {
          both([](Engine& engine) { REQUIRE(engine.flush({}).ok()); });
        }
        life_->spill();
      } else {
        rarely();
      }
    }
    compare_contents();
    INFO(life_->broken());
    REQUIRE(life_->broken().empty());
  }
  /// How often a copy was found on disk.
  [[nodiscard]] std::uint64_t found() const { return found_ + life_->cold.store->stats().found; }

 private:
  [[nodiscard]] unsigned pick(unsigned below) { return static_cast<unsigned>(random_() % below); }
  [[nodiscard]] std::string some_key() { return "k" + std::to_string(pick(40)); }
  template <class Call>
  void both(Call&& call) {
    call(*life_->engine);
    call(*oracle_);
  }

  void start() {
    // A storage remembers what it may have handed out; so do we.
    Version first_version = 1;
    if (life_) {
      found_ = found();
      first_version = semel::engine::impl_of(*life_->engine).core().versions().next();
    }
    life_.reset();
    life_ = std::make_unique<ColdLife>(directory_, clock_, &journal_,
                                       Options{.shard_count = 2, .first_version = first_version});
    journal_.replay([this](const Mutation& mutation) {
      REQUIRE(life_->engine->host().restore(mutation).has_value());
    });
    names_ = life_->engine->claims("n", policy_).value();
  }

  [[nodiscard]] Expiry some_expiry() {
    switch (pick(4)) {
      case 0:
        return Expiry::clear();
      case 1:
        return Expiry::keep();
      case 2:
        return Expiry::in(Millis{1 + pick(300)});
      default:
        return Expiry::in(Millis{1 + pick(6'000)});
    }
  }

  [[nodiscard]] StoreOp some_op() {
    constexpr Verb verbs[] = {Verb::get,    Verb::set,    Verb::set,     Verb::set,   Verb::getdel,
                              Verb::getex,  Verb::append, Verb::incr_by, Verb::del,   Verb::delex,
                              Verb::expire, Verb::exists, Verb::persist, Verb::strlen};
    StoreOp op;
    op.verb = verbs[pick(std::size(verbs))];
    op.db = static_cast<std::uint8_t>(pick(2));
    if (op.verb == Verb::set) {
      constexpr Condition conditions[] = {Condition::always, Condition::if_absent,
                                          Condition::if_present, Condition::if_equal};
      op.condition = conditions[pick(4)];
      op.get = pick(2) == 0;
    }
    if (op.verb == Verb::delex) op.condition = Condition::if_equal;
    op.expiry = some_expiry();
    if (op.verb == Verb::expire) op.expiry = Expiry::in(Millis{1 + pick(3'000)});
    op.amount = pick(10);
    return op;
  }

  void check(const StoreOutcome& mine, const StoreOutcome& other) {
    INFO("step " << step_);
    REQUIRE(name_of(mine.error) == name_of(other.error));
    REQUIRE(mine.found == other.found);
    REQUIRE(mine.applied == other.applied);
    REQUIRE(mine.has_value == other.has_value);
    REQUIRE(mine.value == other.value);
    REQUIRE(mine.number == other.number);
    REQUIRE(mine.due == other.due);
  }

  void store_call() {
    StoreOp op = some_op();
    const std::string key = pick(8) == 0 ? "n:" + some_key() : some_key();
    const std::string value = std::to_string(pick(5));
    op.key = key;
    op.value = op.operand = value;
    StoreOutcome mine;
    StoreOutcome other;
    life_->engine->host().apply(op, mine);
    oracle_->host().apply(op, other);
    INFO("verb " << static_cast<int>(op.verb) << " key " << key << " db " << int{op.db});
    check(mine, other);
  }

  void batch_call() {
    std::vector<std::string> keys;
    std::vector<StoreOp> ops;
    for (unsigned i = 0; i < 40; ++i) {
      ops.push_back(some_op());
      keys.push_back(some_key());
    }
    for (std::size_t i = 0; i < ops.size(); ++i) {
      ops[i].key = keys[i];
      ops[i].value = ops[i].operand = "7";
    }
    std::vector<StoreOutcome> mine(ops.size());
    std::vector<StoreOutcome> other(ops.size());
    life_->engine->host().apply(ops, mine);
    oracle_->host().apply(ops, other);
    for (std::size_t i = 0; i < ops.size(); ++i) check(mine[i], other[i]);
  }

  void section_call() {
    const std::string one = some_key();
    const std::string other = some_key();
    const auto db = static_cast<std::uint8_t>(pick(2));
    const unsigned what = pick(5);
    const auto call = [&](Engine& engine) -> std::string {
      Store store = engine.store(db);
      switch (what) {
        case 0:
          return std::string{name_of(code_of(store.rename(one, other)))};
        case 1: {
          const auto copied = store.copy(one, other, {}, true);
          return copied.ok() ? std::to_string(*copied) : std::string{name_of(copied.error().code)};
        }
        case 2: {
          const std::vector<KeyValue> pairs{{one, "a"}, {other, "b"}};
          return std::to_string(store.msetnx(pairs).value());
        }
        case 3: {
          const std::vector<Bytes> keys{one, other};
          return std::to_string(store.del(keys).value());
        }
        default: {
          const std::vector<Bytes> keys{one, other};
          std::string all;
          const auto values = store.mget(keys).value();
          for (const auto& value : values) all.append(value.value_or("-")).append(" ");
          return all;
        }
      }
    };
    INFO("step " << step_ << " what " << what << " " << one << " " << other);
    REQUIRE(call(*life_->engine) == call(*oracle_));
  }

  void claim_call() {
    Claims other = oracle_->claims("n", policy_).value();
    const std::string key = some_key();
    INFO("step " << step_ << " claim " << key);
    const auto epochs = epochs_.find(key);
    const unsigned what = pick(6);
    if (what >= 2 && epochs != epochs_.end()) {
      const std::string payload = "r" + std::to_string(pick(3));
      const auto call = [&](Claims claims, Epoch epoch) {
        const OwnerCall owner{.key = key, .epoch = epoch, .payload = payload};
        switch (what) {
          case 2:
            return claims.release(owner);
          case 3:
            return claims.fail({.key = key,
                                .epoch = epoch,
                                .payload = payload,
                                .on_failure = Policy::OnFailure::keep});
          default:
            return claims.complete(owner);
        }
      };
      const OwnerOutcome one = call(*names_, epochs->second.first);
      const OwnerOutcome two = call(other, epochs->second.second);
      REQUIRE(static_cast<int>(one.answer) == static_cast<int>(two.answer));
      REQUIRE(name_of(one.error) == name_of(two.error));
      REQUIRE(one.result == two.result);
      REQUIRE(one.late == two.late);
      return;
    }
    const ClaimRequest request{.key = key, .owner = pick(2) == 0 ? "me" : "", .session = 0};
    const ClaimOutcome one = names_->claim(request);
    const ClaimOutcome two = other.claim(request);
    REQUIRE(static_cast<int>(one.answer) == static_cast<int>(two.answer));
    REQUIRE(name_of(one.error) == name_of(two.error));
    REQUIRE(one.attempt == two.attempt);
    REQUIRE(one.takeover == two.takeover);
    REQUIRE(one.result == two.result);
    REQUIRE(one.result_expired == two.result_expired);
    REQUIRE(one.owner == two.owner);
    REQUIRE(one.remaining == two.remaining);
    if (one.answer != ClaimAnswer::granted) return;
    const auto last = largest_.find(key);
    if (last != largest_.end()) REQUIRE(one.epoch > last->second);  // a fencing token
    largest_[key] = one.epoch;
    epochs_[key] = {one.epoch, two.epoch};
  }

  void rarely() {
    switch (pick(8)) {
      case 0: {
        const auto db = static_cast<std::uint8_t>(pick(2));
        const FlushMode mode = pick(2) == 0 ? FlushMode::async : FlushMode::sync;
        both([db, mode](Engine& engine) { REQUIRE(engine.flush(db, mode).ok()); });
        break;
      }
      case 1:
        both([](Engine& engine) { REQUIRE(engine.swap_db(0, 1).has_value()); });
        break;
      case 2:
      case 3:
        if (restarts_) start();
        break;
      case 4:
        compare_snapshot();
        break;
      default:
        compare_contents();
        break;
    }
  }

  /// (database, key) -> what is there, as text.
  using Contents = std::map<std::pair<int, std::string>, std::string>;

  static std::string text_of(Timestamp due, Bytes value, const ClaimRecord* claim) {
    std::string text = std::to_string(due.time_since_epoch().count());
    if (claim == nullptr) return text.append(" ").append(value);
    text.append(" state ").append(std::to_string(static_cast<int>(claim->state)));
    text.append(" attempts ").append(std::to_string(claim->attempts)).append(" ");
    const auto ends = {claim->lease_until, claim->result_until, claim->unique_until};
    for (const Timestamp end : ends) {
      text.append(std::to_string(end.time_since_epoch().count())).append(" ");
    }
    return text.append(claim->owner).append(" ").append(claim->result);
  }
  static Contents contents_of(Engine& engine) {
    Contents all;
    std::uint64_t cursor = 0;
    do {
      const auto next = engine.scan(cursor, {}, [&](const ScanItem& item) {
        all[{item.db, std::string{item.key}}] = text_of(item.due, item.value, item.claim);
      });
      REQUIRE(next.has_value());
      cursor = *next;
    } while (cursor != 0);
    return all;
  }
  void compare_contents() {
    INFO("step " << step_);
    // A trimmed result is gone from the table; from a cold copy nobody trims it before it is used.
    both([](Engine& engine) {
      while (engine.advance() == 0) {
      }
    });
    REQUIRE(contents_of(*life_->engine) == contents_of(*oracle_));
    for (std::uint8_t db = 0; db < 2; ++db) {
      const std::uint64_t exact = oracle_->size(db);
      REQUIRE(life_->engine->size(db) >= exact);
      const bool finds = oracle_->store(db).randomkey().value().has_value();
      REQUIRE(life_->engine->store(db).randomkey().value().has_value() == finds);
    }
  }
  static std::map<std::pair<int, std::string>, std::pair<Version, std::string>> snapshot_of(
      Engine& engine) {
    std::map<std::pair<int, std::string>, std::pair<Version, std::string>> all;
    const Status done = engine.host().snapshot([&](const Mutation& mutation) {
      if (mutation.type == Mutation::Type::db_map) return;
      if (mutation.kind == Kind::name_space) return;  // each declares it when it first needs it
      auto& best = all[{mutation.db, std::string{mutation.key}}];
      if (mutation.version < best.first) return;
      best = {mutation.version,
              text_of(mutation.due, mutation.value, mutation.claim ? &*mutation.claim : nullptr)};
    });
    REQUIRE(done.has_value());
    return all;
  }
  void compare_snapshot() {
    INFO("step " << step_);
    Contents mine;
    Contents other;
    for (const auto& [key, held] : snapshot_of(*life_->engine)) mine[key] = held.second;
    for (const auto& [key, held] : snapshot_of(*oracle_)) other[key] = held.second;
    REQUIRE(mine == other);
  }

  Random random_;
  const bool restarts_;
  int step_ = 0;
  std::uint64_t found_ = 0;  // in earlier lives
  ManualClock clock_;
  Directory directory_{cold_medium};
  TrimmedJournal journal_;
  const Policy policy_{
      .lease = 500ms, .result_ttl = 3'000ms, .unique_ttl = 3'000ms, .failure_ttl = 2'000ms};
  std::unique_ptr<ColdLife> life_;
  std::unique_ptr<Engine> oracle_;
  std::optional<Claims> names_;
  std::map<std::string, std::pair<Epoch, Epoch>> epochs_;
  std::map<std::string, Epoch> largest_;
};

}  // namespace

TEST_CASE("cold model: an engine that spills answers as one that has room for all",
          "[storage][cold][model]") {
  const auto seed = static_cast<std::uint64_t>(GENERATE(range(1, 9))) + Catch::rngSeed();
  INFO("seed " << seed);
  Twins twins{seed, false};
  twins.run(6'000);
  CHECK(twins.found() > 100);
}

TEST_CASE("cold model: and so in every process, with a journal and the same cold store",
          "[storage][cold][model]") {
  const auto seed = static_cast<std::uint64_t>(GENERATE(range(1, 5))) + Catch::rngSeed();
  INFO("seed " << seed);
  Twins twins{seed, true};
  twins.run(4'000);
  CHECK(twins.found() > 100);
}

}  // namespace semel::tests

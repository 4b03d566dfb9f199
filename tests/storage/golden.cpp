#include "tests/storage/golden.hpp"

#include <cstdlib>

#include "engine/kinds/element_keys.hpp"
#include "engine/object_api/object_calls.hpp"
#include "tests/support/stream_elements.hpp"

namespace semel::tests::golden {
namespace {

/// Written before and after the log was drained.
constexpr const char* parts[] = {"drained", "undrained"};

/// What is there from format 3 on says so itself.
constexpr const char* holds_hashes = "holds-hashes";
/// The same from format 8 on.
constexpr const char* holds_objects = "holds-objects";

constexpr Kind object_kinds[] = {Kind::list, Kind::set, Kind::sorted_set, Kind::stream};
constexpr int small_object = 3;
constexpr int large_object = 30;

std::string object_key(Kind kind, int elements, const std::string& part) {
  return std::string{name_of(kind)} + std::to_string(elements) + "-" + part;
}

void put(engine::ObjectEdit& object, int number) {
  const Kind kind = object.kind();
  if (kind == Kind::list) return object.insert_at(object.size(), "v" + std::to_string(number));
  if (kind == Kind::stream) return put_stream_element(object, number);
  if (kind == Kind::set)
    return static_cast<void>(object.put(engine::member_key(std::to_string(number))));
  const auto score = engine::encode_score(number - 1.5);
  object.put(std::string{score.data(), score.size()}.append("m" + std::to_string(number)));
}

bool fill_objects(Engine& engine, const std::string& part) {
  for (const Kind kind : object_kinds) {
    for (const int elements : {small_object, large_object}) {
      const auto made = engine::change_object(engine, {0, object_key(kind, elements, part)}, kind,
                                              [&](engine::ObjectEdit& object) {
                                                for (int i = 0; i < elements; ++i) put(object, i);
                                                return ErrorCode::ok;
                                              });
      if (!made.ok()) return false;
    }
  }
  return true;
}

bool holds_object(Engine& engine, Kind kind, int elements, const std::string& part) {
  engine::ObjectEdit wanted{kind};
  for (int i = 0; i < elements; ++i) put(wanted, i);
  bool is_good = false;
  const Status read = engine::read_object(
      engine, {0, object_key(kind, elements, part)}, kind, [&](const engine::ObjectReader& object) {
        is_good = object.size() == wanted.size();
        for (std::size_t i = 0; is_good && i < wanted.size(); ++i) {
          is_good =
              object.at(i).key == wanted.at(i).key && object.at(i).value == wanted.at(i).value;
        }
      });
  return read && is_good;
}

bool fill_part(Engine& engine, const std::string& part, const Policy& policy) {
  Store store = engine.store();
  bool good = store.set("plain-" + part, "golden-value-" + part).ok() &&
              store.set("long-" + part, "l", {.expiry = Expiry::in(long_ttl)}).ok() &&
              store.set("short-" + part, "s", {.expiry = Expiry::in(short_ttl)}).ok() &&
              store.set("binary-" + part, std::string{"\0\xff\n", 3}).ok() &&
              store.set("gone-" + part, "g").ok() && store.del("gone-" + part).has_value() &&
              store.incr_by("counter-" + part, 41).has_value() &&
              store.incr_by("counter-" + part, 1).has_value() &&
              engine.store(5).set("five-" + part, "5").ok();
  Hashes hashes = engine.hashes();
  good = good && hashes.hset("hash-" + part, "one", part).ok() &&
         hashes.hincrby("hash-" + part, "n", 7).ok();
  for (int i = 0; i < 40; ++i) {  // so many have an index
    good = good && hashes.hset("fields-" + part, "f" + std::to_string(i), std::to_string(i)).ok();
  }
  good =
      good && hashes.hset("unhashed-" + part, "f", "v").ok() && store.del("unhashed-" + part).ok();
  good = good && fill_objects(engine, part);
  auto claims = engine.claims("golden", policy);
  if (!claims || !good) return false;
  const auto grant = [&](const std::string& key) {
    return claims->claim({.key = key, .owner = "maker", .session = SessionId{0}});
  };
  const std::string held = "held-" + part;
  const std::string done = "done-" + part;
  const std::string failed = "failed-" + part;
  good = grant(held).answer == ClaimAnswer::granted;
  const ClaimOutcome to_do = grant(done);
  const OwnerCall finish{.key = done, .epoch = to_do.epoch, .payload = "result"};
  good = good && claims->complete(finish).answer == OwnerAnswer::ok;
  const ClaimOutcome to_fail = grant(failed);
  OwnerCall give_up{.key = failed, .epoch = to_fail.epoch, .payload = "why"};
  give_up.on_failure = Policy::OnFailure::keep;
  good = good && claims->fail(give_up).answer == OwnerAnswer::ok;
  return good;
}

}  // namespace

Policy policy_of_all() {
  Policy policy;
  policy.lease = long_ttl;
  policy.result_ttl = policy.failure_ttl = policy.attempts_ttl = long_ttl;
  return policy;
}

Result<Process> open(const std::string& directory, const Clock& clock, const Opening& opening) {
  Process process;
  SEMEL_TRY(storage, Storage::open({.directory = directory,
                                    .log_bytes = std::size_t{1} << 20,
                                    .span = Millis{60'000},
                                    .clock_ahead_max = 100 * long_ttl,
                                    .disk = opening.disk},
                                   clock));
  process.storage = std::move(storage);
  if (!opening.recovers) return process;
  SEMEL_TRY(engine, Engine::open({.clock = &clock,
                                  .journal = process.storage.get(),
                                  .durability = Durability::logged,
                                  .memory_bytes = std::size_t{64} << 20,
                                  .value_bytes_max = 1024,
                                  .first_version = process.storage->first_version()}));
  process.engine = std::move(engine);
  SEMEL_CHECK(process.storage->recover(*process.engine));
  return process;
}

bool unpack(const std::string& archive, const std::string& folder) {
  // `tar` keeps the holes and sizes of the files.
  const std::string command = "tar -xzf '" + archive + "' -C '" + folder + "' --no-same-owner";
  return std::system(command.c_str()) == 0;
}

Status fill(Engine& engine, Storage& storage) {
  // Flushed before and after it was drained, too.
  SEMEL_CHECK(engine.store(7).set("flushed", "f"));
  for (const std::string part : parts) {
    if (!fill_part(engine, part, policy_of_all())) {
      return Error{ErrorCode::refused, "not filled: " + part};
    }
    if (part == parts[0]) SEMEL_CHECK(storage.drain());
  }
  SEMEL_CHECK(engine.store().set(holds_hashes, "yes"));
  SEMEL_CHECK(engine.store().set(holds_objects, "yes"));
  SEMEL_CHECK(engine.flush(7));
  SEMEL_CHECK(engine.store(7).set("after-flush", "a"));
  return Done{};
}

std::vector<std::string> compare(Engine& engine) {
  std::vector<std::string> wrong;
  const auto holds = [&](bool good, const std::string& what) {
    if (!good) wrong.push_back(what);
  };
  const auto is = [&](std::uint8_t db, const std::string& key, const char* value) {
    const auto found = engine.store(db).get(key);
    holds(found.ok() && (value == nullptr ? !found->has_value() : *found == value), key);
  };
  auto claims = engine.claims("golden", policy_of_all());
  const bool hashes_there = engine.store().exists(holds_hashes).value();
  const bool objects_there = engine.store().exists(holds_objects).value();
  for (const std::string part : parts) {
    is(0, "plain-" + part, ("golden-value-" + part).c_str());
    is(0, "gone-" + part, nullptr);
    is(0, "counter-" + part, "42");
    is(0, "short-" + part, "s");
    is(0, "long-" + part, "l");
    is(5, "five-" + part, "5");
    const auto binary = engine.store().get("binary-" + part);
    holds(binary.ok() && *binary == std::string{"\0\xff\n", 3}, "binary-" + part);
    if (hashes_there) {
      Hashes hashes = engine.hashes();
      const auto values = hashes.hvals("hash-" + part);
      const bool has_values = values.ok() && *values == std::vector<std::string>{part, "7"};
      holds(has_values, "hash-" + part + (values.ok() ? "" : ": " + values.error().message()));
      const auto length = hashes.hlen("fields-" + part);
      const auto field = hashes.hget("fields-" + part, "f39");
      holds(length.ok() && *length == 40 && field.ok() && *field == "39", "fields-" + part);
      const auto unhashed = engine.store().exists("unhashed-" + part);
      holds(unhashed.ok() && !*unhashed, "unhashed-" + part);
    }
    for (const Kind kind : object_kinds) {
      if (!objects_there) break;
      for (const int elements : {small_object, large_object}) {
        holds(holds_object(engine, kind, elements, part), object_key(kind, elements, part));
      }
    }
    const auto ttl = engine.store().ttl("long-" + part);
    holds(ttl.ok() && ttl->remaining <= long_ttl && ttl->remaining > long_ttl - short_ttl / 2,
          "ttl of long-" + part);
    if (!claims) continue;
    holds(claims->claim({.key = "held-" + part}).answer == ClaimAnswer::in_flight, "held-" + part);
    const ClaimOutcome done = claims->claim({.key = "done-" + part});
    holds(done.answer == ClaimAnswer::replay && done.result == "result", "done-" + part);
    const ClaimOutcome failed = claims->claim({.key = "failed-" + part});
    holds(failed.answer == ClaimAnswer::kept_failure && failed.result == "why", "failed-" + part);
  }
  holds(bool{claims}, "claims");
  is(7, "flushed", nullptr);
  is(7, "after-flush", "a");
  return wrong;
}

}  // namespace semel::tests::golden

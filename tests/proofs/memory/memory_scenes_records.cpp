// Scenes of the store: records of all sizes that come, change, end and thin out.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "semel/engine_host.hpp"
#include "tests/proofs/memory/memory_scene.hpp"

namespace semel::proofs {

namespace {

std::string key_of(std::uint64_t i) {
  return "key" + std::to_string(i);
}

void one_key(Scene& scene) {
  scene.open(16 * mebibyte);
  const std::string value(60'000, 'v');
  const std::size_t count = scene.sized(200'000, 5'000'000);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t size = scene.random().below(i % 64 == 0 ? value.size() : 200);
    const Expiry expiry = Expiry::in(Millis{scene.random().between(1, 100'000'000)});
    const bool set =
        scene.store().set("one", Bytes{value}.substr(0, size), {.expiry = expiry}).ok();
    scene.expect(set, "the only key is refused");
    if (i % 3 == 0) static_cast<void>(scene.store().del("one"));
    if (i % 100 == 0) scene.pass(Millis{1});
    scene.look();
  }
  scene.expect_room();
}

void mixed_sizes(Scene& scene) {
  scene.open(scene.sized(32, 512) * mebibyte);
  const std::string value(60'000, 'v');
  const std::size_t count = scene.sized(100'000, 4'000'000);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string key = key_of(scene.random().below(20'000));
    const std::uint64_t size = scene.random().below(std::uint64_t{1} << scene.random().below(16));
    static_cast<void>(
        scene.store().set(key, Bytes{value}.substr(0, std::min<std::size_t>(size, value.size()))));
    if (i % 2 == 0) static_cast<void>(scene.store().del(key_of(scene.random().below(20'000))));
    scene.look();
  }
  for (std::uint64_t i = 0; i < 20'000; i += 2) static_cast<void>(scene.store().del(key_of(i)));
  scene.expect_room();
}

void first_in_first_out(Scene& scene) {
  scene.open(scene.sized(32, 256) * mebibyte);
  const std::size_t count = scene.sized(400'000, 10'000'000);
  const std::size_t behind = scene.sized(50'000, 500'000);
  for (std::size_t i = 0; i < count; ++i) {
    scene.expect(scene.store().set(key_of(i), "12345678").ok(), "full although half is free");
    if (i >= behind) static_cast<void>(scene.store().del(key_of(i - behind)));
    scene.look();
  }
  scene.expect_room();
}

void timers_far_away(Scene& scene) {
  scene.open(scene.sized(32, 256) * mebibyte);
  for (int round = 0; round < 3; ++round) {
    const std::size_t count = scene.fill("far", 8, Expiry::in(Millis{std::int64_t{40} << 30}));
    scene.expect(count != 0, "a round finds no room");
    scene.pass(Millis{std::int64_t{40} << 30});
    scene.expect_room();
  }
}

void short_lives(Scene& scene) {
  // They are not looked at again, and no thread calls advance().
  scene.open(scene.sized(16, 256) * mebibyte);
  const std::size_t count = scene.sized(600'000, 20'000'000);
  for (std::size_t i = 0; i < count; ++i) {
    const Expiry expiry = Expiry::in(Millis{scene.random().between(1, 50)});
    const bool set = scene.store().set(key_of(i), "12345678", {.expiry = expiry}).ok();
    scene.expect(set, "full of what has ended");
    if (i % 100 == 0) scene.pass(Millis{1});
    scene.look();
  }
}

void changing_times(Scene& scene) {
  // Each change leaves a timer that is not needed.
  scene.open(16 * mebibyte);
  const std::size_t count = scene.sized(800'000, 20'000'000);
  for (std::size_t i = 0; i < count; ++i) {
    const Expiry expiry = Expiry::in(Millis{scene.random().between(1'000, 1'000'000'000'000)});
    const std::string key = key_of(scene.random().below(1'000));
    scene.expect(scene.store().set(key, "v", {.expiry = expiry}).ok(), "full of timers");
    scene.look();
  }
  scene.expect_room();
}

void thinned_out(Scene& scene) {
  scene.open(scene.sized(32, 1'024) * mebibyte);
  const std::size_t count = scene.fill("small", 100);
  for (std::size_t i = 0; i < count; ++i) {
    if (i % 10 != 0) static_cast<void>(scene.store().del("small" + std::to_string(i)));
    scene.look();
  }
  scene.expect_room();
  for (int i = 0; i < 20; ++i) scene.tick();
  scene.expect_given_back();
  for (const std::size_t size : {1'000U, 20'000U}) {
    const std::size_t others = scene.fill("large", size);
    scene.expect(others * size > scene.room_bytes() / 2, "most is free, and of " +
                                                             std::to_string(size) + " bytes only " +
                                                             std::to_string(others) + " fit");
    for (std::size_t i = 0; i < others; ++i) {
      static_cast<void>(scene.store().del("large" + std::to_string(i)));
    }
  }
  scene.expect_room();
}

void every_size_in_turn(Scene& scene) {
  scene.open(scene.sized(24, 256) * mebibyte);
  for (const std::size_t size : {10U, 3'000U, 90U, 30'000U, 500U, 300'000U, 40U, 900'000U, 200U}) {
    const std::size_t count = scene.fill("s", size, Expiry::in(Millis{50}));
    scene.expect(count * (size + 80) > scene.room_bytes() / 2,
                 "of " + std::to_string(size) + " bytes only " + std::to_string(count) + " fit");
    scene.pass(Millis{50});
    scene.expect_room();
  }
}

void peak_and_end(Scene& scene) {
  const std::size_t count = scene.sized(500'000, 10'000'000);
  scene.open(scene.sized(128, 2'048) * mebibyte);
  const std::string value(40, 'v');
  for (std::size_t i = 0; i < count; ++i) {
    const Millis ttl{static_cast<std::int64_t>(i % 1'000) + 60'000};
    const Expiry expiry = i % 20 == 0 ? Expiry::clear() : Expiry::in(ttl);
    scene.expect(scene.store().set(key_of(i), value, {.expiry = expiry}).ok(), "too small a limit");
    scene.look();
  }
  scene.pass(Millis{61'000});
  for (int tenth = 0; tenth < 100; ++tenth) scene.tick();  // ten seconds
  scene.expect(scene.engine().stats().records == (count + 19) / 20, "some have not ended");
  scene.expect_given_back();
  scene.expect_room();
}

void refusals(Scene& scene) {
  scene.open(scene.sized(16, 256) * mebibyte);
  const std::size_t count = scene.fill("s", 100);
  const std::size_t refused = scene.sized(100'000, 2'000'000);
  for (std::size_t i = 0; i < refused; ++i) {
    static_cast<void>(scene.store().set("new" + std::to_string(i), std::string(100, 'n')));
    scene.look();
  }
  for (std::size_t i = 0; i < count; i += 3) {
    static_cast<void>(scene.store().del("s" + std::to_string(i)));
  }
  scene.expect_room();
}

void hashes(Scene& scene) {
  scene.open(scene.sized(32, 256) * mebibyte);
  Hashes all = scene.engine().hashes();
  const std::size_t count = scene.sized(30'000, 1'000'000);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string key = key_of(scene.random().below(40));
    const std::string field = "field" + std::to_string(scene.random().below(300));
    if (scene.random().chance(2, 3)) {
      const std::string value(scene.random().below(200), 'v');
      static_cast<void>(all.hset(key, field, value));
    } else {
      const std::array<Bytes, 1> fields{Bytes{field}};
      static_cast<void>(all.hdel(key, fields));
    }
    if (scene.random().chance(1, 500)) static_cast<void>(scene.store().del(key));
    scene.look();
  }
  scene.expect_room();
}

void several_at_once(Scene& scene) {
  scene.open(scene.sized(16, 256) * mebibyte);
  const std::size_t count = scene.sized(3'000, 60'000);
  std::vector<std::string> keys(50);
  const std::string value(3'000, 'v');
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<KeyValue> pairs;
    for (std::string& key : keys) {
      key = key_of(scene.random().below(30'000));
      pairs.push_back({key, Bytes{value}.substr(0, scene.random().below(value.size()))});
    }
    if (!scene.store().mset(pairs).ok()) {
      for (const std::string& key : keys) static_cast<void>(scene.store().del(key));
    }
    scene.look(16);
  }
  static_cast<void>(scene.engine().flush(0));
  scene.expect_room();
}

void snapshots(Scene& scene) {
  scene.open(scene.sized(48, 512) * mebibyte);
  const std::size_t count = scene.sized(50'000, 1'000'000);
  for (std::size_t i = 0; i < count; ++i) static_cast<void>(scene.store().set(key_of(i), "first"));
  for (int round = 0; round < 4; ++round) {
    std::size_t seen = 0;
    const Status shown = scene.engine().host().snapshot([&](const Mutation&) {
      // A slow reader: records are replaced and end meanwhile.
      const std::string key = key_of(scene.random().below(count));
      static_cast<void>(scene.store().set(key, std::string(scene.random().below(300), 'w')));
      if (++seen % 3 == 0) static_cast<void>(scene.store().del(key));
      scene.look();
    });
    scene.expect(shown.ok(), "a snapshot is refused");
    static_cast<void>(scene.engine().flush(0));
    scene.expect_room();
    for (std::size_t i = 0; i < count; ++i) {
      static_cast<void>(scene.store().set(key_of(i), "again"));
    }
  }
}

void put_back(Scene& scene) {
  // A recovery: no thread calls advance() meanwhile.
  scene.open(scene.sized(32, 512) * mebibyte);
  const std::size_t count = scene.sized(300'000, 8'000'000);
  Mutation mutation;
  mutation.type = Mutation::Type::put;
  mutation.kind = Kind::string;
  mutation.value = "12345678";
  for (std::size_t i = 0; i < count; ++i) {
    const std::string key = key_of(i);
    mutation.key = key;
    mutation.version = i + 1;
    mutation.due = mutation.keep_until =
        scene.engine().now() + Millis{static_cast<std::int64_t>(i % 30) + 1};
    static_cast<void>(scene.engine().host().restore(mutation));
    if (i % 1'000 == 0) scene.pass(Millis{1});
    scene.look();
  }
  scene.pass(Millis{100});
  scene.expect_room();
}

constexpr std::array all_scenes{
    NamedScene{"one key", one_key},
    NamedScene{"mixed sizes", mixed_sizes},
    NamedScene{"first in, first out", first_in_first_out},
    NamedScene{"timers far away", timers_far_away},
    NamedScene{"short lives", short_lives},
    NamedScene{"changing times", changing_times},
    NamedScene{"thinned out", thinned_out},
    NamedScene{"every size in turn", every_size_in_turn},
    NamedScene{"peak and end", peak_and_end},
    NamedScene{"refusals", refusals},
    NamedScene{"hashes", hashes},
    NamedScene{"several at once", several_at_once},
    NamedScene{"snapshots", snapshots},
    NamedScene{"put back", put_back},
};

}  // namespace

std::span<const NamedScene> scenes_of_records() {
  return all_scenes;
}

}  // namespace semel::proofs

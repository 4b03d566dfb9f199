// Places on the map: GEOADD, GEODIST, GEOHASH, GEOPOS. They are sorted sets, whose scores are the
// places.
#include <vector>

#include "engine/types/geo.hpp"
#include "net/commands/handlers.hpp"
#include "net/objects/object_command.hpp"
#include "net/resp/text.hpp"
#include "net/sorted_sets/geo_text.hpp"
#include "net/sorted_sets/sorted_set_add.hpp"

namespace semel::net::handlers {

using engine::ObjectReader;

void geoadd(Call& call) {
  AddCommand command;
  std::size_t at = 2;
  while (at < call.args.size() && read_add_flag(call.args[at], command)) ++at;
  const std::span<const std::string_view> places = call.args.subspan(at);
  const bool excludes_all = command.rule.only_new && command.rule.only_present;
  if (places.empty() || places.size() % 3 != 0 || excludes_all) return call.fail_syntax();
  command.additions.reserve(places.size() / 3);
  for (std::size_t i = 0; i < places.size(); i += 3) {
    const auto point = read_point(call, places[i], places[i + 1]);
    if (!point) return;
    command.additions.push_back({engine::geo_score_of(*point), places[i + 2]});
  }
  add_members(call, command);
}

void geodist(Call& call) {
  double metres_a_unit = 1;
  if (call.args.size() == 5) {
    const auto unit = read_unit(call, call.args[4]);
    if (!unit) return;
    metres_a_unit = *unit;
  } else if (call.args.size() > 5) {
    return call.fail_syntax();
  }
  notify_miss(call, call.key());
  read_object(call, call.key(), Kind::sorted_set, [&](const ObjectReader& set) {
    const auto one = engine::score_in(set, call.args[2]);
    const auto other = engine::score_in(set, call.args[3]);
    if (!one || !other) return call.reply.null();
    const double metres =
        engine::geo_distance(engine::geo_point_of(*one), engine::geo_point_of(*other));
    write_distance(call.reply, metres / metres_a_unit);
  });
}

void geohash(Call& call) {
  notify_miss(call, call.key());
  read_object(call, call.key(), Kind::sorted_set, [&](const ObjectReader& set) {
    call.reply.array(call.args.size() - 2);
    for (const Bytes member : call.args.subspan(2)) {
      const auto score = engine::score_in(set, member);
      score ? call.reply.bulk(engine::geo_text_of(*score)) : call.reply.null();
    }
  });
}

void geopos(Call& call) {
  notify_miss(call, call.key());
  read_object(call, call.key(), Kind::sorted_set, [&](const ObjectReader& set) {
    call.reply.array(call.args.size() - 2);
    for (const Bytes member : call.args.subspan(2)) {
      const auto score = engine::score_in(set, member);
      score ? write_point(call.reply, engine::geo_point_of(*score)) : call.reply.null_array();
    }
  });
}

}  // namespace semel::net::handlers

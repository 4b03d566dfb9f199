// Places on the map that are within a circle or a box: GEOSEARCH, GEORADIUS and their like.
#include <algorithm>
#include <vector>

#include "engine/types/geo.hpp"
#include "net/commands/handlers.hpp"
#include "net/objects/key_section.hpp"
#include "net/objects/object_command.hpp"
#include "net/objects/score_text.hpp"
#include "net/objects/sorted_set_reply.hpp"
#include "net/resp/text.hpp"
#include "net/sorted_sets/geo_text.hpp"

namespace semel::net::handlers {

using engine::GeoMatch;
using engine::ObjectReader;

namespace {

enum class Order : std::uint8_t { as_found, nearest_first, farthest_first };

/// What a command leaves to the words of its request.
struct SearchForm {
  std::size_t source_at = 1;
  std::size_t options_at;       ///< the words in front of it are fixed
  bool is_search = false;       ///< GEOSEARCH: center and shape are among the options
  bool may_store = false;       ///< STORE, STOREDIST
  std::size_t target_at = 0;    ///< 0: no target but that of an option
  std::string_view event = {};  ///< of a result that is stored
};

struct Search {
  engine::GeoShape shape{};
  std::optional<Bytes> target{};
  bool stores_distance = false;
  bool with_distance = false;
  bool with_hash = false;
  bool with_point = false;
  bool takes_any = false;
  bool has_member = false;
  bool has_point = false;
  bool has_circle = false;
  bool has_box = false;
  Order order = Order::as_found;
  std::size_t count = 0;  ///< 0: all

  [[nodiscard]] bool shows_more() const noexcept {
    return with_distance || with_hash || with_point;
  }
};

struct Found {
  engine::GeoPoint point;
  double metres;
  double score;
  std::string member;
};

/// Reads a request, with the set that it is about at hand, since where a member is missing that is
/// an error of the words. Each function: false: an error has been written.
class SearchReader {
 public:
  SearchReader(Call& call, const SearchForm& form, const ObjectReader& set, Search& search)
      : call_(call), form_(form), set_(set), search_(search) {}

  [[nodiscard]] bool read() {
    if (form_.target_at != 0) search_.target = call_.args[form_.target_at];
    if (!form_.is_search && !read_fixed()) return false;
    for (rest_ = call_.args.subspan(form_.options_at); !rest_.empty();) {
      std::size_t used = read_flag() ? 1 : 0;
      if (used == 0 && !read_option(used)) return false;
      if (used == 0) return call_.fail_syntax(), false;
      rest_ = rest_.subspan(used);
    }
    return check();
  }

 private:
  [[nodiscard]] bool is_option(std::string_view name, std::size_t words) const noexcept {
    return rest_.size() > words && is_word(rest_[0], name);
  }

  /// GEORADIUS and GEORADIUSBYMEMBER: what stands in front of their options.
  [[nodiscard]] bool read_fixed() {
    const std::size_t length_at = form_.options_at - 2;
    if (length_at == 4) {
      const auto point = read_point(call_, call_.args[2], call_.args[3]);
      if (!point) return false;
      search_.shape.center = *point;
    } else {
      if (set_.empty()) return true;  // no other word is looked at
      if (!read_member(call_.args[2])) return false;
    }
    return read_circle(call_.args[length_at], call_.args[length_at + 1]);
  }

  [[nodiscard]] bool read_member(Bytes member) {
    const auto score = engine::score_in(set_, member);
    if (!score) return call_.fail("ERR could not decode requested zset member"), false;
    search_.shape.center = engine::geo_point_of(*score);
    return true;
  }

  [[nodiscard]] bool read_circle(std::string_view radius_text, std::string_view unit_text) {
    const auto radius = score_of(radius_text);
    if (!radius) return call_.fail("ERR need numeric radius"), false;
    if (*radius < 0) return call_.fail("ERR radius cannot be negative"), false;
    const auto unit = read_unit(call_, unit_text);
    if (!unit) return false;
    search_.shape.radius = *radius;
    search_.shape.unit_metres = *unit;
    return true;
  }

  [[nodiscard]] bool read_box() {
    const auto width = score_of(rest_[1]);
    if (!width) return call_.fail("ERR need numeric width"), false;
    const auto height = score_of(rest_[2]);
    if (!height) return call_.fail("ERR need numeric height"), false;
    if (*width < 0 || *height < 0) {
      return call_.fail("ERR height or width cannot be negative"), false;
    }
    const auto unit = read_unit(call_, rest_[3]);
    if (!unit) return false;
    search_.shape.is_box = true;
    search_.shape.width = *width;
    search_.shape.height = *height;
    search_.shape.unit_metres = *unit;
    return true;
  }

  [[nodiscard]] bool read_count() {
    const auto count = integer_of(rest_[1]);
    if (!count) return call_.fail_number(), false;
    if (*count <= 0) return call_.fail("ERR COUNT must be > 0"), false;
    search_.count = static_cast<std::size_t>(*count);
    return true;
  }

  /// An option of one word. False: it is none.
  bool read_flag() {
    const std::string_view word = rest_[0];
    if (is_word(word, "withdist")) return search_.with_distance = true;
    if (is_word(word, "withhash")) return search_.with_hash = true;
    if (is_word(word, "withcoord")) return search_.with_point = true;
    if (is_word(word, "any")) return search_.takes_any = true;
    if (is_word(word, "asc")) return search_.order = Order::nearest_first, true;
    if (is_word(word, "desc")) return search_.order = Order::farthest_first, true;
    return false;
  }

  /// One of more words: sets how many it is. 0: it is none.
  [[nodiscard]] bool read_option(std::size_t& used) {
    if (is_option("count", 1)) {
      used = 2;
      return read_count();
    }
    const bool stores_distance = is_option("storedist", 1);
    if (form_.may_store && (stores_distance || is_option("store", 1))) {
      used = 2;
      search_.target = rest_[1];
      search_.stores_distance = stores_distance;
      return true;
    }
    if (!form_.is_search) return true;
    if (form_.target_at != 0 && is_word(rest_[0], "storedist")) {
      used = 1;
      return search_.stores_distance = true;
    }
    if (!search_.has_point && is_option("frommember", 1)) {
      used = 2;
      search_.has_member = true;
      return set_.empty() || read_member(rest_[1]);
    }
    if (!search_.has_member && is_option("fromlonlat", 2)) {
      used = 3;
      search_.has_point = true;
      const auto point = read_point(call_, rest_[1], rest_[2]);
      if (point) search_.shape.center = *point;
      return point.has_value();
    }
    return read_shape(used);
  }

  [[nodiscard]] bool read_shape(std::size_t& used) {
    if (!search_.has_box && is_option("byradius", 2)) {
      used = 3;
      search_.has_circle = true;
      return read_circle(rest_[1], rest_[2]);
    }
    if (!search_.has_circle && is_option("bybox", 3)) {
      used = 4;
      search_.has_box = true;
      return read_box();
    }
    return true;
  }

  [[nodiscard]] bool check() {
    if (search_.target && search_.shows_more()) {
      const std::string_view name =
          form_.target_at != 0 ? "GEOSEARCHSTORE" : "STORE option in GEORADIUS";
      return call_.fail("ERR " + std::string{name} +
                        " is not compatible with WITHDIST, WITHHASH and WITHCOORD options"),
             false;
    }
    const auto fail_shape = [&](std::string_view options) {
      call_.fail("ERR exactly one of " + std::string{options} + " can be specified for " +
                 std::string{call_.args[0]});
      return false;
    };
    if (form_.is_search && !search_.has_member && !search_.has_point) {
      return fail_shape("FROMMEMBER or FROMLONLAT");
    }
    if (form_.is_search && !search_.has_circle && !search_.has_box) {
      return fail_shape("BYRADIUS and BYBOX");
    }
    if (search_.takes_any && search_.count == 0) {
      return call_.fail("ERR the ANY argument requires COUNT argument"), false;
    }
    return true;
  }

  Call& call_;
  const SearchForm& form_;
  const ObjectReader& set_;
  Search& search_;
  std::span<const std::string_view> rest_{};
};

/// In the order in which they are shown, and no more than that. None: they would take more memory
/// than there is for it.
std::optional<std::vector<Found>> find(const ObjectReader& set, const Search& search,
                                       std::size_t bytes_max) {
  std::vector<Found> found;
  const std::size_t most = search.takes_any ? search.count : 0;
  bool has_room = true;
  engine::each_in_shape(set, search.shape, [&](const GeoMatch& match) {
    const std::size_t bytes = sizeof(Found) + match.member.size();
    has_room = bytes <= bytes_max;
    if (!has_room) return false;
    bytes_max -= bytes;
    found.push_back({match.point, match.metres, match.score, std::string{match.member}});
    return most == 0 || found.size() < most;
  });
  if (!has_room) return std::nullopt;
  Order order = search.order;
  // The first ones of no order would be any; the nearest are meant.
  if (search.count != 0 && !search.takes_any && order == Order::as_found) {
    order = Order::nearest_first;
  }
  if (order != Order::as_found) {
    std::stable_sort(found.begin(), found.end(), [&](const Found& a, const Found& b) {
      return order == Order::nearest_first ? a.metres < b.metres : b.metres < a.metres;
    });
  }
  if (search.count != 0 && found.size() > search.count) {
    found.erase(found.begin() + static_cast<std::ptrdiff_t>(search.count), found.end());
  }
  return found;
}

void write_found(Call& call, const Search& search, const std::vector<Found>& all) {
  const std::size_t more = std::size_t{search.with_distance} + std::size_t{search.with_hash} +
                           std::size_t{search.with_point};
  call.reply.array(all.size());
  for (const Found& each : all) {
    if (more != 0) call.reply.array(1 + more);
    call.reply.bulk(each.member);
    if (search.with_distance) write_distance(call.reply, each.metres / search.shape.unit_metres);
    if (search.with_hash) call.reply.integer(static_cast<std::int64_t>(each.score));
    if (search.with_point) write_point(call.reply, each.point);
    if (call.reply.is_cut()) return;
  }
}

/// A result to be stored may take so much memory; the same for every node of a group.
constexpr std::size_t found_bytes_max = std::size_t{256} << 20;

void store_found(Call& call, const Search& search, const std::vector<Found>& all, Section& section,
                 std::string_view event) {
  const auto stored = engine::replace_object(
      call.engine, {call.client.db, *search.target}, Kind::sorted_set,
      [&](engine::ObjectEdit& set) {
        for (const Found& each : all) {
          const double distance = each.metres / search.shape.unit_metres;
          set.put(engine::scored_key(search.stores_distance ? distance : each.score, each.member));
        }
        return ErrorCode::ok;
      });
  if (!stored.ok()) return call.fail(stored.error());
  if (!commit(call, section)) return;
  reply_stored(call, *search.target, *stored, all.size(), event);
}

/// The key of STORE or STOREDIST stands anywhere behind the fixed words: each that may be one is
/// held.
std::vector<Bytes> keys_to_hold(const Call& call, const SearchForm& form) {
  std::vector<Bytes> keys{call.args[form.source_at]};
  if (form.target_at != 0) keys.push_back(call.args[form.target_at]);
  if (!form.may_store) return keys;
  for (std::size_t i = form.options_at; i + 1 < call.args.size(); ++i) {
    const bool stores = is_word(call.args[i], "store") || is_word(call.args[i], "storedist");
    if (stores) keys.push_back(call.args[i + 1]);
  }
  return keys;
}

void run_search(Call& call, const SearchForm& form) {
  const std::vector<Bytes> keys = keys_to_hold(call, form);
  auto section = keys.size() > 1 ? hold_keys(call, keys) : std::optional<Section>{};
  if (keys.size() > 1 && !section) return;
  const Bytes source = call.args[form.source_at];
  if (form.target_at == 0) notify_miss(call, source);
  Search search;
  bool is_read = false;
  std::optional<std::vector<Found>> found;
  const std::size_t before = call.reply.size();
  const Status read = engine::read_object(
      call.engine, {call.client.db, source}, Kind::sorted_set, [&](const ObjectReader& set) {
        is_read = SearchReader{call, form, set, search}.read();
        if (!is_read || set.empty()) return;
        found = find(set, search, search.target ? found_bytes_max : call.reply.room() / 2);
        if (!found) is_read = false;
      });
  if (!read) {
    call.reply.take_back(before);
    return call.fail(read.error());
  }
  if (is_read && !found) found.emplace();
  if (!is_read) {
    const bool is_too_much = call.reply.size() == before;
    if (is_too_much && search.target) return call.fail(ErrorCode::value_too_long);
    if (is_too_much) call.reply.cut();
    return;
  }
  if (!search.target) return write_found(call, search, *found);
  store_found(call, search, *found, *section, form.event);
}

}  // namespace

void geosearch(Call& call) {
  run_search(call, {.options_at = 2, .is_search = true});
}
void geosearchstore(Call& call) {
  run_search(call, {.source_at = 2,
                    .options_at = 3,
                    .is_search = true,
                    .target_at = 1,
                    .event = "geosearchstore"});
}
void georadius(Call& call) {
  run_search(call, {.options_at = 6, .may_store = true, .event = "georadiusstore"});
}
void georadius_ro(Call& call) {
  run_search(call, {.options_at = 6});
}
void georadiusbymember(Call& call) {
  run_search(call, {.options_at = 5, .may_store = true, .event = "georadiusstore"});
}
void georadiusbymember_ro(Call& call) {
  run_search(call, {.options_at = 5});
}

}  // namespace semel::net::handlers

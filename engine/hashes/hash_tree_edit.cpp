#include "engine/hashes/hash_tree_edit.hpp"

#include <algorithm>
#include <vector>

namespace semel::engine {

namespace {

const LargeObject& object_of(Bytes record) noexcept {
  const LargeObject* const object = large_object_of(Kind::hash, record);
  SEMEL_ASSERT(object != nullptr);
  return *object;
}

/// The end of the key: in a hash without ends of fields the record's, which packing does not need.
Timestamp key_end_in(Bytes record) noexcept {
  return key_end_of_hash(record, no_end);
}

void put_end_and_value(Timestamp due, Bytes value, std::string& to) {
  to.clear();
  base::put_varint(to, number_of_end(due));
  to.append(value);
}

/// The fields of a packed hash as the elements of a tree, in its order.
class TreeElements {
 public:
  TreeElements(const HashView& hash, std::uint64_t seed) {
    std::vector<Place> places;
    places.reserve(hash.size());
    std::size_t bytes = 0;
    const auto add = [&](std::uint32_t hash_of_it, const HashView::Found& pair) {
      places.push_back({hash_of_it, pair});
      bytes += field_skip + pair.field.size() + base::varint_bytes_max + pair.value.size();
    };
    if (hash.is_indexed()) {
      for (std::size_t i = 0; i < hash.size(); ++i) {
        const std::uint64_t word = hash.index_word(i);
        if (const auto pair = hash.pair_at(static_cast<std::uint32_t>(word))) {
          add(static_cast<std::uint32_t>(word >> 32), *pair);
        }
      }
    } else {
      hash.each([&](const HashView::Found& pair) { add(hash_of_field(pair.field, seed), pair); });
    }
    std::sort(places.begin(), places.end(), [](const Place& one, const Place& other) {
      return one.hash != other.hash ? one.hash < other.hash : one.pair.field < other.pair.field;
    });
    elements_.reserve(places.size());
    room_.reserve(bytes);  // so that nothing moves any more
    for (const Place& place : places) elements_.push_back(element_of(place));
  }

  [[nodiscard]] const std::vector<Element>& all() const noexcept { return elements_; }

 private:
  struct Place {
    std::uint32_t hash;
    HashView::Found pair;
  };
  Element element_of(const Place& place) {
    const std::size_t key = room_.size();
    room_.append(FieldKey{place.hash, place.pair.field}.bytes());
    const std::size_t value = room_.size();
    base::put_varint(room_, number_of_end(place.pair.due));
    room_.append(place.pair.value);
    const Bytes all{room_};
    return {all.substr(key, value - key), all.substr(value)};
  }

  std::string room_;
  std::vector<Element> elements_;
};

class TreeRules final : public LargeHashRules {
 public:
  std::size_t whole_size(Bytes record) const noexcept override {
    return HashTrees{object_of(record)}.packed_bytes().whole();
  }
  void pack(Bytes record, std::string& to) const override {
    HashTrees{object_of(record)}.pack(key_end_in(record), to);
  }
  Timestamp next_end(Bytes record, Timestamp now) const noexcept override {
    const Tree ends = object_of(record).index_tree();
    const std::size_t ended = ended_by(ends, now);
    if (ended == ends.size().elements) return no_end;
    return Timestamp{Millis{static_cast<std::int64_t>(end_at(ends.at(ended).element().key))}};
  }
  Decision trim(const RecordView& live, Timestamp now, NodePool& pool, std::string& scratch,
                std::unique_ptr<HeldChange>& held) const override {
    struct Trimmed final : HeldChange {
      Trimmed(Bytes record, NodePool& nodes) : edit(record, nodes), trail(whole(record)) {}
      static std::size_t whole(Bytes record) {
        return HashTrees{object_of(record)}.packed_bytes().whole();
      }
      HashTreeEdit edit;
      EditTrail trail;
    };
    const std::optional<HashEnds> ends = ends_of_hash(live.value);
    if (!ends || ends->first > now) return {};
    auto made = std::make_unique<Trimmed>(live.value, pool);
    made->edit.erase_ended(now, made->trail);
    if (!made->edit.has_failed() && made->edit.fields() == 0)
      return {};  // the record has ended as well
    Decision decision = made->edit.write(ends->key, HashTreeEdit::packed_bytes_max, scratch);
    decision.gives_up = true;
    if (decision.due == live.due) decision.trail = made->trail.bytes();
    held = std::move(made);
    return decision;
  }
};

}  // namespace

const LargeHashRules& rules_of_trees() noexcept {
  static const TreeRules rules;
  return rules;
}

HashTreeEdit::HashTreeEdit(Bytes record, NodePool& pool)
    : edit_(pool, Kind::hash, memory_, *large_object_of(Kind::hash, record)) {}

HashTreeEdit::HashTreeEdit(const HashView& hash, std::uint64_t seed, NodePool& pool)
    : edit_(pool, Kind::hash, memory_), is_changed_(true) {
  edit_.set_seed(hash.is_indexed() ? hash.seed() : seed);
  const TreeElements elements{hash, seed};
  edit_.build([&](const auto& add) {
    for (const Element& element : elements.all()) add(element);
  });
}

bool HashTreeEdit::put(Bytes field, Bytes value, Timestamp due) {
  put_end_and_value(due, value, value_);
  const FieldKey key{field, edit_.hash().seed};
  const TreeChange change = edit_.put(key.bytes(), value_);
  is_changed_ = is_changed_ || change != TreeChange::nothing;
  return change == TreeChange::added;
}

bool HashTreeEdit::erase(Bytes field) {
  const FieldKey key{field, edit_.hash().seed};
  const TreeChange change = edit_.erase(key.bytes());
  is_changed_ = is_changed_ || change != TreeChange::nothing;
  return change == TreeChange::erased;
}

void HashTreeEdit::erase_key(Bytes key) {
  const std::string kept{key};  // it may lie in a node that is changed in place
  static_cast<void>(edit_.erase(kept));
}

void HashTreeEdit::erase_ended(Timestamp now, EditTrail& trail) {
  const HashTrees hash = edit_.hash();
  const std::size_t ended = ended_by(hash.ends, now);
  if (ended == 0) return;
  is_changed_ = true;
  if (trail.is_open()) {
    TreeCursor at = hash.ends.at(0);
    for (std::size_t i = 0; i < ended && trail.is_open(); ++i, at.next()) {
      trail.erase(field_in(at.element().key.substr(end_skip)));
    }
  }
  constexpr std::size_t few = 64;
  if (ended > few && ended > hash.size() / 2) {
    // Where little is left, that is written anew: the others are freed in steps later.
    return edit_.build([&](const auto& add) {
      for (TreeCursor at = hash.fields.at(0); at.has_element(); at.next()) {
        const TreeElement element = at.element();
        const std::uint64_t end = end_in(element.value);
        const bool is_live = end == 0 || Timestamp{Millis{static_cast<std::int64_t>(end)}} > now;
        if (is_live) add(Element{element.key, element.value});
      }
    });
  }
  for (std::size_t i = 0; i < ended; ++i) {
    erase_key(edit_.index().at(0).element().key.substr(end_skip));
  }
}

Decision HashTreeEdit::write(Timestamp key_end, std::size_t packed_max, std::string& to) {
  Decision decision{.action = Action::store, .kind = Kind::hash, .due = key_end, .value = {}};
  decision.no_memory = edit_.has_failed();
  if (decision.no_memory) return decision;
  const HashTrees hash = edit_.hash();
  SEMEL_ASSERT(hash.size() != 0);
  const HashEnds ends = hash.has_ends() ? hash.ends_with(key_end) : HashEnds{.key = key_end};
  decision.due = ends.due();
  if (hash.size() <= packed_fields_max / 2 &&
      bytes() <= std::min(packed_bytes_max / 2, packed_max)) {
    hash.pack(key_end, to);
    decision.value = to;
    return decision;
  }
  decision.no_memory = !edit_.finish(to);
  if (decision.no_memory) return decision;
  const LargeHashRules* const rules = &rules_of_trees();
  to.append(reinterpret_cast<const char*>(&rules), sizeof rules);
  if (hash.has_ends()) put_ends(to, ends);
  decision.value = to;
  decision.publication = &edit_;
  return decision;
}

}  // namespace semel::engine

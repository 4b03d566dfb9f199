#include "engine/hashes/hash_trim.hpp"

namespace semel::engine {

std::vector<HashChange> ended_fields(const HashView& hash, Timestamp now) {
  std::vector<HashChange> ended;
  hash.each([&](const HashView::Found& pair) {
    if (pair.due <= now) ended.push_back({pair.field, std::nullopt});
  });
  return ended;
}

Timestamp end_of_written(std::uint64_t seed, std::string& bytes) {
  const HashEnds ends = HashView{bytes}.ends();
  if (ends.first == no_end) bytes = without_ends(HashView{bytes}, seed);
  return ends.due();
}

Decision trim_hash(const RecordView& live, Timestamp now, std::string& scratch) {
  const HashView hash{live.value};
  if (!hash.has_ends() || hash.ends().first > now) return {};
  constexpr std::uint64_t no_index_is_made = 0;
  const std::vector<HashChange> ended = ended_fields(hash, now);
  const HashWriter writer{hash, ended, no_index_is_made};
  if (writer.fields() == 0) return {};  // the record has ended as well
  writer.write(scratch);
  const Timestamp due = end_of_written(no_index_is_made, scratch);
  return {
      .action = Action::store, .kind = Kind::hash, .due = due, .value = scratch, .gives_up = true};
}

}  // namespace semel::engine

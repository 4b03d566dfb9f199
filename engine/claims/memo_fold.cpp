// Memos of steps as releases before 0.2 kept them: the fields of one hash beside the claim, under
// "steps/" and the claim's key, which no namespace can have. One more field has the fingerprint of
// the payload that made them, algorithm and digest. Such a hash always had an end.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "engine/api/engine_impl.hpp"
#include "engine/core/core_update.hpp"
#include "engine/core/namespaces.hpp"
#include "engine/rules/claim_states.hpp"
#include "engine/rules/hash_value.hpp"
#include "engine/rules/memo_list.hpp"
#include "semel/engine_host.hpp"

namespace semel {
namespace {

using engine::Action;
using engine::ClaimFound;
using engine::Decision;
using engine::RecordView;

constexpr Bytes memo_key_prefix{"steps/"};
constexpr Bytes memo_maker_field{"\0payload", 8};
constexpr std::size_t memo_keys_at_once = 256;

[[nodiscard]] Fingerprint fingerprint_from(Bytes text) noexcept {
  Fingerprint made;
  if (text.size() != 1 + made.digest.size()) return made;
  made.algorithm = static_cast<std::uint8_t>(text.front());
  std::memcpy(made.digest.data(), text.data() + 1, made.digest.size());
  return made;
}

[[nodiscard]] std::string memos_from(Bytes hash) {
  const engine::HashView fields{hash};
  Fingerprint maker;
  if (const auto found = fields.find(memo_maker_field)) maker = fingerprint_from(found->value);
  std::string memos;
  fields.each([&](const engine::HashView::Found& each) {
    // A name longer than a step may have today cannot be asked for either.
    if (each.field == memo_maker_field || each.field.size() > limits::step_name_max) return;
    memos = engine::with_memo(memos, {.payload = maker, .step = each.field, .bytes = each.value});
  });
  return memos;
}

/// Of one claim, in a section over both keys.
class MemoFold {
 public:
  MemoFold(Engine& engine, std::uint8_t db, Bytes key)
      : impl_(engine::impl_of(engine)), db_(db), key_(key) {}

  /// Whether there was something to fold.
  [[nodiscard]] Result<bool> run() {
    SEMEL_CHECK(update(key_, [&](const RecordView* live) {
      if (live == nullptr || live->kind != Kind::hash || live->due == no_end) return Decision{};
      memos_ = memos_from(live->value);
      until_ = live->due;
      is_hash_ = true;
      return Decision{};
    }));
    if (!is_hash_) return false;
    SEMEL_CHECK(update(claim_key(), [&](const RecordView* live) { return into_claim(live); }));
    if (!is_of_claim_) return false;
    SEMEL_CHECK(update(key_, [](const RecordView*) {
      return Decision{.action = Action::erase, .kind = Kind::hash, .value = {}};
    }));
    return true;
  }

 private:
  [[nodiscard]] Bytes claim_key() const noexcept { return key_.substr(memo_key_prefix.size()); }

  /// A hash of a user may be called so as well: it is memos where there is the claim, or at least
  /// the namespace.
  [[nodiscard]] bool has_namespace() const {
    const Bytes name = claim_key().substr(0, claim_key().find(':'));
    const auto names = impl_.namespaces().find(name);
    return names && names->policy().db == db_ && name.size() < claim_key().size();
  }

  [[nodiscard]] Decision into_claim(const RecordView* live) {
    ClaimRecord record;
    const ClaimFound found = engine::read_claim(live, record);
    is_of_claim_ = found != ClaimFound::wrong_kind && (live != nullptr || has_namespace());
    if (!is_of_claim_ || memos_.empty()) return {};
    if (live == nullptr) return engine::store_vacant(0, 0, memos_, until_, scratch_);
    if (found == ClaimFound::claim && !engine::is_open(record)) return {};  // the work is over
    record.memos = memos_;
    return engine::store_claim(record, live->due, scratch_);
  }

  template <class Decide>
  [[nodiscard]] Status update(Bytes key, Decide&& decide) {
    Timestamp now = impl_.now();
    Version version = 0;
    const ErrorCode error = engine::update(
        impl_.core(), {db_, key}, now,
        [&](const RecordView* live, const auto&) -> Decision { return decide(live); }, version);
    if (error == ErrorCode::ok) return Done{};
    return Error{error, "memos of steps, key '" + std::string{key_} + "'"};
  }

  Engine::Impl& impl_;
  const std::uint8_t db_;
  const Bytes key_;
  engine::Scratch scratch_;
  std::string memos_;
  Timestamp until_{};
  bool is_hash_ = false;
  bool is_of_claim_ = false;
};

}  // namespace

[[gnu::cold]] Result<std::uint64_t> fold_memos(Engine& engine) {
  std::uint64_t folded = 0;
  for (std::uint8_t db = 0; db < limits::db_count; ++db) {
    std::uint64_t cursor = 0;
    do {
      std::vector<std::string> keys;
      SEMEL_TRY(
          next,
          engine.scan(
              cursor,
              {.db = db, .kind = Kind::hash, .prefix = memo_key_prefix, .count = memo_keys_at_once},
              [&](const ScanItem& item) { keys.emplace_back(item.key); }));
      for (const std::string& key : keys) {
        const Bytes claim_key = Bytes{key}.substr(memo_key_prefix.size());
        if (claim_key.empty()) continue;
        const std::array refs{KeyRef{db, claim_key}, KeyRef{db, key}};
        SEMEL_TRY(held, engine.section(refs));
        SEMEL_TRY(is_folded, MemoFold(engine, db, key).run());
        SEMEL_CHECK(held.commit());
        folded += is_folded ? 1 : 0;
      }
      cursor = next;
    } while (cursor != 0);
  }
  return folded;
}

}  // namespace semel

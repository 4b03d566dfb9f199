#include "engine/object_api/hash_fields.hpp"

#include <utility>

#include "engine/object_api/hash_step.hpp"

namespace semel::engine {

namespace {

FieldsChange change_of(const HashOutcome& out) noexcept {
  return {out.is_changed, out.is_changed && out.removes, out.is_changed && out.retimes,
          out.is_gone};
}

FieldAnswers answers(HashOutcome& out) {
  return {std::move(out.numbers), change_of(out)};
}
FieldsTaken taken(HashOutcome& out) {
  return {std::move(out.values), change_of(out)};
}

}  // namespace

Result<std::vector<std::optional<Timestamp>>> field_ends(Engine& engine, KeyRef key,
                                                         std::span<const Bytes> fields) {
  return run_hash(engine, key, {.verb = HashVerb::ends, .fields = fields},
                  [](HashOutcome& out) { return std::move(out.dues); });
}

Result<bool> has_field_ends(Engine& engine, KeyRef key) {
  return run_hash(engine, key, {.verb = HashVerb::ends},
                  [](HashOutcome& out) { return out.found_field; });
}

Result<FieldAnswers> expire_fields(Engine& engine, KeyRef key, std::span<const Bytes> fields,
                                   Expiry expiry, const ExpireRule& rule) {
  return run_hash(engine, key,
                  {.verb = HashVerb::expire, .fields = fields, .expiry = expiry, .rule = rule},
                  answers);
}

Result<FieldAnswers> persist_fields(Engine& engine, KeyRef key, std::span<const Bytes> fields) {
  return run_hash(engine, key, {.verb = HashVerb::persist, .fields = fields}, answers);
}

Result<FieldsTaken> get_and_delete_fields(Engine& engine, KeyRef key,
                                          std::span<const Bytes> fields) {
  return run_hash(engine, key, {.verb = HashVerb::get_del, .fields = fields}, taken);
}

Result<FieldsTaken> get_and_expire_fields(Engine& engine, KeyRef key, std::span<const Bytes> fields,
                                          const std::optional<Expiry>& expiry) {
  return run_hash(engine, key,
                  {.verb = HashVerb::get_ex,
                   .fields = fields,
                   .expiry = expiry.value_or(Expiry::clear()),
                   .retimes = expiry.has_value()},
                  taken);
}

Result<FieldsSet> set_fields(Engine& engine, KeyRef key, std::span<const FieldValue> pairs,
                             Expiry expiry, Condition condition) {
  return run_hash(
      engine, key,
      {.verb = HashVerb::set_ex, .pairs = pairs, .expiry = expiry, .condition = condition},
      [](HashOutcome& out) {
        return FieldsSet{!out.found_field, change_of(out)};
      });
}

}  // namespace semel::engine

#include "net/handlers/value_digest.hpp"

#include <string>

#include "base/assert.hpp"
#include "base/hex.hpp"
#include "engine/object_api/object_calls.hpp"
#include "engine/types/stream.hpp"
#include "net/scripts/script_text.hpp"
#include "semel/hashes.hpp"
#include "semel/section.hpp"
#include "semel/store.hpp"

namespace semel::net {

using engine::Element;
using engine::ObjectReader;

namespace {

/// Lengths are in the text, so that no two lists of parts have the same one.
ValueDigest::Bits hash_of_parts(Bytes before, std::initializer_list<Bytes> parts) {
  std::string text{before};
  for (const Bytes part : parts) text.append(std::to_string(part.size())).append(":").append(part);
  const std::string hex = sha1_hex(text);
  ValueDigest::Bits bits;
  SEMEL_ASSERT(hex.size() == 2 * bits.size());
  for (std::size_t i = 0; i < bits.size(); ++i) {
    bits[i] = static_cast<std::uint8_t>(base::hex_value(hex[2 * i]) << 4 |
                                        base::hex_value(hex[2 * i + 1]));
  }
  return bits;
}

/// Of the elements that count.
engine::Ranks ranks_in(const ObjectReader& object, Kind kind) {
  if (kind == Kind::stream) return engine::StreamReader{object}.entries();
  return {0, object.size()};
}

Status add_elements(Engine& engine, KeyRef key, Kind kind, ValueDigest& digest) {
  return engine::read_object(engine, key, kind, [&](const ObjectReader& object) {
    const engine::Ranks ranks = ranks_in(object, kind);
    object.each(ranks.from, ranks.to, [&](const Element& element) {
      digest.follow({element.key, element.value});
      return true;
    });
  });
}

Status add_fields(Engine& engine, KeyRef key, ValueDigest& digest) {
  const auto fields = engine.hashes(key.db).hgetall(key.key);
  if (!fields.ok()) return fields.error();
  // A field is there once. The order in which a hash keeps its fields is that of their arrival.
  for (const FieldValue& pair : *fields) digest.join({pair.field, pair.value});
  return Done{};
}

Status add_text(Engine& engine, KeyRef key, ValueDigest& digest) {
  return engine::read_string(engine, key, [&](const Bytes* value) {
    if (value != nullptr) digest.follow({*value});
  });
}

Status add_value(Engine& engine, KeyRef key, Kind kind, ValueDigest& digest) {
  switch (kind) {
    case Kind::string:
      return add_text(engine, key, digest);
    case Kind::hash:
      return add_fields(engine, key, digest);
    case Kind::list:
    case Kind::set:
    case Kind::sorted_set:
    case Kind::stream:
      return add_elements(engine, key, kind, digest);
    default:
      return Done{};
  }
}

}  // namespace

void ValueDigest::follow(std::initializer_list<Bytes> parts) {
  bits_ = hash_of_parts(bytes(), parts);
}

void ValueDigest::join(std::initializer_list<Bytes> parts) {
  const Bits more = hash_of_parts({}, parts);
  for (std::size_t i = 0; i < bits_.size(); ++i) bits_[i] ^= more[i];
}

Bytes ValueDigest::bytes() const noexcept {
  return {reinterpret_cast<const char*>(bits_.data()), bits_.size()};
}

Result<ValueDigest> digest_of_value(Engine& engine, KeyRef key) {
  // The kind, the value and the ttl are three reads, of one moment.
  const auto section = engine.section({&key, 1});
  if (!section.ok()) return section.error();
  Store store = engine.store(key.db);
  const auto kind = store.type(key.key);
  if (!kind.ok()) return kind.error();
  ValueDigest digest;
  if (!*kind) return digest;
  digest.follow({name_of(**kind)});
  if (const Status added = add_value(engine, key, **kind, digest); !added) return added.error();
  const auto ttl = store.ttl(key.key);
  if (!ttl.ok()) return ttl.error();
  if (ttl->has_ttl) digest.join({"ttl"});
  return digest;
}

}  // namespace semel::net

#include "engine/api/store_calls.hpp"

#include "engine/api/engine_impl.hpp"

namespace semel::store_calls {

Error explain(Engine& engine, const StoreOp& op, ErrorCode code) {
  const Options& options = engine::impl_of(engine).core().options();
  const auto limit = [](auto value, auto bound) {
    return std::to_string(value) + ", limit " + std::to_string(bound);
  };
  switch (code) {
    case ErrorCode::key_too_long:
      return {code, "bytes = " + limit(op.key.size(), options.key_bytes_max)};
    case ErrorCode::value_too_long:
      return {code, "bytes given = " + limit(op.value.size(), options.value_bytes_max)};
    case ErrorCode::db_out_of_range:
      return {code, "db = " + limit(unsigned{op.db}, limits::db_count - 1)};
    case ErrorCode::invalid_expire:
      return {code, "ttl = " + std::to_string(op.expiry.ttl().count()) + " ms, range 1.." +
                        std::to_string(limits::ttl_max.count())};
    case ErrorCode::offset_out_of_range:
      return {code, "offset = " + std::to_string(op.amount) + ", at least 0"};
    case ErrorCode::increment_overflow:
    case ErrorCode::decrement_overflow:
      return {code, "by = " + std::to_string(op.amount)};
    case ErrorCode::bad_digest:
      return {code, "digits given = " + std::to_string(op.operand.size())};
    case ErrorCode::memory_full:
      return {code, "limit " + std::to_string(options.memory_bytes) + " bytes"};
    default:
      return {code, {}};
  }
}

}  // namespace semel::store_calls

#include "tools/semel/dedup/line_batch.hpp"

#include <span>

#include "semel/engine_host.hpp"

namespace semel::tool {

LineBatch::LineBatch(const DedupOptions& options) : key_buffer_(new char[key_buffer_bytes]) {
  for (StoreOp& op : ops_) {
    op.verb = Verb::set;
    // Sliding: always written, so that the end moves; `found` shows the duplicates either way.
    op.condition = options.sliding ? Condition::always : Condition::if_absent;
    op.expiry = options.window ? Expiry::in(*options.window) : Expiry::clear();
  }
}

void LineBatch::add(Bytes line, std::uint64_t number, Bytes key, std::size_t key_end) noexcept {
  SEMEL_ASSERT(size_ < lines_max);
  if (key_end != 0) key_bytes_used_ = key_end;
  lines_[size_] = line;
  numbers_[size_] = number;
  ops_[size_].key = key;
  ++size_;
  check_invariants();
}

void LineBatch::ask(Engine& engine, std::size_t first) {
  const std::size_t count = size_ - first;
  engine.host().apply(std::span<const StoreOp>{&ops_[first], count},
                      std::span<StoreOutcome>{&outcomes_[first], count});
}

void LineBatch::ask_again(Engine& engine, std::size_t index) {
  engine.host().apply(ops_[index], outcomes_[index]);
}

void LineBatch::undo_behind(Engine& engine, std::size_t index) {
  for (std::size_t i = index + 1; i < size_; ++i) {
    if (outcomes_[i].error != ErrorCode::ok || outcomes_[i].found) continue;
    StoreOp undo;
    undo.verb = Verb::del;
    undo.key = ops_[i].key;
    StoreOutcome undone;
    engine.host().apply(undo, undone);
  }
}

}  // namespace semel::tool

// Reads a WriteBatch and accepts all of it; those who look for something override its calls.
#pragma once

#include <rocksdb/write_batch.h>

#include <cstdint>

namespace semel::storage {

/// The calls of RocksDB's own handler refuse some entries, and a handler that refuses a mark ends
/// the process where RocksDB has assertions.
class AcceptingHandler : public rocksdb::WriteBatch::Handler {
 public:
  using Slice = rocksdb::Slice;
  using RocksStatus = rocksdb::Status;

  RocksStatus PutCF(std::uint32_t, const Slice&, const Slice&) override { return {}; }
  RocksStatus PutEntityCF(std::uint32_t, const Slice&, const Slice&) override { return {}; }
  RocksStatus DeleteCF(std::uint32_t, const Slice&) override { return {}; }
  RocksStatus SingleDeleteCF(std::uint32_t, const Slice&) override { return {}; }
  RocksStatus DeleteRangeCF(std::uint32_t, const Slice&, const Slice&) override { return {}; }
  RocksStatus MergeCF(std::uint32_t, const Slice&, const Slice&) override { return {}; }
  RocksStatus PutBlobIndexCF(std::uint32_t, const Slice&, const Slice&) override { return {}; }
  void LogData(const Slice&) override {}
  RocksStatus MarkBeginPrepare(bool) override { return {}; }
  RocksStatus MarkEndPrepare(const Slice&) override { return {}; }
  RocksStatus MarkNoop(bool) override { return {}; }
  RocksStatus MarkRollback(const Slice&) override { return {}; }
  RocksStatus MarkCommit(const Slice&) override { return {}; }
  RocksStatus MarkCommitWithTimestamp(const Slice&, const Slice&) override { return {}; }
};

}  // namespace semel::storage

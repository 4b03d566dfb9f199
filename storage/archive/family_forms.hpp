// What the column families of a database were last opened with, as RocksDB has noted it in its file
// of options: the tools have no objects of the user's program.
#pragma once

#include <rocksdb/options.h>

#include <map>
#include <string>

namespace semel::storage {

struct FamilyForm {
  std::string comparator;      ///< its name
  std::string merge_operator;  ///< its name; empty: none
  std::string table;           ///< the form of its tables

  /// RocksDB has it itself.
  [[nodiscard]] bool has_known_order() const noexcept;
  [[nodiscard]] bool has_block_tables() const noexcept;
};

/// By name; empty where nothing can be read. `path`: of the database.
[[nodiscard]] std::map<std::string, FamilyForm> read_family_forms(const std::string& path);

/// `options`, with which a family of this form can be opened and its log read. An unknown merge
/// operator merges nothing, and an unknown comparator compares bytes: do not use data read from
/// such a family.
[[nodiscard]] rocksdb::ColumnFamilyOptions options_for(const FamilyForm& form,
                                                       rocksdb::ColumnFamilyOptions options);

}  // namespace semel::storage

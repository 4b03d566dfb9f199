// semel/rocksdb.hpp: a storage whose database the caller shares.
#include <string>
#include <utility>
#include <vector>

#include "storage/joint/joined_files.hpp"
#include "storage/storage_impl.hpp"

namespace semel {

namespace {

Status check_families(const std::vector<rocksdb::ColumnFamilyDescriptor>& families) {
  for (std::size_t i = 0; i < families.size(); ++i) {
    const std::string& name = families[i].name;
    const auto bad = [&](const std::string& what) {
      return Error{ErrorCode::bad_option, "column family '" + name + "' " + what};
    };
    if (name.empty()) return bad("has no name");
    if (storage::is_own_family(name)) return bad("is Semel's own");
    for (std::size_t j = 0; j < i; ++j) {
      if (families[j].name == name) return bad("is named twice");
    }
  }
  return Done{};
}

}  // namespace

Result<std::unique_ptr<Storage>> open_storage(
    const StorageOptions& options, const Clock& clock,
    std::vector<rocksdb::ColumnFamilyDescriptor> families) {
  SEMEL_CHECK(check_families(families));
  families.emplace_back(storage::joined_family, storage::joined_options());
  SEMEL_TRY(storage, Storage::Impl::open(options, clock, std::move(families)));
  StorageAccess::impl(*storage).joined().serve_user();
  return storage;
}

rocksdb::DB& database(Storage& storage) noexcept {
  return StorageAccess::impl(storage).joined().database();
}

rocksdb::ColumnFamilyHandle* family(Storage& storage, const std::string& name) noexcept {
  return storage::is_own_family(name) ? nullptr
                                      : StorageAccess::impl(storage).archive().family(name);
}

Result<JoinedOutcome> complete_joined(Storage& storage, Claims& claims, const OwnerCall& call,
                                      const rocksdb::WriteBatch& effects, Durability level) {
  Storage::Impl& impl = StorageAccess::impl(storage);
  if (impl.is_forked()) return Error{ErrorCode::forked, {}};
  return impl.joined().complete(claims, call, effects, level, &storage);
}

}  // namespace semel

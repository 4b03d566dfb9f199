// Libraries of functions (FUNCTION LOAD ..), as all threads of a node see them.
//
// Each thread that calls one runs the library's code in its own interpreter first. Those of a
// group are a part of its state, which this follows (docs/decisions/0056-functions-in-a-group.md);
// those of a node with a storage are kept by keep_by().
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.hpp"
#include "engine/logged/library_table.hpp"
#include "lua_compat/interpreter/interpreter.hpp"
#include "net/scripts/script_text.hpp"
#include "semel/result.hpp"

namespace semel::net {

using replication::LibraryChange;
using replication::LibraryFunction;
using replication::LibraryText;
using replication::LibraryVerdict;
using replication::SharedLibraryText;

/// Unchanging once it is shared.
struct Library {
  std::string id;  ///< what interpreters know it by; never used twice
  SharedLibraryText text;
  [[nodiscard]] const std::string& name() const noexcept { return text->name; }
};
using SharedLibrary = std::shared_ptr<const Library>;

/// The whole reply to a change that was refused.
[[nodiscard]] std::string error_of(LibraryChange::What what, const LibraryVerdict& verdict);

class FunctionStore {
 public:
  FunctionStore() = default;
  FunctionStore(const FunctionStore&) = delete;
  FunctionStore& operator=(const FunctionStore&) = delete;

  [[nodiscard]] std::string new_id();
  /// Carries out `change`; in a group, where it is decided already, the same again. `made`: of its
  /// libraries those that have an id; the others get one. std::bad_alloc: nothing has changed.
  /// Errors: those of keep_by(): nothing has changed.
  [[nodiscard]] Result<LibraryVerdict> change(const LibraryChange& change,
                                              const std::vector<SharedLibrary>& made = {});
  /// `keep` puts all libraries where a restart finds them, before a change of them is seen. It is
  /// called by one thread at a time.
  using Keep = std::function<Status(const std::vector<SharedLibraryText>&)>;
  void keep_by(Keep keep);

  struct Found {
    SharedLibrary library{};  ///< null: there is no such function
    const LibraryFunction* function = nullptr;
  };
  /// In any case of letters.
  [[nodiscard]] Found find(std::string_view function) const;
  /// By their names.
  [[nodiscard]] std::vector<SharedLibrary> all() const;
  struct Totals {
    std::size_t libraries = 0;
    std::size_t functions = 0;
    std::size_t bytes = 0;  ///< as the bound has them
  };
  [[nodiscard]] Totals totals() const;
  [[nodiscard]] bool has(std::string_view name) const;
  /// Whether a library with this id is there.
  [[nodiscard]] bool has_id(std::string_view name, std::string_view id) const;
  /// Changes when a library goes.
  [[nodiscard]] std::uint64_t generation() const noexcept {
    // mo: relaxed: a hint; what a call runs was looked up under the mutex.
    return generation_.load(std::memory_order_relaxed);
  }

 private:
  [[nodiscard]] LibraryVerdict apply(const LibraryChange& change,
                                     const std::vector<SharedLibrary>& made);
  void note(std::string_view name, std::vector<std::string>& functions) const
      SEMEL_REQUIRES(mutex_);

  mutable base::Mutex changing_;  // before mutex_
  Keep keep_ SEMEL_GUARDED_BY(changing_);
  mutable base::Mutex mutex_;
  replication::LibraryTable table_ SEMEL_GUARDED_BY(mutex_);  // it decides
  std::map<std::string, SharedLibrary, std::less<>> libraries_ SEMEL_GUARDED_BY(mutex_);
  std::map<std::string, Found, std::less<>> functions_
      SEMEL_GUARDED_BY(mutex_);  // by their names in small letters
  std::uint64_t ids_ SEMEL_GUARDED_BY(mutex_) = 0;
  std::atomic<std::uint64_t> generation_{0};
};

}  // namespace semel::net

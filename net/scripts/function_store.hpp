// Libraries of functions (FUNCTION LOAD ..), as all threads of a node see them.
//
// Each thread that calls one runs the library's code in its own interpreter first. Libraries live
// in memory alone.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.hpp"
#include "lua_compat/interpreter/interpreter.hpp"
#include "net/scripts/script_text.hpp"
#include "semel/result.hpp"

namespace semel::net {

struct LibraryFunction {
  std::string name;
  std::optional<std::string> description;
  std::vector<std::string> flag_words;  ///< in the order of ScriptFlag
  std::uint32_t flags = 0;              ///< of ScriptFlag
};

/// Unchanging once it is shared.
struct Library {
  std::string id;  ///< what interpreters know it by; never used twice
  std::string name;
  std::string code;  ///< with its first line
  std::size_t body_begin = 0;
  std::vector<LibraryFunction> functions;
};
using SharedLibrary = std::shared_ptr<const Library>;

/// What FUNCTION RESTORE does with libraries that are there.
enum class RestorePolicy : std::uint8_t { append, flush, replace };

/// The error of a library whose name is taken.
[[nodiscard]] Error library_exists(std::string_view name);

class FunctionStore {
 public:
  static constexpr std::size_t code_bytes_max = std::size_t{64} << 20;  ///< of all libraries

  FunctionStore() = default;
  FunctionStore(const FunctionStore&) = delete;
  FunctionStore& operator=(const FunctionStore&) = delete;

  [[nodiscard]] std::string new_id();
  /// Adds `library`. The detail of an error is the whole reply; nothing has changed then.
  [[nodiscard]] Status add(const SharedLibrary& library, bool replace);
  /// The same for several at once.
  [[nodiscard]] Status restore(const std::vector<SharedLibrary>& libraries, RestorePolicy policy);
  /// False: there is none.
  [[nodiscard]] bool remove(std::string_view name);
  void flush();

  struct Found {
    SharedLibrary library{};  ///< null: there is no such function
    const LibraryFunction* function = nullptr;
  };
  /// In any case of letters.
  [[nodiscard]] Found find(std::string_view function) const;
  /// By their names.
  [[nodiscard]] std::vector<SharedLibrary> all() const;
  [[nodiscard]] std::size_t function_count() const;
  /// Whether a library with this id is there.
  [[nodiscard]] bool has(std::string_view name) const;
  [[nodiscard]] bool has_id(std::string_view name, std::string_view id) const;
  /// Changes when a library goes.
  [[nodiscard]] std::uint64_t generation() const noexcept {
    // mo: relaxed: a hint; what a call runs was looked up under the mutex.
    return generation_.load(std::memory_order_relaxed);
  }

 private:
  /// Names of libraries that are about to go.
  using Replaced = std::set<std::string, std::less<>>;
  /// Whether `library` may stand beside the others, in the time of its own functions.
  [[nodiscard]] Status check(const Library& library, const Replaced& replaced) const
      SEMEL_REQUIRES(mutex_);
  void put(const SharedLibrary& library) SEMEL_REQUIRES(mutex_);
  bool drop(std::string_view name) SEMEL_REQUIRES(mutex_);

  mutable base::Mutex mutex_;
  std::map<std::string, SharedLibrary, std::less<>> libraries_ SEMEL_GUARDED_BY(mutex_);
  std::map<std::string, Found, std::less<>> functions_
      SEMEL_GUARDED_BY(mutex_);  // by their names in small letters
  std::size_t code_bytes_ SEMEL_GUARDED_BY(mutex_) = 0;
  std::uint64_t ids_ SEMEL_GUARDED_BY(mutex_) = 0;
  std::atomic<std::uint64_t> generation_{0};
};

/// All libraries as bytes: "semel functions 1\n", for each its length (8 bytes, little endian) and
/// its code, and the first 16 hex digits of the SHA-1 of all that.
[[nodiscard]] std::string dump_of(const std::vector<SharedLibrary>& libraries);
/// The codes in such bytes. None: they are not whole, or another server's.
[[nodiscard]] std::optional<std::vector<std::string>> codes_of(std::string_view dump);

}  // namespace semel::net

// A file that gets its name only when it is complete: it is written beside its place and renamed. A
// reader of the name finds the old content or all of the new, never a part; so the input may be the
// output. A killed run leaves the file beside, ".NAME.semel-XXXXXX".
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "semel/result.hpp"

namespace semel::tool {

/// The target of `path`: absolute, without symbolic links, also if it does not exist yet.
[[nodiscard]] std::filesystem::path resolved_path(const std::string& path, std::error_code& code);

class OutputFile {
 public:
  /// Follows a symbolic link: the file it leads to is replaced. A path that is not a plain file (a
  /// terminal, /dev/null, a named pipe) is opened as it is. The new file has the old one's mode.
  /// With `kept_path` the file beside has this name, is not emptied, and stays if it is not
  /// committed: another run continues with it.
  [[nodiscard]] static Result<std::unique_ptr<OutputFile>> open(const std::string& path,
                                                                const std::string& kept_path = {});
  /// Removes an uncommitted file.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// The descriptor, for a writer that closes it.
  [[nodiscard]] Result<int> duplicate_descriptor() const;
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  /// Synced, renamed, and the new name synced. Error: the old content is still there, unless it
  /// names the directory.
  [[nodiscard]] Status commit();
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  explicit OutputFile(std::string path) : path_(std::move(path)) {}
  [[nodiscard]] Error failed(const std::string& path) const;

  std::string path_;
  std::string beside_;  ///< empty: written in place, or committed
  bool is_kept_ = false;
  int descriptor_ = -1;
};

}  // namespace semel::tool

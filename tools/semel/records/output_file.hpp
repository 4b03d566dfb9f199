// A file that gets its name only when it is complete: it is written beside its place and renamed.
// A reader of the name finds what was there before or all of the new content, never a part; so the
// input may be the output. What is killed leaves the file beside, ".NAME.semel-XXXXXX".
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "semel/result.hpp"

namespace semel::tool {

/// Where `path` leads to: absolute, without symbolic links, also if nothing is there yet.
[[nodiscard]] std::filesystem::path resolved_path(const std::string& path, std::error_code& code);

class OutputFile {
 public:
  /// A symbolic link is followed: the file it leads to is replaced. What is not a plain file (a
  /// terminal, /dev/null, a named pipe) is opened as it is. The new file has the old one's mode.
  /// With `kept_path` the file beside has this name, is not emptied, and stays when it is not
  /// committed: another run goes on with it.
  [[nodiscard]] static Result<std::unique_ptr<OutputFile>> open(const std::string& path,
                                                                const std::string& kept_path = {});
  /// Removes what was not committed.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// For a writer, which closes it.
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

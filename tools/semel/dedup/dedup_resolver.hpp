// What the flags of `semel dedup` mean together: options, or why there are none.
#pragma once

#include <CLI/CLI.hpp>

#include "semel/result.hpp"
#include "tools/semel/dedup/dedup_flags.hpp"
#include "tools/semel/dedup/dedup_options.hpp"

namespace semel::tool {

class DedupResolver {
 public:
  /// `app` has parsed `flags`. Both outlive this.
  DedupResolver(const CLI::App& app, const DedupFlags& flags) noexcept : app_(app), flags_(flags) {}

  /// Errors: bad_option; its detail is the whole text.
  [[nodiscard]] Status resolve(DedupOptions& options) const;

 private:
  [[nodiscard]] Status resolve_format(LineRule& rule) const;
  [[nodiscard]] Status resolve_fields(LineRule& rule) const;
  [[nodiscard]] Status resolve_names(LineRule& rule) const;
  [[nodiscard]] Status check_names(const char* flag, const LineRule& rule) const;
  [[nodiscard]] Status resolve_missing(DedupOptions& options) const;
  [[nodiscard]] Status resolve_selection(DedupOptions& options) const;
  [[nodiscard]] Status resolve_output(DedupOptions& options) const;
  [[nodiscard]] Status resolve_resume(DedupOptions& options) const;
  [[nodiscard]] Status check_whole_input(const DedupOptions& options) const;
  [[nodiscard]] Status resolve_key(DedupOptions& options) const;
  [[nodiscard]] Status resolve_line_max(DedupOptions& options) const;
  [[nodiscard]] Status resolve_window(DedupOptions& options) const;
  [[nodiscard]] Status resolve_time(LineRule& rule) const;
  [[nodiscard]] bool given(const char* flag) const { return app_.count(flag) > 0; }

  const CLI::App& app_;
  const DedupFlags& flags_;
};

}  // namespace semel::tool

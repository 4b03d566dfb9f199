// CONFIG REWRITE: writes the values that CONFIG SET changed back into the file.
#pragma once

#include <string>

#include "net/settings/settings.hpp"
#include "semel/result.hpp"

namespace semel::net {

/// Writes the values that CONFIG SET changed into the TOML file `path`; empty: there is none. The
/// rest of the file stays the same, byte for byte. The file is replaced completely or not at all.
/// The detail of an error is the reply to CONFIG REWRITE.
[[nodiscard]] Status rewrite_config(const Settings& settings, const std::string& path);

/// The same of a redis.conf: a setting that CONFIG SET changed has one line with its value, in the
/// place of the first that it had, or at the end. All other lines stay. Error: a setting that
/// CONFIG SET changed is none of Redis'.
[[nodiscard]] Status rewrite_redis_conf(const Settings& settings, const std::string& path);
[[nodiscard]] Result<std::string> rewritten_redis_conf(const Settings& settings,
                                                       std::string_view content);

/// `content` with those values. Error: it is not TOML, or has a form in which they cannot be
/// changed without changing the rest.
[[nodiscard]] Result<std::string> rewritten(const Settings& settings, std::string content);

}  // namespace semel::net

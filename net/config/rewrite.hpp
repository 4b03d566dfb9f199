// CONFIG REWRITE: what CONFIG SET changed goes back into the file.
#pragma once

#include <optional>
#include <string>

#include "net/settings/settings.hpp"

namespace semel::net {

/// Writes what came from CONFIG SET into the TOML file `path`; empty: there is none. All else in
/// the file stays as it is, byte for byte. The file is replaced as a whole or not at all. Returns
/// the error for the reply.
[[nodiscard]] std::optional<std::string> rewrite_config(const Settings& settings,
                                                        const std::string& path);

/// The file's content with those values. None: it is not TOML, or of a form that cannot be changed
/// without harm to the rest.
[[nodiscard]] std::optional<std::string> rewritten(const Settings& settings, std::string content);

}  // namespace semel::net

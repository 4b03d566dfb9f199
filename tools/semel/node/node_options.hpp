// Converts the settings of a node into the options of its parts.
#pragma once

#include <optional>
#include <string>

#include "net/admin/admin_server.hpp"
#include "net/admin/log.hpp"
#include "net/server/options.hpp"
#include "net/settings/settings.hpp"
#include "semel/result.hpp"

namespace semel::tool {

[[nodiscard]] net::LogOptions log_options(const net::Settings& settings);
/// None: there is no such port.
[[nodiscard]] std::optional<net::AdminOptions> admin_options(const net::Settings& settings);
[[nodiscard]] net::ConnectionLimits connection_limits(const net::Settings& settings);
[[nodiscard]] net::TlsFiles tls_files(const net::Settings& settings);
[[nodiscard]] net::ServerOptions server_options(const net::Settings& settings);

/// `error` with a detail that is the whole text for the user. `where`: a file or directory; empty:
/// none.
[[nodiscard]] Error with_whole_text(const Error& error, const std::string& where = {});

}  // namespace semel::tool

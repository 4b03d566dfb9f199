#include "gateway/rules/route.hpp"

#include <algorithm>

#include "gateway/rules/head.hpp"
#include "gateway/rules/message.hpp"

namespace semel::gateway {
namespace {

Error bad_pattern(std::string_view pattern, const std::string& why) {
  return {ErrorCode::bad_option, "path '" + std::string{pattern} + "': " + why};
}

/// Whether `segment` matches a pattern that may have one '*'.
bool fits_segment(std::string_view pattern, std::string_view segment) noexcept {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == segment;
  if (pattern == "*") return !segment.empty();
  const std::string_view front = pattern.substr(0, star);
  const std::string_view back = pattern.substr(star + 1);
  return segment.size() >= front.size() + back.size() && segment.starts_with(front) &&
         segment.ends_with(back);
}

bool fits_segments(const std::vector<std::string>& segments, bool has_rest,
                   std::string_view path) noexcept {
  if (!path.starts_with('/')) return false;
  path.remove_prefix(1);
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const std::size_t slash = path.find('/');
    if (!fits_segment(segments[i], path.substr(0, slash))) return false;
    const bool is_last = slash == std::string_view::npos;
    if (i + 1 == segments.size()) return is_last || has_rest;
    if (is_last) return false;
    path.remove_prefix(slash + 1);
  }
  return has_rest;
}

/// Whether `wide` matches every segment that `narrow` matches, which may have a '*' itself.
bool covers_segment(std::string_view wide, std::string_view narrow) noexcept {
  const std::size_t star = wide.find('*');
  if (star == std::string_view::npos) return wide == narrow;
  if (wide == "*") return !narrow.empty();
  const std::size_t other = narrow.find('*');
  if (other == std::string_view::npos) return fits_segment(wide, narrow);
  return narrow.substr(0, other).starts_with(wide.substr(0, star)) &&
         narrow.substr(other + 1).ends_with(wide.substr(star + 1));
}

}  // namespace

Result<PathPattern> PathPattern::parse(std::string_view text) {
  if (!text.starts_with('/')) return bad_pattern(text, "it does not begin with '/'");
  if (text.find("//") != std::string_view::npos) return bad_pattern(text, "it has '//'");
  if (text.find_first_of("%?#\\") != std::string_view::npos) {
    return bad_pattern(text, "paths are compared decoded and without their query");
  }
  const Result<std::string> normal = normal_path(text);
  if (!normal) return bad_pattern(text, "no request has such a path: " + normal.error().detail);
  if (*normal != text) return bad_pattern(text, "paths are compared without parameters (';')");
  PathPattern made;
  made.text_ = text;
  std::string_view rest = text.substr(1);
  for (bool more = true; more;) {
    const std::size_t slash = rest.find('/');
    more = slash != std::string_view::npos;
    const std::string_view segment = rest.substr(0, slash);
    if (more) rest.remove_prefix(slash + 1);
    if (segment == "**") {
      if (more) return bad_pattern(text, "'**' is not at its end");
      made.has_rest_ = true;
    } else if (std::count(segment.begin(), segment.end(), '*') > 1) {
      return bad_pattern(text, "more than one '*' in a segment");
    } else {
      made.segments_.emplace_back(segment);
    }
  }
  if (made.segments_.size() > limits::path_segments_max) {
    return bad_pattern(text, std::to_string(made.segments_.size()) + " segments; the limit is " +
                                 std::to_string(limits::path_segments_max));
  }
  for (const std::string& each : made.segments_) {
    made.small_segments_.push_back(lower_case(each));
  }
  if (made.segments_.size() > 1 && made.segments_.back().empty()) made.small_segments_.pop_back();
  return made;
}

bool PathPattern::fits(std::string_view path) const noexcept {
  return fits_segments(segments_, has_rest_, path);
}

bool PathPattern::fits_laxly(std::string_view path) const noexcept {
  return fits_segments(small_segments_, has_rest_, path);
}

bool PathPattern::covers(const PathPattern& other) const noexcept {
  const std::size_t count = segments_.size();
  const bool has_more = other.segments_.size() > count || other.has_rest_;
  if (other.segments_.size() < count || (has_more && !has_rest_)) return false;
  return std::equal(segments_.begin(), segments_.end(), other.segments_.begin(), covers_segment);
}

bool Route::fits_method(std::string_view method) const noexcept {
  const auto is_named = [&](std::string_view each) {
    return std::find(methods.begin(), methods.end(), each) != methods.end();
  };
  return methods.empty() || is_named(method) || (method == "HEAD" && is_named("GET"));
}

bool Route::fits(std::string_view method, std::string_view normal_path) const noexcept {
  return fits_method(method) && path.fits(normal_path);
}

const Route* find_route(std::span<const Route> routes, std::string_view method,
                        std::string_view normal_path) noexcept {
  const auto found = std::find_if(routes.begin(), routes.end(), [&](const Route& route) {
    return route.fits(method, normal_path);
  });
  return found == routes.end() ? nullptr : &*found;
}

Meaning meaning_of_status(const Route& route, unsigned status) noexcept {
  const auto& released = route.release_statuses;
  if (std::find(released.begin(), released.end(), status) != released.end()) {
    return Meaning::release;
  }
  constexpr unsigned first_server_error = 500;
  return status >= first_server_error ? route.on_5xx : Meaning::keep;
}

Policy claim_policy(const Route& route) noexcept {
  if (route.guard == Guard::debounce) {
    Policy policy = policies::debounce;
    policy.lease = route.debounce;
    return policy;
  }
  Policy policy = route.guard == Guard::form_token ? policies::token : policies::call;
  policy.lease = route.lease;
  policy.result_ttl = route.keep_for;
  policy.failure_ttl = route.keep_for;
  policy.attempts_ttl = route.guard == Guard::form_token ? route.token_ttl : route.keep_for;
  policy.attempts_max = 0;
  policy.on_lease_end = route.on_lease_end == Meaning::in_doubt ? Policy::OnLeaseEnd::in_doubt
                                                                : Policy::OnLeaseEnd::retry;
  policy.on_exception = Policy::OnFailure::in_doubt;
  return policy;
}

}  // namespace semel::gateway

#include "gateway/proxy/access_log.hpp"

#include <spdlog/async.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <utility>

#include "gateway/core/json_text.hpp"

namespace semel::gateway {

class AccessLog::Inside {
 public:
  std::shared_ptr<spdlog::details::thread_pool> pool;
  std::shared_ptr<spdlog::async_logger> logger;
};

namespace {

constexpr std::size_t lines_max = 8'192;  // that wait to be written

}  // namespace

Result<std::unique_ptr<AccessLog>> AccessLog::open(const std::string& path) {
  auto inside = std::make_unique<Inside>();
  if (!path.empty()) {
    try {
      spdlog::sink_ptr sink;
      if (path == "-") {
        sink = std::make_shared<spdlog::sinks::stdout_sink_mt>();
      } else {
        sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path);
      }
      inside->pool = std::make_shared<spdlog::details::thread_pool>(lines_max, 1);
      inside->logger = std::make_shared<spdlog::async_logger>(
          "access", std::move(sink), inside->pool, spdlog::async_overflow_policy::overrun_oldest);
      inside->logger->set_pattern("%v");
      inside->logger->flush_on(spdlog::level::info);
    } catch (const spdlog::spdlog_ex& error) {
      return Error{ErrorCode::storage_failed, error.what()};
    }
  }
  return std::unique_ptr<AccessLog>{new AccessLog{std::move(inside)}};
}

AccessLog::AccessLog(std::unique_ptr<Inside> inside) : inside_(std::move(inside)) {}
AccessLog::~AccessLog() = default;

void AccessLog::write(const AccessLine& line) {
  if (inside_->logger == nullptr) return;
  std::string all = "{\"time\":" + std::to_string(line.unix_ms) + ",\"client\":";
  append_json(all, line.client);
  all += ",\"method\":";
  append_json(all, line.method);
  all += ",\"path\":";
  append_json(all, line.path);
  all += ",\"route\":";
  append_json(all, line.route);
  all += ",\"outcome\":";
  append_json(all, line.outcome);
  all += ",\"status\":" + std::to_string(line.status) + ",\"ms\":" + std::to_string(line.took_ms) +
         ",\"attempt\":" + std::to_string(line.attempt) + "}";
  inside_->logger->log(spdlog::level::info, all);
}

std::uint64_t AccessLog::lost() const {
  return inside_->pool == nullptr ? 0 : inside_->pool->overrun_counter();
}

}  // namespace semel::gateway

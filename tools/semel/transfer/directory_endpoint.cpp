// A storage in this process, with the commands of a node in front of it.
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/file_text.hpp"
#include "net/server/process.hpp"
#include "semel/clock.hpp"
#include "semel/storage.hpp"
#include "tools/semel/node/node_libraries.hpp"
#include "tools/semel/shared/exit_code.hpp"
#include "tools/semel/transfer/endpoint.hpp"

namespace semel::tool {

namespace {

class DirectoryEndpoint final : public Endpoint {
 public:
  [[nodiscard]] Status open(const EndpointOptions& options) {
    SEMEL_TRY(
        storage,
        Storage::open({.directory = options.directory, .own_files = {libraries_file}}, clock_));
    storage_ = std::move(storage);
    SEMEL_TRY(engine, Engine::open({.clock = &clock_,
                                    .journal = storage_.get(),
                                    .durability = Durability::logged,
                                    .memory_bytes = options.memory_bytes,
                                    .first_version = storage_->first_version()}));
    engine_ = std::move(engine);
    SEMEL_TRY(report, storage_->recover(*engine_));
    static_cast<void>(report);  // of claims without terms: a node warns of them
    SEMEL_TRY(redis, LocalRedis::open({.engine = engine_.get()}));
    redis_ = std::move(redis);
    return load_libraries(options.directory);
  }

  [[nodiscard]] Result<std::vector<Reply>> ask(std::span<const Words> requests) override {
    std::vector<Reply> replies = redis_->first().pipeline(requests);
    if (replies.size() != requests.size()) return data_error("a request has no reply");
    return replies;
  }

  [[nodiscard]] Status finish() override {
    SEMEL_TRY(dump, ask_one({"FUNCTION", "DUMP"}));
    const bool is_new = dump.text != libraries_;
    if (is_new && !net::replace_file(libraries_path_, dump.text)) {
      return file_error(libraries_path_ + " cannot be written");
    }
    libraries_ = dump.text;
    return engine_->confirm(Durability::synced);
  }

 private:
  /// As a node with this storage has them.
  [[nodiscard]] Status load_libraries(const std::string& directory) {
    libraries_path_ = directory + "/" + libraries_file;
    const auto dump = base::read_file(libraries_path_);
    if (dump) {
      SEMEL_TRY(reply, ask_one({"FUNCTION", "RESTORE", *dump, "FLUSH"}));
      if (reply.is_error()) return data_error(libraries_path_ + ": " + reply.text);
    }
    SEMEL_TRY(now, ask_one({"FUNCTION", "DUMP"}));
    libraries_ = now.text;
    return Done{};
  }

  // In the order of their dependencies.
  SystemClock clock_;
  std::unique_ptr<Storage> storage_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<LocalRedis> redis_;
  std::string libraries_path_;
  std::string libraries_;  // as the file has them
};

}  // namespace

Result<std::unique_ptr<Endpoint>> open_directory(const EndpointOptions& options) {
  const std::string& directory = options.directory;
  if (std::error_code code;
      !options.makes_directory && (std::filesystem::is_empty(directory, code) || code)) {
    return file_error(directory + ": there is no storage");  // open() would make one
  }
  auto endpoint = std::make_unique<DirectoryEndpoint>();
  if (const Status opened = endpoint->open(options); !opened) {
    const Error& error = opened.error();
    const std::string why = error.detail.empty() ? error.message() : error.detail;
    return Error{error.code, why.starts_with(directory) ? why : directory + ": " + why};
  }
  return std::unique_ptr<Endpoint>{std::move(endpoint)};
}

}  // namespace semel::tool

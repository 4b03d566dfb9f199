#include "tools/semel/transfer/endpoint.hpp"

#include <utility>

#include "tools/semel/shared/exit_code.hpp"

namespace semel::tool {

namespace {

/// Of the replies to one batch. A value has 512 MiB at most.
constexpr std::size_t transfer_reply_bytes_max = std::size_t{1} << 30;

class NodeEndpoint final : public Endpoint {
 public:
  NodeEndpoint(std::unique_ptr<GroupClient> client, const EndpointOptions& options)
      : client_(std::move(client)), address_(options.address), patience_(options.patience) {}

  [[nodiscard]] Result<std::vector<Reply>> ask(std::span<const Words> requests) override {
    return client_->ask_all(address_, requests, transfer_reply_bytes_max,
                            std::chrono::steady_clock::now() + patience_);
  }

 private:
  const std::unique_ptr<GroupClient> client_;
  const std::string address_;
  const std::chrono::seconds patience_;
};

}  // namespace

Result<Reply> Endpoint::ask_one(const Words& request) {
  SEMEL_TRY(replies, ask({&request, 1}));
  if (replies.empty()) return data_error("no reply to " + request.front());
  return std::move(replies.front());
}

Result<std::unique_ptr<Endpoint>> open_endpoint(const EndpointOptions& options) {
  if (!options.directory.empty()) return open_directory(options);
  SEMEL_TRY(client, GroupClient::open(options.client));
  auto endpoint = std::make_unique<NodeEndpoint>(std::move(client), options);
  SEMEL_TRY(pong, endpoint->ask_one({"PING"}));
  if (pong.is_error()) return file_error(options.address + ": " + pong.text);
  return std::unique_ptr<Endpoint>{std::move(endpoint)};
}

}  // namespace semel::tool

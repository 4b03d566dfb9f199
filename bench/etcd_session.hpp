// One connection to etcd: claims as transactions of its KV service, over HTTP/2 by nghttp2. Replies
// are turned into those that Redis gives to SET NX GET, so that one load drives all servers and
// none pays for a heavier client.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace semel::bench {

class EtcdSession {
 public:
  EtcdSession();
  ~EtcdSession();
  EtcdSession(const EtcdSession&) = delete;
  EtcdSession& operator=(const EtcdSession&) = delete;

  /// Asks for `key` if it is absent, and for its value otherwise. Sent by take_output.
  void claim(std::string_view key, std::string_view value);

  /// Moves what is to be sent to the end of `out`.
  void take_output(std::string& out);

  /// Takes what has arrived, and appends the replies that ended with it: "$-1" granted, "$N" with
  /// the value that is there, "-..." an error. False: the connection is of no use any more.
  bool receive(std::string_view bytes, std::string& replies);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Whether this program was built with nghttp2; without it no session can be made.
bool etcd_is_available();

}  // namespace semel::bench

// Replaces the endpoint of a directory, if the program is built without the storage.
#include "tools/semel/shared/exit_code.hpp"
#include "tools/semel/transfer/endpoint.hpp"

namespace semel::tool {

Result<std::unique_ptr<Endpoint>> open_directory(const EndpointOptions&) {
  return usage_error("this build has no storage, so no --dir");
}

}  // namespace semel::tool

// A directory of its own for a proof, in memory where that is possible: the proofs bring their own
// disk, and a real one would only be slow. It goes when the proof ends.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace semel::faults {

class Scratch {
 public:
  Scratch() {
    std::error_code code;
    const bool memory = std::filesystem::is_directory("/dev/shm", code);
    std::string name = memory ? "/dev/shm" : std::filesystem::temp_directory_path(code).string();
    name += "/semel_faults_XXXXXX";
    if (mkdtemp(name.data()) == nullptr) {
      std::perror(name.c_str());
      std::_Exit(3);
    }
    path_ = name;
  }
  ~Scratch() {
    std::error_code code;  // what cannot be removed stays
    std::filesystem::remove_all(path_, code);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace semel::faults

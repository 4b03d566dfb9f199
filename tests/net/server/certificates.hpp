// Authorities and certificates for a test, made on the spot.
#pragma once

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

namespace semel::tests {

struct FreeKey {
  void operator()(EVP_PKEY* key) const noexcept { EVP_PKEY_free(key); }
};
struct FreeCertificate {
  void operator()(X509* certificate) const noexcept { X509_free(certificate); }
};

/// A key and its certificate, signed by itself or by another one.
class Identity {
 public:
  /// `uri`: its subjectAltName; empty: it has none.
  explicit Identity(const std::string& name, const Identity* authority = nullptr,
                    const std::string& uri = {});

  [[nodiscard]] EVP_PKEY* key() const noexcept { return key_.get(); }
  [[nodiscard]] X509* certificate() const noexcept { return certificate_.get(); }
  /// Writes PATH.crt and PATH.key, that one under a password unless it is empty.
  void save(const std::string& path, const std::string& password = {}) const;

 private:
  std::unique_ptr<EVP_PKEY, FreeKey> key_;
  std::unique_ptr<X509, FreeCertificate> certificate_;
};

}  // namespace semel::tests

#include "tests/net/server/certificates.hpp"

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include "tests/support/catch.hpp"

namespace semel::tests {

namespace {

void add_extension(X509* certificate, int kind, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value);
  REQUIRE(extension != nullptr);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

}  // namespace

Identity::Identity(const std::string& name, const Identity* authority, const std::string& uri)
    : key_(EVP_EC_gen("P-256")), certificate_(X509_new()) {
  REQUIRE(key_ != nullptr);
  X509* const made = certificate_.get();
  static_assert(sizeof(long) == 8);
  constexpr long day = 24L * 3600;
  X509_set_version(made, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(made), authority == nullptr ? 1 : 2);
  X509_gmtime_adj(X509_getm_notBefore(made), -day);
  X509_gmtime_adj(X509_getm_notAfter(made), day);
  X509_set_pubkey(made, key_.get());
  const auto* const text = reinterpret_cast<const unsigned char*>(name.c_str());
  X509_NAME* const subject = X509_get_subject_name(made);
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, text, -1, -1, 0);
  X509* const issuer = authority == nullptr ? made : authority->certificate();
  X509_set_issuer_name(made, X509_get_subject_name(issuer));
  if (authority == nullptr) add_extension(made, NID_basic_constraints, "critical,CA:TRUE");
  if (!uri.empty()) add_extension(made, NID_subject_alt_name, ("URI:" + uri).c_str());
  EVP_PKEY* const signer = authority == nullptr ? key_.get() : authority->key();
  REQUIRE(X509_sign(made, signer, EVP_sha256()) != 0);
}

void Identity::save(const std::string& path, const std::string& password) const {
  FILE* file = std::fopen((path + ".crt").c_str(), "w");
  REQUIRE(file != nullptr);
  CHECK(PEM_write_X509(file, certificate_.get()) == 1);
  std::fclose(file);
  file = std::fopen((path + ".key").c_str(), "w");
  REQUIRE(file != nullptr);
  const auto* const text = reinterpret_cast<const unsigned char*>(password.data());
  const EVP_CIPHER* const cipher = password.empty() ? nullptr : EVP_aes_256_cbc();
  CHECK(PEM_write_PrivateKey(file, key_.get(), cipher, password.empty() ? nullptr : text,
                             static_cast<int>(password.size()), nullptr, nullptr) == 1);
  std::fclose(file);
}

}  // namespace semel::tests

// What is signed, by the vectors of the RFCs and by what another implementation computes.
#include "semel/patterns/signed_request.hpp"

#include <map>
#include <random>
#include <string>
#include <vector>
#include "tests/support/catch.hpp"

using namespace semel;

namespace {

std::string hex_of(const Fingerprint& fingerprint) {
  std::string hex;
  for (const std::uint8_t byte : fingerprint.digest) {
    hex += "0123456789abcdef"[byte >> 4U];
    hex += "0123456789abcdef"[byte & 15U];
  }
  return hex;
}

}  // namespace

TEST_CASE("signed_request: HMAC-SHA-256 is that of RFC 4231", "[patterns][signed]") {
  std::string counting;
  for (char c = 1; c <= 25; ++c) counting += c;
  CHECK(hmac_sha256_hex(std::string(20, '\x0b'), "Hi There") ==
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  CHECK(hmac_sha256_hex("Jefe", "what do ya want for nothing?") ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  CHECK(hmac_sha256_hex(std::string(20, '\xaa'), std::string(50, '\xdd')) ==
        "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
  CHECK(hmac_sha256_hex(counting, std::string(50, '\xcd')) ==
        "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
  CHECK(hmac_sha256_hex(std::string(131, '\xaa'),
                        "Test Using Larger Than Block-Size Key - Hash Key First") ==
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  CHECK(hmac_sha256_hex(std::string(131, '\xaa'),
                        "This is a test using a larger than block-size key and a larger than "
                        "block-size data. The key needs to be hashed before being used by the HMAC "
                        "algorithm.") ==
        "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
  CHECK(hmac_sha256_hex({}, {}) ==
        "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

TEST_CASE("signed_request: MD5 is that of RFC 1321", "[patterns][signed]") {
  CHECK(md5_hex("") == "d41d8cd98f00b204e9800998ecf8427e");
  CHECK(md5_hex("a") == "0cc175b9c0f1b6a831c399e269772661");
  CHECK(md5_hex("abc") == "900150983cd24fb0d6963f7d28e17f72");
  CHECK(md5_hex("message digest") == "f96b697d7cb7938d525a2f31aaf161d0");
  CHECK(md5_hex("abcdefghijklmnopqrstuvwxyz") == "c3fcd3d76192e4007dfb496cca67e13b");
  CHECK(md5_hex("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789") ==
        "d174ab98d277d9f5a5611c2c9f419d9f");
  CHECK(
      md5_hex("12345678901234567890123456789012345678901234567890123456789012345678901234567890") ==
      "57edf4a22be3c955ac49da2e2107b67a");
}

TEST_CASE("signed_request: texts are equal, or differ in a byte or in length",
          "[patterns][signed]") {
  CHECK(equal_in_constant_time("", ""));
  CHECK(equal_in_constant_time("abc", "abc"));
  CHECK_FALSE(equal_in_constant_time("abc", "abd"));
  CHECK_FALSE(equal_in_constant_time("abc", "bbc"));
  CHECK_FALSE(equal_in_constant_time("abc", "ab"));
  CHECK_FALSE(equal_in_constant_time("", "a"));
}

TEST_CASE("signed_request: SHA-256 fingerprints are the first half of the digest",
          "[patterns][signed]") {
  CHECK(hex_of(fingerprint_sha256("abc")) == "ba7816bf8f01cfea414140de5dae2223");
  CHECK(hex_of(fingerprint_sha256({})) == "e3b0c44298fc1c149afbf4c8996fb924");
  CHECK(fingerprint_sha256("abc").algorithm == 2);
  CHECK(fingerprint_sha256("{}", FingerprintAlgorithm::sha256_json).algorithm == 7);
  CHECK(hex_of(fingerprint_sha256(Scope{.tenant = "t"}, "p")) ==
        "70a49244d056798ac15a5ac9faef8db7");
  CHECK(fingerprint_sha256(Scope{}, "p") == fingerprint_sha256("p"));
  CHECK(fingerprint_sha256(Scope{.tenant = "ab", .user = "c"}, "p") !=
        fingerprint_sha256(Scope{.tenant = "a", .user = "bc"}, "p"));
}

TEST_CASE("signed_request: parameters have one text in any order, and no two sets share one",
          "[patterns][signed]") {
  CHECK(canonical_parameters({}).empty());
  CHECK(canonical_parameters(std::vector<KeyField>{
            {"b", "x y"}, {"a", "2"}, {"a", "1"}, {"A-._~9", "\xc3\xbc&=%+/"}}) ==
        "A-._~9=%C3%BC%26%3D%25%2B%2F&a=1&a=2&b=x%20y");

  std::mt19937_64 random{Catch::rngSeed()};
  std::map<std::string, std::multimap<std::string, std::string>> seen;
  const auto text = [&] {
    std::string made(random() % 3, ' ');
    for (char& c : made) c = "a=&%"[random() % 4];
    return made;
  };
  for (int round = 0; round < 10'000; ++round) {
    std::vector<std::pair<std::string, std::string>> pairs(random() % 3);
    for (auto& [name, value] : pairs) name = text(), value = text();
    std::sort(pairs.begin(), pairs.end());
    std::vector<KeyField> fields{};
    for (const auto& [name, value] : pairs) fields.push_back({name, value});
    std::shuffle(fields.begin(), fields.end(), random);
    const std::multimap<std::string, std::string> all{pairs.begin(), pairs.end()};
    const auto [other, is_new] = seen.try_emplace(canonical_parameters(fields), all);
    INFO(other->first);
    REQUIRE((is_new || other->second == all));
  }
}

TEST_CASE("signed_request: signatures are those that another implementation computes",
          "[patterns][signed]") {
  const std::vector<KeyField> parameters{{"b", "x y"}, {"a", "1"}};
  SignedRequest request{.caller = "shop/7",
                        .parameters = parameters,
                        .timestamp_unix_ms = 1'700'000'000'000,
                        .nonce = "n:1"};
  CHECK(signature_of(request, "secret") ==
        "2f589ef63485775bd64421fd279adb5cd532f9ee38afc65dbdc992ca72db51d3");
  CHECK(signature_of(request, "secret", SignatureScheme::md5_sorted_parameters) ==
        "4d3150509d0b1bc44ebe7ab4650eb27a");
  request.caller = {};
  CHECK(signature_of(request, "secret", SignatureScheme::md5_sorted_parameters) ==
        "ea9ebfa956ee4ec30443d7789e5dfc27");
}

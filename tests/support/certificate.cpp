#include "support/certificate.hpp"

#include "support/child_process.hpp"

namespace outbox::test {

std::optional<Certificate> make_certificate(const TempDir& folder, const std::string& names) {
  const Certificate made{.file = folder.file("certificate.pem"), .key = folder.file("key.pem")};
  ChildProcess openssl(ChildProcess::Options{
      .command = {"/usr/bin/env", "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                  "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                  "-addext", "subjectAltName=" + names, "-out", made.file, "-keyout", made.key},
      .output = folder.file("openssl.log")});
  if (openssl.wait() != 0) return std::nullopt;
  return made;
}

}  // namespace outbox::test

//===- Sha256.h - Content hashes --------------------------------*- C++ -*-===//

#ifndef TOKENTILE_RUNTIME_SHA256_H
#define TOKENTILE_RUNTIME_SHA256_H

#include <string>
#include <string_view>

namespace tokentile {

/// SHA-256 (FIPS 180-4) of `bytes` as 64 lower-case hexadecimal digits.
std::string sha256(std::string_view bytes);

} // namespace tokentile

#endif // TOKENTILE_RUNTIME_SHA256_H

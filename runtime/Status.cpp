//===- Status.cpp - Errors as values --------------------------------------===//

#include "runtime/Status.h"

using namespace tokentile;

const char *tokentile::statusCodeName(StatusCode code) {
  switch (code) {
  case StatusCode::Ok:
    return "ok";
  case StatusCode::InvalidArgument:
    return "invalid argument";
  case StatusCode::NotFound:
    return "not found";
  case StatusCode::OutOfRange:
    return "out of range";
  case StatusCode::FailedPrecondition:
    return "failed precondition";
  case StatusCode::Unavailable:
    return "unavailable";
  case StatusCode::ResourceExhausted:
    return "resource exhausted";
  case StatusCode::CompileError:
    return "compile error";
  case StatusCode::NotCovered:
    return "not covered";
  case StatusCode::DataError:
    return "data error";
  case StatusCode::DriverError:
    return "driver error";
  }
  return "unknown";
}

std::string Status::toString() const {
  if (ok())
    return statusCodeName(statusCode);
  return std::string(statusCodeName(statusCode)) + ": " + text;
}

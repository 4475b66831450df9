//===- Status.h - Errors as values ------------------------------*- C++ -*-===//
//
// Every fallible call of the runtime returns a Status or a StatusOr<T>. The
// runtime never throws, exits, aborts or prints. A message is one line, starts
// in lower case, names the axis and the value, and says what would work.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_RUNTIME_STATUS_H
#define TOKENTILE_RUNTIME_STATUS_H

#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace tokentile {

enum class StatusCode {
  Ok,
  /// An argument is wrong on its own: a null pointer, an unknown name.
  InvalidArgument,
  /// A named thing does not exist: a file, a kernel, a symbol.
  NotFound,
  /// A value lies beyond a bound that was planned or that hardware sets.
  OutOfRange,
  /// The calls came in an order that cannot work.
  FailedPrecondition,
  /// This machine lacks what was asked for: a GPU, a driver, a library.
  Unavailable,
  /// Memory, workspace or shared memory does not suffice.
  ResourceExhausted,
  /// Source or PTX was refused by a compiler.
  CompileError,
  /// The spec is sound and the generator does not cover it.
  NotCovered,
  /// Stored data is damaged or of another format.
  DataError,
  /// The GPU driver reported an error.
  DriverError,
};

/// The name of a code in lower-case words, e.g. "invalid argument".
const char *statusCodeName(StatusCode code);

/// The outcome of a call. Cheap to copy when ok.
class [[nodiscard]] Status {
public:
  /// Success.
  Status() = default;
  /// A failure; `code` must not be Ok.
  Status(StatusCode code, std::string message)
      : statusCode(code), text(std::move(message)) {}

  bool ok() const { return statusCode == StatusCode::Ok; }
  StatusCode code() const { return statusCode; }
  /// Empty when ok.
  const std::string &message() const { return text; }
  /// "ok", or "<code name>: <message>".
  std::string toString() const;

private:
  StatusCode statusCode = StatusCode::Ok;
  std::string text;
};

/// Either a value or the Status that says why there is none.
template <typename T>
class [[nodiscard]] StatusOr {
public:
  /// A failure; `status` must not be ok.
  StatusOr(Status status) : failure(std::move(status)) {}
  /// A value, from anything that converts to T.
  template <typename U = T, typename = std::enable_if_t<
                                std::is_convertible_v<U &&, T> &&
                                !std::is_same_v<std::decay_t<U>, Status> &&
                                !std::is_same_v<std::decay_t<U>, StatusOr<T>>>>
  StatusOr(U &&u) : held(std::in_place, std::forward<U>(u)) {}

  bool ok() const { return held.has_value(); }
  /// Ok when there is a value.
  const Status &status() const { return failure; }

  /// REQUIRES: ok().
  T &operator*() & { return *held; }
  const T &operator*() const & { return *held; }
  T &&operator*() && { return *std::move(held); }
  T *operator->() { return &*held; }
  const T *operator->() const { return &*held; }

private:
  Status failure;
  std::optional<T> held;
};

} // namespace tokentile

#endif // TOKENTILE_RUNTIME_STATUS_H

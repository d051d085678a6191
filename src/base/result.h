// Result<T>: what every function returns that can fail on its input.
//
// Named after std::expected so that a later C++23 build needs one alias. We throw nothing: damaged input is the
// normal case here, so failure belongs in the signature, and the drop-in runs under C frames.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/values.h"

namespace oomscope {

// Cannot go on. `code` is stable and kebab-case (tests and scripts match it), `what` is one lower-case sentence,
// `where` names file, byte offset or event, `hint` is the next step as a command or an action. Only `hint` may be
// empty. Each of the three is a key of src/words/ ("error.file-not-found"), said with `values`, or a text that is the
// same in every language: a path, a command, PyTorch's own words.
struct Error {
  std::string code;
  std::string what;
  std::string where;
  std::string hint;
  Values values = {};
};

// Success without a value, for Result<Done>.
struct Done {};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  [[nodiscard]] bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }
  T& operator*() & { return *std::get_if<0>(&state_); }
  const T& operator*() const& { return *std::get_if<0>(&state_); }
  T&& operator*() && { return std::move(*std::get_if<0>(&state_)); }
  T* operator->() { return std::get_if<0>(&state_); }
  const T* operator->() const { return std::get_if<0>(&state_); }
  Error& error() & { return *std::get_if<1>(&state_); }
  const Error& error() const& { return *std::get_if<1>(&state_); }

 private:
  std::variant<T, Error> state_;
};

#define OOM_CONCAT_INNER(a, b) a##b
#define OOM_CONCAT(a, b) OOM_CONCAT_INNER(a, b)
// OOM_TRY(T name, expression): declares `name` from the value, or returns the error to the caller.
#define OOM_TRY(declaration, ...) OOM_TRY_INNER(OOM_CONCAT(oom_try_, __LINE__), declaration, __VA_ARGS__)
#define OOM_TRY_INNER(temporary, declaration, ...)                 \
  auto temporary = (__VA_ARGS__);                                  \
  if (!temporary.has_value()) return std::move(temporary.error()); \
  declaration = *std::move(temporary)

}  // namespace oomscope

// TokenReader: a pickle as a stream of typed tokens. Decodes bytes and changes no state but its own position; what a
// token means is up to the machine that pulls it (src/evidence/snapshot_machine.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "pickle/byte_window.h"

namespace oomscope {

enum class TokenKind : uint8_t {
  integer,  // bits, is_negative
  real,     // bits of a double
  none,
  boolean,  // bits is 0 or 1
  text,     // text
  opaque,   // bytes, integers of more than 64 bits: pushed, never looked at
  mark,
  empty_list,
  empty_dict,
  empty_set,
  tuple,  // bits elements, 0 to 3
  tuple_from_mark,
  list_from_mark,
  dict_from_mark,
  frozenset_from_mark,
  append,
  appends,
  setitem,
  setitems,
  additems,
  pop,
  pop_mark,
  dup,
  get,  // bits is the memo index
  put,  // bits is the memo index
  memoize,
  ignored,  // PROTO, FRAME
  stop,
};

struct Token {
  TokenKind kind = TokenKind::ignored;
  bool is_negative = false;
  uint64_t bits = 0;      // two's complement for integers
  std::string_view text;  // points into the window: good until the next token
};

// Where and why the pickle stopped making sense. Not an Error: what came before it may be worth having.
struct Damage {
  std::string what;  // a key of src/words/
  Values values;     // "byte" among them: where
};

class TokenReader {
 public:
  // Longer text is cut to this length; `cut_texts` counts how often.
  static constexpr size_t kMaxTextBytes = size_t{64} << 10;

  explicit TokenReader(ByteWindow& window) : window_(window) {}

  // False: no further token, and either damage() or refusal() says why.
  bool next(Token& token);
  [[nodiscard]] const std::optional<Damage>& damage() const { return damage_; }
  // An opcode that would execute something, or a protocol that we do not read. Its values have the byte.
  [[nodiscard]] const std::optional<Error>& refusal() const { return refusal_; }
  [[nodiscard]] uint64_t token_offset_bytes() const { return token_offset_; }
  [[nodiscard]] int64_t cut_texts() const { return cut_texts_; }
  // `what` is "error.pickle.WHAT".
  bool fail(std::string_view what, Values values = {});

 private:
  bool read_argument(uint8_t byte, Token& token);
  bool read_container(uint8_t byte, Token& token);
  bool read_text(uint64_t length_bytes, Token& token);
  bool read_opaque(uint64_t length_bytes, Token& token);
  bool read_long(uint64_t length_bytes, Token& token);
  bool read_fixed(size_t length_bytes, uint64_t& value);
  bool read_protocol();
  bool refuse(uint8_t byte);

  ByteWindow& window_;
  uint64_t token_offset_ = 0;
  int64_t cut_texts_ = 0;
  std::optional<Damage> damage_;
  std::optional<Error> refusal_;
};

}  // namespace oomscope

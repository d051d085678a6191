#include "pickle/token_reader.h"

#include <algorithm>

#include "pickle/load.h"
#include "pickle/opcode.h"

namespace oomscope {

bool TokenReader::fail(std::string_view what, Values values) {
  if (damage_.has_value()) return false;
  damage_ = Damage{"error.pickle." + std::string(what), std::move(values)};
  damage_->values.emplace_back("byte", std::to_string(token_offset_));
  return false;
}

bool TokenReader::next(Token& token) {
  token_offset_ = window_.offset();
  if (!window_.ensure(1)) {
    if (!window_.source_error().has_value()) return fail("ends-here");
    const bool failed = fail("source", window_.source_error()->values);
    damage_->what = window_.source_error()->what;
    return failed;
  }
  uint8_t byte = *window_.cursor();
  window_.advance(1);
  token.is_negative = false;
  token.bits = 0;
  return read_container(byte, token) || (!damage_.has_value() && read_argument(byte, token));
}

// The opcodes without an argument. False: not one of them.
bool TokenReader::read_container(uint8_t byte, Token& token) {
  auto is = [&token](TokenKind kind, uint64_t bits = 0) {
    token.kind = kind;
    token.bits = bits;
    return true;
  };
  switch (static_cast<Opcode>(byte)) {
    case Opcode::memoize: return is(TokenKind::memoize);
    case Opcode::mark: return is(TokenKind::mark);
    case Opcode::setitems: return is(TokenKind::setitems);
    case Opcode::empty_dict: return is(TokenKind::empty_dict);
    case Opcode::empty_list: return is(TokenKind::empty_list);
    case Opcode::appends: return is(TokenKind::appends);
    case Opcode::append: return is(TokenKind::append);
    case Opcode::setitem: return is(TokenKind::setitem);
    case Opcode::none: return is(TokenKind::none);
    case Opcode::newtrue: return is(TokenKind::boolean, 1);
    case Opcode::newfalse: return is(TokenKind::boolean, 0);
    case Opcode::empty_tuple: return is(TokenKind::tuple, 0);
    case Opcode::tuple1: return is(TokenKind::tuple, 1);
    case Opcode::tuple2: return is(TokenKind::tuple, 2);
    case Opcode::tuple3: return is(TokenKind::tuple, 3);
    case Opcode::tuple: return is(TokenKind::tuple_from_mark);
    case Opcode::list: return is(TokenKind::list_from_mark);
    case Opcode::dict: return is(TokenKind::dict_from_mark);
    case Opcode::frozenset: return is(TokenKind::frozenset_from_mark);
    case Opcode::empty_set: return is(TokenKind::empty_set);
    case Opcode::additems: return is(TokenKind::additems);
    case Opcode::pop: return is(TokenKind::pop);
    case Opcode::pop_mark: return is(TokenKind::pop_mark);
    case Opcode::dup: return is(TokenKind::dup);
    case Opcode::stop: return is(TokenKind::stop);
    default: return false;
  }
}

bool TokenReader::read_argument(uint8_t byte, Token& token) {
  uint64_t value = 0;
  auto is = [&token](TokenKind kind, uint64_t bits) {
    token.kind = kind;
    token.bits = bits;
    return true;
  };
  switch (static_cast<Opcode>(byte)) {
    case Opcode::binget: return read_fixed(1, value) && is(TokenKind::get, value);
    case Opcode::long_binget: return read_fixed(4, value) && is(TokenKind::get, value);
    case Opcode::binput: return read_fixed(1, value) && is(TokenKind::put, value);
    case Opcode::long_binput: return read_fixed(4, value) && is(TokenKind::put, value);
    case Opcode::binint1: return read_fixed(1, value) && is(TokenKind::integer, value);
    case Opcode::binint2: return read_fixed(2, value) && is(TokenKind::integer, value);
    case Opcode::binint: {
      if (!read_fixed(4, value)) return false;
      int64_t extended = static_cast<int32_t>(static_cast<uint32_t>(value));
      token.is_negative = extended < 0;
      return is(TokenKind::integer, static_cast<uint64_t>(extended));
    }
    case Opcode::long1: return read_fixed(1, value) && read_long(value, token);
    case Opcode::long4: return read_fixed(4, value) && read_long(value, token);
    case Opcode::binfloat: return read_fixed(8, value) && is(TokenKind::real, __builtin_bswap64(value));
    case Opcode::short_binunicode:
    case Opcode::short_binstring: return read_fixed(1, value) && read_text(value, token);
    case Opcode::binunicode:
    case Opcode::binstring: return read_fixed(4, value) && read_text(value, token);
    case Opcode::binunicode8: return read_fixed(8, value) && read_text(value, token);
    case Opcode::short_binbytes: return read_fixed(1, value) && read_opaque(value, token);
    case Opcode::binbytes: return read_fixed(4, value) && read_opaque(value, token);
    case Opcode::binbytes8:
    case Opcode::bytearray8: return read_fixed(8, value) && read_opaque(value, token);
    case Opcode::proto: return read_protocol() && is(TokenKind::ignored, 0);
    case Opcode::frame: return read_fixed(8, value) && is(TokenKind::ignored, 0);  // lengths help only seekers
    default: return refuse(byte);
  }
}

bool TokenReader::read_fixed(size_t length_bytes, uint64_t& value) {
  if (!window_.ensure(length_bytes)) return fail("ends-in-argument");
  value = load_u64(window_.cursor());
  if (length_bytes < 8) value &= (uint64_t{1} << (8 * length_bytes)) - 1;
  window_.advance(length_bytes);
  return true;
}

bool TokenReader::read_text(uint64_t length_bytes, Token& token) {
  size_t kept = static_cast<size_t>(std::min<uint64_t>(length_bytes, kMaxTextBytes));
  if (kept < length_bytes) {
    // Skip first, so that the view stays good; the text itself must go then. Such text is no name of anything.
    ++cut_texts_;
    token.kind = TokenKind::opaque;
    return window_.skip(length_bytes) || fail("ends-in-text", {{"length", std::to_string(length_bytes)}});
  }
  if (!window_.ensure(kept)) return fail("ends-in-text", {{"length", std::to_string(length_bytes)}});
  token.kind = TokenKind::text;
  token.text = {reinterpret_cast<const char*>(window_.cursor()), kept};
  window_.advance(kept);
  return true;
}

bool TokenReader::read_opaque(uint64_t length_bytes, Token& token) {
  token.kind = TokenKind::opaque;
  return window_.skip(length_bytes) || fail("ends-in-data", {{"length", std::to_string(length_bytes)}});
}

// Little-endian two's complement of any length. Up to 64 bits we keep: signed in 8 bytes, or unsigned in 9 with a
// zero on top, which is how Python writes 2^63 and more.
bool TokenReader::read_long(uint64_t length_bytes, Token& token) {
  if (length_bytes > 9) return read_opaque(length_bytes, token);
  size_t length = static_cast<size_t>(length_bytes);
  if (!window_.ensure(length)) return fail("ends-in-integer");
  const uint8_t* bytes = window_.cursor();
  window_.advance(length);
  token.kind = TokenKind::integer;
  if (length == 0) return true;
  if (length == 9) {
    if (bytes[8] != 0) token.kind = TokenKind::opaque;
    token.bits = load_u64(bytes);
    return true;
  }
  unsigned shift = static_cast<unsigned>(64 - 8 * length);
  int64_t value = static_cast<int64_t>(load_u64(bytes) << shift) >> shift;
  token.bits = static_cast<uint64_t>(value);
  token.is_negative = value < 0;
  return true;
}

bool TokenReader::read_protocol() {
  uint64_t protocol = 0;
  if (!read_fixed(1, protocol)) return false;
  if (protocol >= 2 && protocol <= 5) return true;
  if (token_offset_ != 0) return fail("second-header");
  refusal_ = Error{"pickle-unsupported",
                   "error.pickle-protocol",
                   "",
                   "error.dump-snapshot",
                   {{"protocol", std::to_string(protocol)}, {"byte", "0"}}};
  return false;
}

bool TokenReader::refuse(uint8_t byte) {
  const Values values = {{"opcode", std::string(opcode_name(byte))}, {"byte", std::to_string(token_offset_)}};
  switch (opcode_class(byte)) {
    case OpcodeClass::executes:
      refusal_ =
          Error{"pickle-would-execute", "error.pickle-would-execute", "", "error.pickle-would-execute.hint", values};
      return false;
    case OpcodeClass::textual:
      refusal_ = Error{"pickle-unsupported", "error.pickle-protocol-0", "", "error.dump-snapshot", values};
      return false;
    case OpcodeClass::unknown:
    case OpcodeClass::data: break;
  }
  constexpr std::string_view kDigits = "0123456789abcdef";
  return fail("no-opcode", {{"value", std::string("0x") + kDigits[byte >> 4] + kDigits[byte & 15]}});
}

}  // namespace oomscope

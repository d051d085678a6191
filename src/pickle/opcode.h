// The opcodes of Python's pickle, protocols 0 to 5 (Python 3.13, Lib/pickle.py), and what we do with each.
#pragma once

#include <cstdint>
#include <string_view>

namespace oomscope {

enum class OpcodeClass : uint8_t {
  data,      // part of the subset that we decode
  executes,  // would import or call something: refused
  textual,   // protocol 0 with text arguments: not written by any snapshot, refused
  unknown,   // no opcode: the bytes are damaged
};

enum class Opcode : uint8_t {
  mark = '(',
  stop = '.',
  pop = '0',
  pop_mark = '1',
  dup = '2',
  binint = 'J',
  binint1 = 'K',
  binint2 = 'M',
  none = 'N',
  binfloat = 'G',
  binstring = 'T',
  short_binstring = 'U',
  binunicode = 'X',
  append = 'a',
  appends = 'e',
  setitem = 's',
  setitems = 'u',
  dict = 'd',
  empty_dict = '}',
  list = 'l',
  empty_list = ']',
  tuple = 't',
  empty_tuple = ')',
  binget = 'h',
  long_binget = 'j',
  binput = 'q',
  long_binput = 'r',
  binbytes = 'B',
  short_binbytes = 'C',
  proto = 0x80,
  tuple1 = 0x85,
  tuple2 = 0x86,
  tuple3 = 0x87,
  newtrue = 0x88,
  newfalse = 0x89,
  long1 = 0x8a,
  long4 = 0x8b,
  short_binunicode = 0x8c,
  binunicode8 = 0x8d,
  binbytes8 = 0x8e,
  empty_set = 0x8f,
  additems = 0x90,
  frozenset = 0x91,
  memoize = 0x94,
  frame = 0x95,
  bytearray8 = 0x96,
};

[[nodiscard]] OpcodeClass opcode_class(uint8_t byte);
// The name in Python's pickletools, or "?" for a byte that is no opcode.
[[nodiscard]] std::string_view opcode_name(uint8_t byte);

}  // namespace oomscope

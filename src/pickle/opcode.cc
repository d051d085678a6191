#include "pickle/opcode.h"

#include <array>

namespace oomscope {
namespace {

struct Entry {
  uint8_t byte;
  OpcodeClass opcode_class;
  std::string_view name;
};

constexpr OpcodeClass kData = OpcodeClass::data;
constexpr OpcodeClass kExecutes = OpcodeClass::executes;
constexpr OpcodeClass kTextual = OpcodeClass::textual;

// NEXT_BUFFER and READONLY_BUFFER ask for memory from outside the file, PERSID and EXT* for objects from a registry
// of the program: none of them can be answered without running something of the writer's choice.
constexpr std::array kEntries = {
    Entry{'(', kData, "MARK"},
    Entry{'.', kData, "STOP"},
    Entry{'0', kData, "POP"},
    Entry{'1', kData, "POP_MARK"},
    Entry{'2', kData, "DUP"},
    Entry{'F', kTextual, "FLOAT"},
    Entry{'I', kTextual, "INT"},
    Entry{'J', kData, "BININT"},
    Entry{'K', kData, "BININT1"},
    Entry{'L', kTextual, "LONG"},
    Entry{'M', kData, "BININT2"},
    Entry{'N', kData, "NONE"},
    Entry{'P', kExecutes, "PERSID"},
    Entry{'Q', kExecutes, "BINPERSID"},
    Entry{'R', kExecutes, "REDUCE"},
    Entry{'S', kTextual, "STRING"},
    Entry{'T', kData, "BINSTRING"},
    Entry{'U', kData, "SHORT_BINSTRING"},
    Entry{'V', kTextual, "UNICODE"},
    Entry{'X', kData, "BINUNICODE"},
    Entry{'a', kData, "APPEND"},
    Entry{'b', kExecutes, "BUILD"},
    Entry{'c', kExecutes, "GLOBAL"},
    Entry{'d', kData, "DICT"},
    Entry{'}', kData, "EMPTY_DICT"},
    Entry{'e', kData, "APPENDS"},
    Entry{'g', kTextual, "GET"},
    Entry{'h', kData, "BINGET"},
    Entry{'i', kExecutes, "INST"},
    Entry{'j', kData, "LONG_BINGET"},
    Entry{'l', kData, "LIST"},
    Entry{']', kData, "EMPTY_LIST"},
    Entry{'o', kExecutes, "OBJ"},
    Entry{'p', kTextual, "PUT"},
    Entry{'q', kData, "BINPUT"},
    Entry{'r', kData, "LONG_BINPUT"},
    Entry{'s', kData, "SETITEM"},
    Entry{'t', kData, "TUPLE"},
    Entry{')', kData, "EMPTY_TUPLE"},
    Entry{'u', kData, "SETITEMS"},
    Entry{'G', kData, "BINFLOAT"},
    Entry{'B', kData, "BINBYTES"},
    Entry{'C', kData, "SHORT_BINBYTES"},
    Entry{0x80, kData, "PROTO"},
    Entry{0x81, kExecutes, "NEWOBJ"},
    Entry{0x82, kExecutes, "EXT1"},
    Entry{0x83, kExecutes, "EXT2"},
    Entry{0x84, kExecutes, "EXT4"},
    Entry{0x85, kData, "TUPLE1"},
    Entry{0x86, kData, "TUPLE2"},
    Entry{0x87, kData, "TUPLE3"},
    Entry{0x88, kData, "NEWTRUE"},
    Entry{0x89, kData, "NEWFALSE"},
    Entry{0x8a, kData, "LONG1"},
    Entry{0x8b, kData, "LONG4"},
    Entry{0x8c, kData, "SHORT_BINUNICODE"},
    Entry{0x8d, kData, "BINUNICODE8"},
    Entry{0x8e, kData, "BINBYTES8"},
    Entry{0x8f, kData, "EMPTY_SET"},
    Entry{0x90, kData, "ADDITEMS"},
    Entry{0x91, kData, "FROZENSET"},
    Entry{0x92, kExecutes, "NEWOBJ_EX"},
    Entry{0x93, kExecutes, "STACK_GLOBAL"},
    Entry{0x94, kData, "MEMOIZE"},
    Entry{0x95, kData, "FRAME"},
    Entry{0x96, kData, "BYTEARRAY8"},
    Entry{0x97, kExecutes, "NEXT_BUFFER"},
    Entry{0x98, kExecutes, "READONLY_BUFFER"},
};

struct Table {
  std::array<OpcodeClass, 256> classes{};
  std::array<std::string_view, 256> names{};
};

constexpr Table make_table() {
  Table table;
  table.classes.fill(OpcodeClass::unknown);
  table.names.fill("?");
  for (const Entry& entry : kEntries) {
    table.classes[entry.byte] = entry.opcode_class;
    table.names[entry.byte] = entry.name;
  }
  return table;
}

constexpr Table kTable = make_table();

}  // namespace

OpcodeClass opcode_class(uint8_t byte) { return kTable.classes[byte]; }
std::string_view opcode_name(uint8_t byte) { return kTable.names[byte]; }

}  // namespace oomscope

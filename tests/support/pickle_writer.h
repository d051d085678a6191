// PickleWriter: values written as Python's own pickler writes them, so that tests show snapshots as they look in
// Python. Text is shared through the memo by content, other values where the test says so (Pickled::shared).
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace oomscope {

struct Pickled {
  using List = std::vector<Pickled>;
  using Dict = std::vector<std::pair<std::string, Pickled>>;
  struct Pair {
    uint64_t first;
    uint64_t second;
  };
  struct Raw {
    std::string bytes;  // opcodes as they are
  };
  std::variant<uint64_t, int64_t, double, bool, std::string, List, Dict, Pair, Raw> value;
  std::shared_ptr<int> identity;  // values with the same one are one object

  Pickled(int number) : value(int64_t{number}) {}
  Pickled(int64_t number) : value(number) {}
  Pickled(uint64_t number) : value(number) {}
  Pickled(double number) : value(number) {}
  Pickled(bool truth) : value(truth) {}
  Pickled(const char* text) : value(std::string(text)) {}
  Pickled(std::string text) : value(std::move(text)) {}
  Pickled(List list) : value(std::move(list)) {}
  Pickled(Dict dict) : value(std::move(dict)) {}
  Pickled(Pair pair) : value(pair) {}
  Pickled(Raw raw) : value(std::move(raw)) {}
  [[nodiscard]] Pickled shared() const {
    Pickled copy = *this;
    copy.identity = std::make_shared<int>(0);
    return copy;
  }
};

class PickleWriter {
 public:
  explicit PickleWriter(int protocol = 4) : protocol_(protocol) {}

  std::string write(const Pickled& value) {
    out_ = {'\x80', static_cast<char>(protocol_)};
    put(value);
    return out_ + '.';
  }

 private:
  void put_number(uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) out_ += static_cast<char>(value >> (8 * i));
  }

  void memoize() {
    if (protocol_ >= 4) {
      out_ += '\x94';
    } else {
      out_ += next_memo_ < 256 ? 'q' : 'r';
      put_number(next_memo_, next_memo_ < 256 ? 1 : 4);
    }
    ++next_memo_;
  }

  void get(uint32_t index) {
    out_ += index < 256 ? 'h' : 'j';
    put_number(index, index < 256 ? 1 : 4);
  }

  void put(const Pickled& pickled) {
    if (pickled.identity != nullptr) {
      auto [found, is_new] = shared_.try_emplace(pickled.identity.get(), next_memo_);
      if (!is_new) return get(found->second);
    }
    std::visit([this](const auto& value) { put_value(value); }, pickled.value);
  }

  void put_value(uint64_t value) {
    if (value <= static_cast<uint64_t>(INT64_MAX)) return put_value(static_cast<int64_t>(value));
    out_ += "\x8a\x09";
    put_number(value, 8);
    out_ += '\0';
  }

  void put_value(int64_t value) {
    if (value >= 0 && value < 256) {
      out_ += 'K';
      put_number(static_cast<uint64_t>(value), 1);
    } else if (value >= 0 && value < 65536) {
      out_ += 'M';
      put_number(static_cast<uint64_t>(value), 2);
    } else if (value == static_cast<int32_t>(value)) {
      out_ += 'J';
      put_number(static_cast<uint64_t>(value), 4);
    } else {
      int bytes = 5;
      while (bytes < 8 && (value >> (8 * bytes - 1)) != (value < 0 ? -1 : 0)) ++bytes;
      out_ += '\x8a';
      put_number(static_cast<uint64_t>(bytes), 1);
      put_number(static_cast<uint64_t>(value), bytes);
    }
  }

  void put_value(double value) {
    uint64_t bits;
    std::memcpy(&bits, &value, 8);
    out_ += 'G';
    put_number(__builtin_bswap64(bits), 8);
  }

  void put_value(bool value) { out_ += value ? '\x88' : '\x89'; }
  void put_value(const Pickled::Raw& raw) { out_ += raw.bytes; }

  void put_value(const std::string& text) {
    auto [found, is_new] = texts_.try_emplace(text, next_memo_);
    if (!is_new) return get(found->second);
    bool is_short = protocol_ >= 4 && text.size() < 256;
    out_ += is_short ? '\x8c' : 'X';
    put_number(text.size(), is_short ? 1 : 4);
    out_ += text;
    memoize();
  }

  void put_value(const Pickled::Pair& pair) {
    put_value(pair.first);
    put_value(pair.second);
    out_ += '\x86';
    memoize();
  }

  // Python writes containers in batches of 1000, and a batch of one without a MARK.
  template <class Container, class PutItem>
  void put_batches(const Container& items, char one, char many, PutItem put_item) {
    constexpr size_t kBatch = 1000;
    for (size_t begin = 0; begin < items.size(); begin += kBatch) {
      size_t end = std::min(items.size(), begin + kBatch);
      if (end - begin > 1) out_ += '(';
      for (size_t i = begin; i < end; ++i) put_item(items[i]);
      out_ += end - begin > 1 ? many : one;
    }
  }

  void put_value(const Pickled::List& list) {
    out_ += ']';
    memoize();
    put_batches(list, 'a', 'e', [this](const Pickled& item) { put(item); });
  }

  void put_value(const Pickled::Dict& dict) {
    out_ += '}';
    memoize();
    put_batches(dict, 's', 'u', [this](const std::pair<std::string, Pickled>& item) {
      put_value(item.first);
      put(item.second);
    });
  }

  int protocol_;
  std::string out_;
  uint32_t next_memo_ = 0;
  std::map<std::string, uint32_t> texts_;
  std::map<const int*, uint32_t> shared_;
};

}  // namespace oomscope

// A pickle inside a page of PyTorch's memory_viz: the longest part of such a page is one base64 text,
//
//   ... local_files = [{"name": "snapshot.pickle", "base64": "gASVAgEAAAAAAAB9lCiMCHNl...AAAA"}] ...
//
// and a pickle's first bytes, 0x80 and a protocol from 2 to 5, always encode to "gA" and one of I to X. We look for
// that behind a quote, so nothing else of the page needs to be understood, and decode until the quote ends it.
#include <array>
#include <utility>

#include "evidence/byte_source.h"

namespace oomscope {
namespace {

constexpr uint8_t kNoDigit = 255;

constexpr std::array<uint8_t, 256> make_digits() {
  std::array<uint8_t, 256> digits{};
  digits.fill(kNoDigit);
  constexpr const char* kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (uint8_t i = 0; i < 64; ++i) digits[static_cast<uint8_t>(kAlphabet[i])] = i;
  return digits;
}

constexpr std::array<uint8_t, 256> kDigits = make_digits();

class HtmlPickleSource final : public ByteSource {
 public:
  explicit HtmlPickleSource(std::unique_ptr<ByteSource> page) : page_(std::move(page)), buffer_(size_t{64} << 10) {}

  Result<size_t> read(std::span<uint8_t> out) override {
    size_t given = 0;
    while (given < out.size() && !is_over_) {
      if (begin_ == end_) {
        OOM_TRY(const bool is_filled, fill());
        is_over_ = !is_filled;
        continue;
      }
      if (state_ < 4) {
        find_start();
      } else {
        given += decode(out.subspan(given));
      }
    }
    return given;
  }

  [[nodiscard]] bool would_wait() override { return begin_ == end_ && page_->would_wait(); }

  // The start alone may be a word of the page's script; this many digits of base64 are none.
  [[nodiscard]] bool has_another() override {
    constexpr int kLongText = 64;
    bool is_rest = true;  // of the first
    int length = 0;
    while (true) {
      if (begin_ == end_) {
        const Result<bool> is_filled = fill();
        if (!is_filled.has_value() || !*is_filled) return false;
      }
      if (state_ < 4) {
        find_start();
        length = 0;
        continue;
      }
      const uint8_t byte = buffer_[begin_++];
      if (kDigits[byte] == kNoDigit) {
        state_ = is_quote(byte) ? 1 : 0;
        is_rest = false;
      } else if (!is_rest && ++length == kLongText) {
        return true;
      }
    }
  }

 private:
  static bool is_quote(uint8_t byte) { return byte == '"' || byte == '\''; }

  // False: the page ends here.
  Result<bool> fill() {
    OOM_TRY(end_, page_->read(buffer_));
    begin_ = 0;
    return end_ > 0;
  }

  // Four characters make the start: a quote, 'g', 'A', and one of 'I' to 'X'. state_ says how many were seen.
  void find_start() {
    while (begin_ < end_ && state_ < 4) {
      uint8_t byte = buffer_[begin_++];
      bool fits = (state_ == 0 && is_quote(byte)) || (state_ == 1 && byte == 'g') || (state_ == 2 && byte == 'A') ||
                  (state_ == 3 && byte >= 'I' && byte <= 'X');
      state_ = fits ? state_ + 1 : (is_quote(byte) ? 1 : 0);
      if (state_ == 4) bits_ = (uint32_t{kDigits['g']} << 12) | (uint32_t{kDigits['A']} << 6) | kDigits[byte];
    }
    digits_ = state_ == 4 ? 3 : 0;
  }

  size_t decode(std::span<uint8_t> out) {
    size_t given = 0;
    while (given < out.size()) {
      if (pending_bytes_ > 0) {
        out[given++] = static_cast<uint8_t>(bits_ >> (8 * --pending_bytes_));
        continue;
      }
      if (begin_ == end_) break;
      uint8_t digit = kDigits[buffer_[begin_++]];
      if (digit == kNoDigit) {
        finish_group();
        if (pending_bytes_ == 0) break;
        continue;
      }
      bits_ = (bits_ << 6) | digit;
      if (++digits_ == 4) {
        digits_ = 0;
        pending_bytes_ = 3;
      }
    }
    return given;
  }

  // A group of two or three digits before the padding has one or two bytes.
  void finish_group() {
    is_over_ = digits_ < 2;
    if (digits_ < 2) return;
    bits_ >>= digits_ == 2 ? 4 : 2;
    pending_bytes_ = digits_ - 1;
    digits_ = 0;
  }

  std::unique_ptr<ByteSource> page_;
  std::vector<uint8_t> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  int state_ = 0;
  uint32_t bits_ = 0;
  int digits_ = 0;         // of the current group
  int pending_bytes_ = 0;  // decoded into bits_, not yet given
  bool is_over_ = false;
};

}  // namespace

std::unique_ptr<ByteSource> html_pickle_source(std::unique_ptr<ByteSource> page) {
  return std::make_unique<HtmlPickleSource>(std::move(page));
}

bool looks_like_page(std::span<const uint8_t> front) {
  size_t start = 0;
  while (start < front.size() && (front[start] <= ' ' || front[start] >= 0x80)) ++start;
  std::string head;
  for (uint8_t byte : front.subspan(start, std::min<size_t>(front.size() - start, 16))) {
    head += byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte + 32) : static_cast<char>(byte);
  }
  return head.starts_with("<!doctype") || head.starts_with("<html") || head.starts_with("<script") ||
         head.starts_with("<!--") || head.starts_with("<head");
}

}  // namespace oomscope

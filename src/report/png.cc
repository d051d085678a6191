// PNG without a browser: shapes become coverage, coverage becomes pixels. The rasteriser is that of stb_truetype, which
// takes any outline; letters come from the embedded font.
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>

#include "report/drawing.h"
#include "report/embedded_files.h"

#define STB_TRUETYPE_IMPLEMENTATION
#define STBTT_STATIC
#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#define STBI_WRITE_NO_STDIO
namespace {
unsigned char* deflate_for_stb(unsigned char* data, int length, int* packed_length, int /*quality*/) {
  uLongf size = compressBound(static_cast<uLong>(length));
  auto* packed = static_cast<unsigned char*>(std::malloc(size));  // stb frees it
  if (packed == nullptr || compress2(packed, &size, data, static_cast<uLong>(length), 9) != Z_OK) {
    std::free(packed);
    return nullptr;
  }
  *packed_length = static_cast<int>(size);
  return packed;
}
}  // namespace
#define STBIW_ZLIB_COMPRESS deflate_for_stb
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#include <stb/stb_image_write.h>
#include <stb/stb_truetype.h>
#pragma GCC diagnostic pop

namespace oomscope {
namespace {

constexpr double kScale = 2;      // pixels a unit
constexpr double kSubpixels = 8;  // outlines are whole numbers of these

struct Colour {
  int red = 0;
  int green = 0;
  int blue = 0;
};

Colour colour_of(const std::string& name) {
  const std::string hex = name == kInk ? "#1c2127" : name == kFaint ? "#d4d8dd" : name == kPaper ? "#ffffff" : name;
  const long value = std::strtol(hex.c_str() + 1, nullptr, 16);
  return {static_cast<int>(value >> 16 & 255), static_cast<int>(value >> 8 & 255), static_cast<int>(value & 255)};
}

// One UTF-8 character, and how many bytes it took.
std::pair<int, size_t> decode(const std::string& text, size_t at) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0; };
  const int lead = byte(at);
  if (lead < 0xc0) return {lead, 1};
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  int code = lead & (0xff >> (length + 1));
  for (size_t i = 1; i < length; ++i) code = code << 6 | (byte(at + i) & 0x3f);
  return {code, length};
}

class Canvas {
 public:
  Canvas(double width, double height)
      : width_(static_cast<int>(width * kScale)),
        height_(static_cast<int>(height * kScale)),
        pixels_(static_cast<size_t>(width_) * static_cast<size_t>(height_) * 3, 255),
        coverage_(static_cast<size_t>(width_) * static_cast<size_t>(height_), 0) {
    const std::string_view font = embedded_font();
    stbtt_InitFont(&font_, reinterpret_cast<const unsigned char*>(font.data()), 0);
  }

  void operator()(const Polygon& shape) { fill(shape.points, colour_of(shape.colour), shape.opacity); }

  // Each stretch is a thin quadrilateral; joints overlap by half the width.
  void operator()(const Path& path) {
    const Colour colour = colour_of(path.colour);
    const double dash = path.dashed ? 5 : 1e9;
    for (size_t i = 1; i < path.points.size(); ++i) {
      const Point a = path.points[i - 1];
      const Point b = path.points[i];
      const double length = std::sqrt((b.x - a.x) * (b.x - a.x) + (b.y - a.y) * (b.y - a.y));
      if (length == 0) continue;
      const Point along{(b.x - a.x) / length, (b.y - a.y) / length};
      for (double at = 0; at < length; at += dash + 4) {
        const double end = std::min(at + dash, length);
        stroke({a.x + along.x * at, a.y + along.y * at}, {a.x + along.x * end, a.y + along.y * end}, along, path.width,
               colour);
      }
    }
  }

  void operator()(const Label& label) {
    const float scale = stbtt_ScaleForMappingEmToPixels(&font_, static_cast<float>(label.size * kScale));
    double width = 0;
    for (size_t at = 0; at < label.text.size();) {
      const auto [code, length] = decode(label.text, at);
      width += advance(code) * scale;
      at += length;
    }
    double x = label.at.x * kScale;
    if (label.anchor == Anchor::middle) x -= width / 2;
    if (label.anchor == Anchor::end) x -= width;
    for (size_t at = 0; at < label.text.size();) {
      const auto [code, length] = decode(label.text, at);
      draw_letter(code, x, label.at.y * kScale, scale, colour_of(label.colour));
      x += advance(code) * scale;
      at += length;
    }
  }

  [[nodiscard]] std::string png() const {
    std::string bytes;
    stbi_write_png_to_func(
        [](void* to, void* data, int size) {
          static_cast<std::string*>(to)->append(static_cast<char*>(data), static_cast<size_t>(size));
        },
        &bytes, width_, height_, 3, pixels_.data(), width_ * 3);
    return bytes;
  }

 private:
  [[nodiscard]] int advance(int code) const {
    int width = 0;
    int bearing = 0;
    stbtt_GetCodepointHMetrics(&font_, code, &width, &bearing);
    return width;
  }

  void stroke(Point a, Point b, Point along, double width, Colour colour) {
    const Point side{-along.y * width / 2, along.x * width / 2};
    fill({{a.x + side.x, a.y + side.y},
          {b.x + side.x, b.y + side.y},
          {b.x - side.x, b.y - side.y},
          {a.x - side.x, a.y - side.y}},
         colour, 1);
  }

  void fill(const std::vector<Point>& points, Colour colour, double opacity) {
    if (points.size() < 3) return;
    std::vector<stbtt_vertex> outline;
    int left = width_;
    int right = 0;
    int top = height_;
    int bottom = 0;
    const auto add = [&](const Point& point, unsigned char type) {
      stbtt_vertex vertex{};
      vertex.x = static_cast<short>(std::lround(point.x * kScale * kSubpixels));
      vertex.y = static_cast<short>(std::lround(point.y * kScale * kSubpixels));
      vertex.type = type;
      outline.push_back(vertex);
      left = std::min(left, static_cast<int>(point.x * kScale) - 1);
      right = std::max(right, static_cast<int>(point.x * kScale) + 2);
      top = std::min(top, static_cast<int>(point.y * kScale) - 1);
      bottom = std::max(bottom, static_cast<int>(point.y * kScale) + 2);
    };
    for (size_t i = 0; i < points.size(); ++i) add(points[i], i == 0 ? STBTT_vmove : STBTT_vline);
    add(points.front(), STBTT_vline);
    left = std::max(left, 0), top = std::max(top, 0), right = std::min(right, width_),
    bottom = std::min(bottom, height_);
    if (left >= right || top >= bottom) return;
    stbtt__bitmap bitmap{right - left, bottom - top, right - left, coverage_.data()};
    std::memset(coverage_.data(), 0, static_cast<size_t>(bitmap.w) * static_cast<size_t>(bitmap.h));
    const float scale = static_cast<float>(1 / kSubpixels);
    stbtt_Rasterize(&bitmap, 0.35F, outline.data(), static_cast<int>(outline.size()), scale, scale, 0, 0, left, top, 0,
                    nullptr);
    blend(left, top, bitmap.w, bitmap.h, coverage_.data(), colour, opacity);
  }

  void draw_letter(int code, double x, double y, float scale, Colour colour) {
    const int column = static_cast<int>(std::floor(x));
    const float shift = static_cast<float>(x - column);
    int x0 = 0;
    int y0 = 0;
    int x1 = 0;
    int y1 = 0;
    stbtt_GetCodepointBitmapBoxSubpixel(&font_, code, scale, scale, shift, 0, &x0, &y0, &x1, &y1);
    if (x1 <= x0 || y1 <= y0) return;
    std::vector<unsigned char> letter(static_cast<size_t>(x1 - x0) * static_cast<size_t>(y1 - y0), 0);
    stbtt_MakeCodepointBitmapSubpixel(&font_, letter.data(), x1 - x0, y1 - y0, x1 - x0, scale, scale, shift, 0, code);
    blend(column + x0, static_cast<int>(std::lround(y)) + y0, x1 - x0, y1 - y0, letter.data(), colour, 1);
  }

  void blend(int left, int top, int width, int height, const unsigned char* coverage, Colour colour, double opacity) {
    for (int row = 0; row < height; ++row) {
      for (int column = 0; column < width; ++column) {
        const int x = left + column;
        const int y = top + row;
        const int covered = coverage[row * width + column];
        if (covered == 0 || x < 0 || y < 0 || x >= width_ || y >= height_) continue;
        const double part = covered / 255.0 * opacity;
        unsigned char* pixel =
            &pixels_[(static_cast<size_t>(y) * static_cast<size_t>(width_) + static_cast<size_t>(x)) * 3];
        const int target[3] = {colour.red, colour.green, colour.blue};
        for (int k = 0; k < 3; ++k) {
          pixel[k] = static_cast<unsigned char>(std::lround(pixel[k] + (target[k] - pixel[k]) * part));
        }
      }
    }
  }

  int width_;
  int height_;
  std::vector<unsigned char> pixels_;
  std::vector<unsigned char> coverage_;
  stbtt_fontinfo font_{};
};

}  // namespace

std::string png_of(const Drawing& drawing) {
  Canvas canvas(drawing.width, drawing.height);
  for (const auto& shape : drawing.shapes) std::visit([&](const auto& each) { canvas(each); }, shape);
  return canvas.png();
}

}  // namespace oomscope

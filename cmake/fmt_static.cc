// fmt, compiled once and linked into the program.
//
// Debian and Ubuntu ship fmt as a shared library only, and the release program carries its libraries. The other way
// that fmt offers, header-only, costs 2.2 s in every file that formats text (9 s under the sanitizers), so we
// compile its implementation here. Which templates must be instantiated depends on the version; those below serve
// fmt 8 to 10 (Ubuntu 22.04 has 8.1.1, Debian 12 and Ubuntu 24.04 have 9.1.0, Debian 13 has 10.1.1).
// cmake/libraries.cmake falls back to header-only for others.
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {

template FMT_API dragonbox::decimal_fp<float> dragonbox::to_decimal(float x) noexcept;
template FMT_API dragonbox::decimal_fp<double> dragonbox::to_decimal(double x) noexcept;
template FMT_API locale_ref::locale_ref(const std::locale& loc);
template FMT_API std::locale locale_ref::get<std::locale>() const;
template FMT_API thousands_sep_result<char> thousands_sep_impl(locale_ref);
template FMT_API char decimal_point_impl(locale_ref);
template FMT_API void buffer<char>::append(const char*, const char*);
#if FMT_VERSION < 90000
template FMT_API int format_float(double, int, float_specs, buffer<char>&);
template FMT_API int format_float(long double, int, float_specs, buffer<char>&);
template FMT_API int snprintf_float(double, int, float_specs, buffer<char>&);
template FMT_API int snprintf_float(long double, int, float_specs, buffer<char>&);
#endif
#if FMT_VERSION < 100000
using VformatArgs = basic_format_args<FMT_BUFFER_CONTEXT(char)>;
#else
using VformatArgs = vformat_args<char>::type;
#endif
template FMT_API void vformat_to(buffer<char>&, string_view, VformatArgs, locale_ref);

}  // namespace detail
FMT_END_NAMESPACE

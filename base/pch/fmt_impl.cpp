// This file compiles fmt's own code. Debian ships only a shared library of it, which loads the
// shared C++ library too (1.3 MB in every daemon, and a millisecond at the start of every command).
// The list of templates is that of src/format.cc of fmt 9 to 11.
//
// tested by everything that formats

#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE

namespace detail {

template FMT_API auto dragonbox::to_decimal(float x) noexcept -> dragonbox::decimal_fp<float>;
template FMT_API auto dragonbox::to_decimal(double x) noexcept -> dragonbox::decimal_fp<double>;

#ifndef FMT_STATIC_THOUSANDS_SEPARATOR
template FMT_API locale_ref::locale_ref(const std::locale& loc);
template FMT_API auto locale_ref::get<std::locale>() const -> std::locale;
#endif

template FMT_API auto thousands_sep_impl(locale_ref) -> thousands_sep_result<char>;
template FMT_API auto decimal_point_impl(locale_ref) -> char;
template FMT_API void buffer<char>::append(const char*, const char*);
#if FMT_VERSION < 110100  // a plain function since then
template FMT_API void vformat_to(buffer<char>&, string_view, format_args, locale_ref);
#endif

}  // namespace detail

FMT_END_NAMESPACE

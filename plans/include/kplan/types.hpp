#pragma once
// The element types of buffers and values (language.md section 4): thirteen scalars, and records of them.

#include <complex>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace kplan {

/// A scalar element type. `c64` and `c128` are pairs of f32 and f64, real part first.
enum class Scalar : std::uint8_t { boolean, i8, i16, i32, i64, u8, u16, u32, u64, f32, f64, c64, c128 };

/// Size of one element in bytes; `bool` takes one. Alignment equals size, but for c64 (4) and c128 (8).
constexpr std::size_t size_of(Scalar s) {
  switch (s) {
    case Scalar::boolean:
    case Scalar::i8:
    case Scalar::u8: return 1;
    case Scalar::i16:
    case Scalar::u16: return 2;
    case Scalar::i32:
    case Scalar::u32:
    case Scalar::f32: return 4;
    case Scalar::i64:
    case Scalar::u64:
    case Scalar::f64:
    case Scalar::c64: return 8;
    case Scalar::c128: return 16;
  }
  return 0;
}

constexpr std::size_t alignment_of(Scalar s) { return s == Scalar::c64 ? 4 : s == Scalar::c128 ? 8 : size_of(s); }

constexpr bool is_signed_integer(Scalar s) { return s >= Scalar::i8 && s <= Scalar::i64; }
constexpr bool is_unsigned_integer(Scalar s) { return s >= Scalar::u8 && s <= Scalar::u64; }
constexpr bool is_integer(Scalar s) { return s >= Scalar::i8 && s <= Scalar::u64; }
constexpr bool is_real(Scalar s) { return s == Scalar::f32 || s == Scalar::f64; }
constexpr bool is_complex(Scalar s) { return s == Scalar::c64 || s == Scalar::c128; }
/// The scalar type of a complex number's parts; the type itself for all others.
constexpr Scalar part_of(Scalar s) { return s == Scalar::c64 ? Scalar::f32 : s == Scalar::c128 ? Scalar::f64 : s; }

/// The name of the type in plans: `bool`, `i32`, `c128`.
std::string_view name_of(Scalar s);

/// One field of a record: a scalar at a byte offset.
struct Field {
  std::string name;
  Scalar type = Scalar::f64;
  std::size_t offset_bytes = 0;
  bool operator==(const Field&) const = default;
};

/// The type of a buffer's elements: a scalar, or a record when `fields` is not empty.
struct ElementType {
  Scalar scalar = Scalar::f64;  ///< meaningless for a record
  std::vector<Field> fields;    ///< in the order of declaration; empty for a scalar
  std::size_t size_bytes = 8;   ///< of one element, padding included

  ElementType() = default;
  ElementType(Scalar s) : scalar(s), size_bytes(size_of(s)) {}  // NOLINT: a scalar is an element type

  bool is_record() const { return !fields.empty(); }
  /// The field of that name, or null.
  const Field* find(std::string_view field_name) const;
  bool operator==(const ElementType& other) const;
};

/// A record with C's layout: each field at the next multiple of its alignment, the size rounded up.
ElementType record_of(std::vector<std::pair<std::string, Scalar>> fields);

/// The scalar of a C++ type: `scalar_of<double>` is `Scalar::f64`.
template <class T>
constexpr Scalar scalar_of_type() {
  using U = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<U, bool>) return Scalar::boolean;
  else if constexpr (std::is_same_v<U, float>) return Scalar::f32;
  else if constexpr (std::is_same_v<U, double>) return Scalar::f64;
  else if constexpr (std::is_same_v<U, std::complex<float>>) return Scalar::c64;
  else if constexpr (std::is_same_v<U, std::complex<double>>) return Scalar::c128;
  else {
    static_assert(std::is_integral_v<U>, "kplan: not an element type; bind records with bind_bytes");
    constexpr bool is_signed = std::is_signed_v<U>;
    if constexpr (sizeof(U) == 1) return is_signed ? Scalar::i8 : Scalar::u8;
    else if constexpr (sizeof(U) == 2) return is_signed ? Scalar::i16 : Scalar::u16;
    else if constexpr (sizeof(U) == 4) return is_signed ? Scalar::i32 : Scalar::u32;
    else return is_signed ? Scalar::i64 : Scalar::u64;
  }
}
template <class T>
inline constexpr Scalar scalar_of = scalar_of_type<T>();

}  // namespace kplan

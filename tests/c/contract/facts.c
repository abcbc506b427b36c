/* Prints the layout that a header gives: compiled once with the contract's shape and once with the project's own
   header, as C and as C++, it must print the same. Types are held against the table while compiling. */
#include <stdio.h>

#include <blockcanary.h>

#ifdef __cplusplus
#include <type_traits>
#define SAME(a, b) static_assert(std::is_same<a, b>::value, #a " is not " #b)
#define UNSIGNED(name) static_assert((0 ? name : 0u - 1u) > 0, #name)
#else
/* Pointers to compatible types only are compatible, whatever conversions the values would allow. */
#define SAME(a, b) _Static_assert(__builtin_types_compatible_p(a, b), #a " is not " #b)
#define UNSIGNED(name) _Static_assert((0 ? name : 0u - 1u) > 0, #name)
#endif
#define FIELD_OF(type, field) __typeof__(((type *)0)->field)

#define BC_TYPE(type)
#define BC_VALUE(name)
#define BC_CONSTANT(name) UNSIGNED(name);
#define BC_FIELD(type, field_type, field) SAME(FIELD_OF(type, field), field_type);
#define BC_ARRAY(type, field_type, field) SAME(__typeof__(&((type *)0)->field[0]), field_type *);
#define BC_CALLBACK(name, result, arguments) SAME(name, result(*) arguments);
#include "layout.inc"
#undef BC_TYPE
#undef BC_VALUE
#undef BC_CONSTANT
#undef BC_FIELD
#undef BC_ARRAY
#undef BC_CALLBACK

int main(void) {
#define BC_TYPE(type) printf("sizeof %s %zu, aligned %zu\n", #type, sizeof(type), __alignof__(type));
#define BC_VALUE(name) printf("%s %lld\n", #name, (long long)(name));
#define BC_CONSTANT(name) BC_VALUE(name)
#define BC_FIELD(type, field_type, field) \
  printf("%s.%s at %zu, %zu bytes\n", #type, #field, offsetof(type, field), sizeof(((type *)0)->field));
#define BC_ARRAY(type, field_type, field) BC_FIELD(type, field_type, field)
#define BC_CALLBACK(name, result, arguments) BC_TYPE(name)
#include "layout.inc"
  return 0;
}

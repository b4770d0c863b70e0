// objects.cc — C++ objects, for a program that loads C++ late: tests/prog/libstdcxx_comes_late.c.
#include <new>
#include <string>
#include <vector>

struct alignas(256) wide {
    char bytes[512];
};

extern "C" void *make_plain(size_t size) { return ::operator new(size); }
extern "C" void drop_plain(void *p) { ::operator delete(p); }
extern "C" void *make_array(size_t size) { return new (std::nothrow) char[size]; }
extern "C" void drop_array(void *p) { delete[] static_cast<char *>(p); }
extern "C" void *make_wide(void) { return new wide; }
extern "C" void drop_wide(void *p) { delete static_cast<wide *>(p); }

extern "C" void *make_vector(size_t count) { return new std::vector<std::string>(count, std::string(100, 'x')); }
extern "C" bool vector_holds(void *p, size_t count) {
    auto &all = *static_cast<std::vector<std::string> *>(p);
    return all.size() == count && all.back() == std::string(100, 'x');
}
extern "C" void drop_vector(void *p) { delete static_cast<std::vector<std::string> *>(p); }

/* The address of the operator new that this module calls. */
extern "C" void *address_of_new(void) {
    return reinterpret_cast<void *>(static_cast<void *(*)(size_t)>(::operator new));
}

// Throws from a library, through its callers.
#include <stdexcept>
#include <string>
#include <vector>

extern "C" int throw_through(int (*callback)(int), int depth) {
    std::vector<std::string> held(depth + 1, std::string(100, 'h')); /* unwinding frees them */
    if (depth == 0)
        throw std::runtime_error("from the library: " + std::string(200, 'x'));
    return callback(depth - 1) + (int)held.size();
}

// A static table of a library that has an entry more after each run.
#include "_runs.h"

#include <map>
#include <string>

__attribute__((noinline)) static void note(int run) {
    static std::map<int, std::string> table;
    table[run] = std::string(40000, 'x');
}

int main(int count, char **arguments) {
    for (int run = 0; run < (count > 1 ? atoi(arguments[1]) : 1); run++) {
        begin_run(run);
        enter("Leaky");
        note(run);
        leave();
        end_run();
    }
    return wait_for_line();
}
